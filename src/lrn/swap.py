"""Swap the recurrent layers of an existing model."""

from __future__ import annotations

from typing import Any

from torch import nn

from lrn.units import Unit, make_unit

SWAPPED = (nn.LSTM, nn.GRU)


def replace(model: nn.Module, unit: str = "lrn", *, verbose: bool = True, **kwargs: Any) -> nn.Module:
    """Swap every ``nn.LSTM`` and ``nn.GRU`` inside ``model``, in place, for a unit of the same shape.

    Sizes, layers, directions, bias, ``batch_first``, dropout, dtype, device and training mode are kept;
    the weights are new. ``kwargs`` go to the unit (``norm="layer"``, …). Returns the model (the new
    unit if ``model`` itself was an ``nn.LSTM``) and prints a line for each swap unless ``verbose=False``.

    Code that handles ``nn.LSTM``'s pair ``(h, c)`` keeps working: a unit with a single state returns
    ``(h, h)`` in place of an ``nn.LSTM`` and reads the first of a pair passed in.

    >>> from torch import nn
    >>> import lrn
    >>> model = nn.ModuleDict({"rnn": nn.LSTM(8, 16, batch_first=True)})
    >>> model = lrn.replace(model, "lrn")
    rnn: LSTM(8, 16, batch_first=True) -> LRN(8, 16, batch_first=True), 1,664 -> 432 parameters
    """
    found = {
        name: module
        for name, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, SWAPPED)
    }
    if not found:
        raise ValueError(f"{type(model).__name__} has no nn.LSTM or nn.GRU inside")
    for name, module in found.items():
        _refuse(name, module)

    units = {module: _unit_like(module, unit, kwargs) for module in dict.fromkeys(found.values())}
    for name, module in found.items():
        new = units[module]
        if verbose:
            pair = new.parts == 2 and isinstance(module, nn.GRU)
            print(
                f"{name or 'model'}: {_describe(module)} -> {new}, "
                f"{_count(module):,} -> {_count(new):,} parameters"
                + (", state now a pair (h, c)" if pair else "")
            )
        if name:
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, new)
        else:
            return new
    return model


def _refuse(name: str, module: nn.RNNBase) -> None:
    where = f"cannot replace {name or 'model'}"
    names = {parameter for parameter, _ in module.named_parameters()}
    if type(module) not in SWAPPED or names != set(module._flat_weights_names):
        raise ValueError(
            f"{where}: {type(module).__name__} is a subclass or parametrisation; "
            "only plain nn.LSTM and nn.GRU can be swapped"
        )
    if module.proj_size:
        raise ValueError(
            f"{where}: proj_size={module.proj_size} has no counterpart; "
            "use proj_size=0 and a Linear layer after the unit"
        )


def _unit_like(module: nn.RNNBase, unit: str, kwargs: dict[str, Any]) -> Unit:
    weight = module.weight_ih_l0
    settings: dict[str, Any] = {
        "num_layers": module.num_layers,
        "bias": module.bias,
        "batch_first": module.batch_first,
        "dropout": module.dropout,
        "bidirectional": module.bidirectional,
        "device": weight.device,
        "dtype": weight.dtype,
    }
    new = make_unit(unit, module.input_size, module.hidden_size, **(settings | kwargs))
    new.lstm_state = isinstance(module, nn.LSTM) and new.parts == 1
    return new.train(module.training)


def _describe(module: nn.RNNBase) -> str:
    return f"{type(module).__name__}({module.extra_repr()})"


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
