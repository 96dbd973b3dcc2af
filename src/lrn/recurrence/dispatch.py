"""Which engine runs a recurrence: ``torch`` (the definition, everywhere) or ``cpu`` (C++, CPU tensors)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import torch

from lrn.recurrence import modes

NAMES = ("cpu", "torch")
LIBRARY = "liblrn_cpu"


def _find_library() -> Path | None:
    from lrn.recurrence import cpu

    for folder in cpu.__path__:  # an editable install has two: the sources and the build's
        for path in sorted(Path(folder).glob(f"{LIBRARY}.*")):
            return path
    return None


def _load_library() -> str | None:
    """Load the C++ engine; returns None, or why it is not there."""
    path = _find_library()
    if path is None:
        return "it was not built when lrn was installed"
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        return f"{path.name} does not load here: {error}"
    return None


def _from_environment() -> str | None:
    name = os.environ.get("LRN_ENGINE") or None
    if name is not None:
        try:
            _check(name)
        except ValueError as error:
            raise ValueError(f"environment variable LRN_ENGINE: {error}") from None
    return name


def _check(name: str) -> None:
    if name not in NAMES:
        raise ValueError(f"unknown engine {name!r}; allowed: {', '.join(NAMES)}")
    if name == "cpu" and MISSING:
        raise ValueError(f"engine 'cpu' is not available: {MISSING}. {_HOW_TO_GET_IT}")


_HOW_TO_GET_IT = (
    "To build it, install lrn with a C++ compiler and torch already present: "
    "pip install --no-build-isolation --force-reinstall --no-deps lrn"
)

MISSING: str | None = _load_library()  # why the C++ engine is missing; None if it is here
_DEFAULT = _from_environment()
_chosen: ContextVar[str | None] = ContextVar("lrn_engine", default=_DEFAULT)

if MISSING and _DEFAULT is None:
    warnings.warn(
        f"lrn runs on its plain torch engine, which is slower: the C++ engine is missing ({MISSING}). "
        f"{_HOW_TO_GET_IT}. Set LRN_ENGINE=torch to silence this.",
        RuntimeWarning,
        stacklevel=2,
    )


def engines() -> tuple[str, ...]:
    """The engines available here, fastest first.

    >>> "torch" in engines()
    True
    """
    return NAMES if not MISSING else ("torch",)


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Run every recurrence inside the ``with`` block on one engine.

    Outside such a block the environment variable ``LRN_ENGINE`` decides, and without it the
    fastest engine for the tensor at hand.

    >>> import torch, lrn
    >>> unit = lrn.LRN(3, 4)
    >>> with lrn.engine("torch"):
    ...     output, state = unit(torch.zeros(5, 2, 3))
    """
    _check(name)
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


@modes.constant
def _asked_for() -> str | None:
    """What the ``with`` block or the environment says; compiled code keeps what it was compiled with."""
    return _chosen.get()


def choose(device: torch.device) -> str:
    """The engine for tensors on ``device``."""
    name: str | None = _asked_for()
    if name is None:
        return "cpu" if device.type == "cpu" and not MISSING else "torch"
    if name == "cpu" and device.type != "cpu":
        raise ValueError(f"engine 'cpu' runs CPU tensors only, got a tensor on {device}")
    return name
