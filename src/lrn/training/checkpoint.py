"""Saved states: one file, checked before use, from which nothing is ever executed.

A line of JSON says what the file is and carries the length and the SHA-256 of the rest, a ``torch.save`` of
plain tensors, numbers and strings. So a truncated, changed or foreign file is told from a good one before any
of it is read, and the rest is loaded with ``weights_only``.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn

from lrn.files import write_whole
from lrn.training import schedule
from lrn.training.learner import Progress

KIND = "lrn checkpoint"
VERSION = 2
_LONGEST_HEADER = 10_000
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def save(path: Path, task: str, state: dict[str, Any]) -> None:
    """Write ``state`` to ``path``, whole or not at all."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()
    header = {
        "kind": KIND,
        "version": VERSION,
        "task": task,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }

    def write(file: IO[bytes]) -> None:
        file.write(json.dumps(header).encode() + b"\n")
        file.write(content)

    write_whole(path, write)


def load(path: Path, task: str) -> dict[str, Any]:
    """What :func:`save` wrote for ``task``; anything else is a ``ValueError`` that says what is wrong."""
    try:
        with path.open("rb") as file:
            header = _header(path, file.readline(_LONGEST_HEADER))
            content = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no saved state {path}") from None
    if header.get("version") != VERSION:
        raise ValueError(f"{path} is of version {header.get('version')}; this lrn reads version {VERSION}")
    if header.get("task") != task:
        raise ValueError(f"{path} belongs to task {header.get('task')!r}, not to {task!r}")
    if len(content) != header.get("bytes"):
        raise ValueError(
            f"{path} is damaged: {len(content):,} bytes where there should be {header.get('bytes'):,}"
        )
    if hashlib.sha256(content).hexdigest() != header.get("sha256"):
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a crafted file makes the reader raise
        first = str(error).strip().splitlines()[:1]
        raise ValueError(f"{path} holds more than plain data and is not loaded: {''.join(first)}") from None
    if not isinstance(state, dict):
        raise ValueError(f"{path} does not hold a saved state but a {type(state).__name__}")
    return state


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):  # the latter from thousands of brackets
        header = None
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise ValueError(f"{path} is not an {KIND}")
    if not isinstance(header.get("bytes"), int):
        raise ValueError(f"{path} is damaged: its first line does not give its length")
    return header


# What is inside, checked once, here ---------------------------------------------------------------


@dataclass(frozen=True)
class TrainingState:
    """Everything that is needed to go on with a training: last.ckpt."""

    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    progress: dict[str, Any]
    average: list[Tensor]
    precision: dict[str, Any]
    extra: list[dict[str, Any]]  # by process

    @classmethod
    def load(cls, path: Path, task: str) -> TrainingState:
        """Read a file that a training has written; anything else is a ValueError that says what is wrong."""
        state = load(path, task)
        try:
            return cls(
                model=_tensors(state, "model"),
                optimizer=_optimizer(state),
                progress=_progress(state),
                average=_list(state, "average", Tensor, _check_tensor),
                precision=_entry(state, "precision", dict),
                extra=_list(state, "extra", dict),
            )
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None

    def evaluated(self) -> list[Tensor]:
        """The averaged weights, in the order of the model's parameters; empty where there are none."""
        if self.average:
            return self.average
        by_number = sorted(self.optimizer["state"].items())
        return [entry["ax"] for _, entry in by_number if "ax" in entry]

    def check_average(self, parameters: Sequence[Tensor]) -> None:
        """Raise a ValueError unless the averaged weights, if there are any, are those of such parameters."""
        average = self.evaluated()
        if average and [a.shape for a in average] != [p.shape for p in parameters]:
            raise ValueError(
                f"the saved state has averages of {len(average)} weights that are not those of the model's "
                f"{len(parameters)}"
            )

    def load_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Give a new optimizer what this one had gathered; its settings are those of the run."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        names = schedule.state_names(optimizer)
        for number, entry in self.optimizer["state"].items():
            if not 0 <= number < len(parameters):
                raise ValueError(
                    f"the saved optimizer speaks of weight {number}; there are {len(parameters)}"
                )
            if set(entry) != names:
                raise ValueError(
                    f"the saved optimizer is not this run's: it has {', '.join(sorted(entry))} "
                    f"where {', '.join(sorted(names))} is needed"
                )
            for name, value in entry.items():
                if value.dim() and value.shape != parameters[number].shape:
                    raise ValueError(
                        f"the saved optimizer's {name} of weight {number} has shape {tuple(value.shape)}, "
                        f"the weight {tuple(parameters[number].shape)}"
                    )
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": self.optimizer["state"], "param_groups": groups})


@dataclass(frozen=True)
class BestState:
    """The weights that were best on the validation data, and its figures: best.ckpt."""

    model: dict[str, Tensor]
    figures: dict[str, float]
    epoch: int

    @classmethod
    def load(cls, path: Path, task: str) -> BestState:
        """Read a file that a training or an import has written; anything else is a ValueError."""
        state = load(path, task)
        try:
            figures = _entry(state, "figures", dict)
            if not all(isinstance(k, str) and isinstance(v, int | float) for k, v in figures.items()):
                raise ValueError("its figures are not numbers by name")
            return cls(_tensors(state, "model"), figures, _entry(state, "epoch", int))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None


def _entry(state: dict[str, Any], name: str, kind: type[Any]) -> Any:
    if name not in state:
        raise ValueError(f"it has no {name}")
    if type(state[name]) is not kind and not (kind is dict and isinstance(state[name], dict)):
        raise ValueError(f"its {name} is a {type(state[name]).__name__}, not a {kind.__name__}")
    return state[name]


def _list(state: dict[str, Any], name: str, kind: type[Any], check: Any = lambda what, value: None) -> Any:
    values = _entry(state, name, list)
    for number, value in enumerate(values):
        if not isinstance(value, kind):
            raise ValueError(f"entry {number} of its {name} is a {type(value).__name__}")
        check(f"{name} {number}", value)
    return values


def _tensors(state: dict[str, Any], name: str) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = _entry(state, name, dict)
    for key, value in tensors.items():
        if not isinstance(key, str) or not isinstance(value, Tensor):
            raise ValueError(f"its {name} holds {key!r}: {type(value).__name__}; expected tensors by name")
        _check_tensor(key, value)
    return tensors


def _check_tensor(what: str, value: Tensor) -> None:
    """Plain numbers that a model may have: a NaN or an infinity was never saved by a training."""
    plain = value.layout == torch.strided and not value.is_quantized and not value.is_meta
    if not plain or value.is_complex() or (value.is_floating_point() and value.dtype not in _FLOATS):
        raise ValueError(f"{what} is no plain tensor but {_kind(value)}")
    if value.is_floating_point() and not bool(torch.isfinite(value).all()):
        raise ValueError(f"{what} is not finite")


def _kind(value: Tensor) -> str:
    if value.is_meta:
        return "one without numbers (meta)"
    return f"{value.dtype} {value.layout}".replace("torch.", "")


def _progress(state: dict[str, Any]) -> dict[str, Any]:
    progress: dict[str, Any] = _entry(state, "progress", dict)
    known = {entry.name: getattr(Progress(), entry.name) for entry in fields(Progress)}
    if set(progress) != set(known):
        raise ValueError(f"its progress lacks or adds {', '.join(sorted(set(progress) ^ set(known)))}")
    for name, example in known.items():
        value = progress[name]
        if type(value) is not type(example):
            raise ValueError(f"its progress says {name} {value!r:.40}")
        numbers = value if isinstance(value, list) else [value]
        if not all(isinstance(number, int | float) and not math.isnan(number) for number in numbers):
            raise ValueError(f"its progress says {name} {value!r:.40}")
        if name not in ("best", "best_epoch", "losses") and any(number < 0 for number in numbers):
            raise ValueError(f"its progress says {name} {value!r:.40}")
    return progress


def _optimizer(state: dict[str, Any]) -> dict[str, Any]:
    optimizer: dict[str, Any] = _entry(state, "optimizer", dict)
    entries = _entry(optimizer, "state", dict)
    for number, entry in entries.items():
        if not isinstance(number, int) or not isinstance(entry, dict):
            raise ValueError("its optimizer's state is not by number of weight")
        for name, value in entry.items():
            if not isinstance(value, Tensor):
                raise ValueError(f"its optimizer's {name} is a {type(value).__name__}, not a tensor")
            _check_tensor(f"its optimizer's {name} of weight {number}", value)
    return optimizer


def check_weights(weights: dict[str, Tensor], source: str) -> None:
    """Raise a ValueError if weights from elsewhere are none that a model may have."""
    for name, value in weights.items():
        try:
            _check_tensor(name, value)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Into a model of exactly that shape; else an error that says how they differ."""
    check_fit(model, weights)
    model.load_state_dict(weights)


def check_fit(model: nn.Module, weights: dict[str, Tensor], source: str = "") -> None:
    """Raise a ValueError unless the weights are those of such a model, whose own may be on no device."""
    own = model.state_dict()
    wrong = (
        f"{source}: these weights are not this model's" if source else "these weights are not this model's"
    )
    for name in sorted(set(own) ^ set(weights)):
        where = "the model, not the file" if name in own else "the file, not the model"
        raise ValueError(f"{wrong}: {name} is in {where}")
    for name, value in weights.items():
        if value.shape != own[name].shape:
            raise ValueError(
                f"{wrong}: {name} has shape {tuple(value.shape)} in the file and "
                f"{tuple(own[name].shape)} in the model"
            )
        if value.is_floating_point() != own[name].is_floating_point() or value.is_complex():
            raise ValueError(
                f"{wrong}: {name} is {value.dtype} in the file and {own[name].dtype} in the model"
            )
