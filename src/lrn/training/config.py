"""The settings that every task has. Nothing here needs torch, so that `lrn --help` stays quick."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from lrn.checks import at_least, choice
from lrn.names import UNITS

PRECISIONS = ("32", "bf16")


@dataclass
class TrainConfig:
    """Settings of every training.

    Args:
        unit: the recurrent unit: lrn, olrn, glrn, elrn, atr, sru, lstm or gru.
        preset: a named set of settings that the others start from.
        data: folder with the data; without it the built-in data is used.
        out: the run folder to make; by default runs/TASK-UNIT-PRESET-SEED.
        overwrite: throw away what is in that folder.
        seed: for weights, dropout and the order of the data.
        epochs: passes over the training data.
        lr: learning rate.
        clip: largest norm of the gradient; 0 does not clip.
        ema: decay of the average of the weights that is evaluated and saved as best; 0 keeps none.
        precision: 32, or bf16 for matrix products in bfloat16.
        threads: threads of this process; 0 leaves it to torch.
        devices: processes on this machine, which share every batch.
        nodes: machines (start each with torchrun).
        save_steps: training steps between two saved states to resume from.
        max_steps: stop after this many steps in all; 0 goes on to the last epoch.
    """

    unit: str = "lrn"
    preset: str = "quick"
    data: str | None = None
    out: str | None = None
    overwrite: bool = False
    seed: int = 1
    epochs: int = 1
    lr: float = 1e-3
    clip: float = 0.0
    ema: float = 0.0
    precision: str = "32"
    threads: int = 0
    devices: int = 1
    nodes: int = 1
    save_steps: int = 200
    max_steps: int = 0

    def __post_init__(self) -> None:
        self.unit = choice("unit", self.unit, UNITS)
        self.precision = choice("precision", self.precision, PRECISIONS)
        for name in ("epochs", "devices", "nodes", "save_steps"):
            at_least(self, name, 1)
        for name in ("seed", "clip", "threads", "max_steps"):
            at_least(self, name, 0)
        if not self.lr > 0:
            raise ValueError(f"lr must be positive, got {self.lr}")
        if not 0 <= self.ema < 1:
            raise ValueError(f"ema must be from 0 to below 1, got {self.ema}")


@dataclass
class EvaluateConfig:
    """Settings of an evaluation.

    Args:
        data: folder with the data; by default what the run was trained on.
        part: train, valid or test.
        last: the weights after the last epoch instead of the best on the validation data.
    """

    data: str | None = None
    part: str = "test"
    last: bool = False

    def __post_init__(self) -> None:
        self.part = choice("part", self.part, ("train", "valid", "test"))


def from_dict(kind: type[Any], values: dict[str, Any]) -> Any:
    """A config from what a run folder holds; settings it does not know are an error."""
    known = {field.name: field for field in fields(kind)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"config.json has settings that this version does not know: {', '.join(unknown)}")
    for name, value in values.items():
        if known[name].default is not MISSING and not _fits(value, known[name].default):
            raise ValueError(f"config.json is damaged: {name} cannot be {value!r}")
    return kind(**values)


def _fits(value: Any, default: Any) -> bool:
    """Whether a value is of the kind that the setting's default is."""
    if default is None:
        return value is None or isinstance(value, str)
    if type(default) is float:
        return type(value) in (int, float)
    return type(value) is type(default)
