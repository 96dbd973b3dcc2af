"""Lightweight recurrent networks for PyTorch.

>>> import torch, lrn
>>> rnn = lrn.LRN(input_size=300, hidden_size=256, num_layers=2, bidirectional=True)
>>> output, h_n = rnn(torch.randn(50, 8, 300))
>>> output.shape
torch.Size([50, 8, 512])
"""

from typing import TYPE_CHECKING, Any

from lrn.late import when_torch_is_here

if TYPE_CHECKING:
    from lrn.migration.distilling import distill
    from lrn.migration.quantizing import quantize
    from lrn.migration.replacing import replace
    from lrn.recurrence import engine, engines, library_path
    from lrn.share import load
    from lrn.units import ATR, ELRN, GLRN, GRU, LRN, LSTM, OLRN, SRU, UNITS, CustomUnit, Unit, make_unit

__version__ = "0.2.0"

__all__ = [
    "ATR",
    "ELRN",
    "GLRN",
    "GRU",
    "LRN",
    "LSTM",
    "OLRN",
    "SRU",
    "UNITS",
    "CustomUnit",
    "Unit",
    "__version__",
    "distill",
    "engine",
    "engines",
    "library_path",
    "load",
    "make_unit",
    "quantize",
    "replace",
]

# Loaded at first use, so that `lrn --help` need not wait for torch.
_HOME = {
    "distill": "lrn.migration.distilling",
    "engine": "lrn.recurrence",
    "engines": "lrn.recurrence",
    "library_path": "lrn.recurrence",
    "load": "lrn.share",
    "quantize": "lrn.migration.quantizing",
    "replace": "lrn.migration.replacing",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        from lrn.checks import nearest

        raise AttributeError(f"module 'lrn' has no attribute {name!r}{nearest(name, __all__)}")
    from importlib import import_module

    value = getattr(import_module(_HOME.get(name, "lrn.units")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _register() -> None:
    """Tell torch of lrn's ops: a model that was exported or compiled with them can be loaded from now on."""
    import lrn.recurrence  # noqa: F401


when_torch_is_here(_register)
