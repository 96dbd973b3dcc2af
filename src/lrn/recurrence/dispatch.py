"""Which engine runs a recurrence: a table of them, what is here of it, and the one for a tensor at hand."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lrn import checks, names
from lrn.recurrence import modes
from lrn.recurrence.library import library

LIBRARY = "liblrn_cpu"
ALONE = "liblrn"  # the same engine, and the ops' definitions, for programs without Python


@dataclass(frozen=True)
class Engine:
    """One way to run recurrences."""

    name: str
    devices: tuple[str, ...]  # the types of device whose own engine it is; empty: it runs everywhere
    ops: frozenset[str]  # what it implements of schemas.py; the rest is run by definition
    load: Callable[[], str | None]  # brings in its ops; returns None, or why it is not here
    install: str = ""  # how to get it if it is not here
    module: str = ""  # where its ops are functions of Python
    guest: tuple[str, ...] = ()  # the types of device that it runs as well, when it is asked for

    def runs(self, device: torch.device) -> bool:
        """Whether it takes tensors on ``device``."""
        return not self.devices or device.type in self.devices + self.guest

    def function(self, op: str) -> Callable[..., Any]:
        """An op of an engine that is written in Python, which is imported for it."""
        function: Callable[..., Any] = getattr(importlib.import_module(self.module), op)
        return function


def _find_library(name: str = LIBRARY) -> Path | None:
    from lrn.recurrence import cpu

    for folder in cpu.__path__:  # an editable install has two: the sources and the build's
        for path in sorted(Path(folder).glob(f"{name}.*")):
            return path
    return None


def library_path() -> Path:
    """Where the library is with which programs run exported models without lrn's Python: C++, or torch alone.

    It has the ops of all units for CPU tensors. Python loads it by ``torch.ops.load_library``, C++ by
    ``dlopen``. A process that imports lrn has the ops already.

    >>> import lrn
    >>> lrn.library_path().stem
    'liblrn'
    """
    path = _find_library(ALONE)
    if path is None:
        raise ValueError(f"{ALONE} was not built when lrn was installed. {_BUILD}")
    return path


def _load_library() -> str | None:
    path = _find_library()
    if path is None:
        return "it was not built when lrn was installed"
    try:
        torch.ops.load_library(str(path))
    except (OSError, RuntimeError) as error:  # the latter: built from other sources than these
        return f"{path.name} does not load here: {str(error).splitlines()[0]}"
    return None


INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton runs its kernels step by step in Python, on tensors of the host."""


def _load_triton() -> str | None:
    if importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    if torch.version.cuda is None and torch.version.hip is None:
        return None if INTERPRETED else "this torch is built for the CPU only"
    for op in ("scan", "scan_backward"):
        library.impl(op, partial(_run_triton, op), "CUDA")  # which is ROCm's too
    return None


def _run_triton(op: str, *args: Any) -> Any:
    return TABLE["triton"].function(op)(*args)


_BUILD = (
    "To build it, get a C++ compiler and run in lrn's source folder: "
    "pip install . (pip install -e . to keep it editable)"
)

TABLE: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("cpu", ("cpu",), frozenset({"scan", "scan_into", "atr", "attend"}), _load_library, _BUILD),
        Engine(
            "triton",
            ("cuda",),
            frozenset({"scan"}),
            _load_triton,
            "It needs a torch that is built for CUDA or ROCm, and triton: " + checks.install("gpu"),
            "lrn.recurrence.triton.engine",
            ("cpu",) if INTERPRETED else (),
        ),
        Engine("parallel", (), frozenset({"scan"}), lambda: None, module="lrn.recurrence.parallel"),
        Engine("torch", (), frozenset(), lambda: None),  # the definition, which runs everywhere
    )
}
"""Every engine by name, in the order of ``names.py``."""

assert tuple(TABLE) == names.ENGINES
assert library  # an engine is loaded only after what it implements is known


def _check(name: str) -> None:
    checks.choice("engine", name, tuple(TABLE))
    if name in MISSING:
        raise ValueError(f"engine {name!r} is not available: {MISSING[name]}. {TABLE[name].install}")


def _from_environment() -> str | None:
    name = os.environ.get("LRN_ENGINE") or None
    if name is not None:
        try:
            _check(name)
        except ValueError as error:
            raise ValueError(f"environment variable LRN_ENGINE: {error}") from None
    return name


def _load_all() -> dict[str, str]:
    reasons = {name: engine.load() for name, engine in TABLE.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


MISSING: dict[str, str] = _load_all()
"""Why each engine that is not here is missing."""

_DEFAULT = _from_environment()
_chosen: ContextVar[str | None] = ContextVar("lrn_engine", default=_DEFAULT)

_told: set[str] = set()


@modes.constant
def _tell_missing(name: str) -> None:
    """Warn, once, that an engine is missing whose tensors are here."""
    if name not in _told:
        _told.add(name)
        warnings.warn(
            f"lrn runs on its plain torch engine, which is slower: engine {name!r} is missing "
            f"({MISSING[name]}). {TABLE[name].install}. Set LRN_ENGINE=torch to silence this.",
            RuntimeWarning,
            stacklevel=3,
        )


if (
    _DEFAULT is None and "cpu" in MISSING
):  # at once, since everybody has that device; of others, at the first tensor
    _tell_missing("cpu")


def engines() -> tuple[str, ...]:
    """The engines available here: those of a type of device first, then those that run everywhere.

    >>> "torch" in engines()
    True
    """
    return tuple(name for name in TABLE if name not in MISSING)


def engine(name: str) -> _GeneratorContextManager[None]:
    """Run every recurrence inside the ``with`` block on one engine.

    Outside such a block the environment variable ``LRN_ENGINE`` decides, and without it the
    fastest engine for the tensor at hand.

    >>> import torch, lrn
    >>> unit = lrn.LRN(3, 4)
    >>> with lrn.engine("torch"):
    ...     output, state = unit(torch.zeros(5, 2, 3))
    """
    _check(name)  # here, since the block below begins only if there is a `with`
    return _inside(name)


@contextmanager
def _inside(name: str) -> Iterator[None]:
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


@modes.constant
def _asked_for() -> str | None:
    """What the ``with`` block or the environment says; compiled code keeps what it was compiled with."""
    return _chosen.get()


_FASTEST = {kind: name for name in reversed(engines()) for kind in TABLE[name].devices}
_LACKING = {kind: name for name in MISSING for kind in TABLE[name].devices}


def choose(device: torch.device) -> str:
    """The engine for tensors on ``device``."""
    name: str | None = _asked_for()
    if name is None:
        if device.type in _LACKING:
            _tell_missing(_LACKING[device.type])
        return _FASTEST.get(device.type, "torch")
    if not TABLE[name].runs(device):
        only = ", ".join(TABLE[name].devices + TABLE[name].guest)
        raise ValueError(f"engine {name!r} runs tensors on {only} only, got one on {device}")
    return name


def implemented(op: str, device: torch.device) -> bool:
    """Whether the engine for tensors on ``device`` implements ``op``."""
    return op in TABLE[choose(device)].ops


def by(device: torch.device) -> tuple[()] | tuple[str]:
    """What an op gets as its last argument: the engine's name, unless torch finds it by the type of device.

    With it ``torch.ops.lrn.scan`` is its overload ``by``. So a compiled graph and a backward pass stay with
    the engine that they began with.
    """
    name = choose(device)
    return () if device.type in TABLE[name].devices else (name,)


def _run_by(op: str, *args: Any) -> Any:
    *given, name = args
    return TABLE[name].function(op)(*given)


for _op in ("scan", "scan_backward"):
    library.impl(f"{_op}.by", partial(_run_by, _op), "CompositeExplicitAutograd")
