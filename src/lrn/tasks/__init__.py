"""The tasks. Each is a folder with its settings, data, model and what it says of itself (see ``base.py``).

config.py   settings and presets; needs no torch, so that help is quick
data.py     reading the data and making batches of it
model.py    the model; needs torch alone
task.py     the task: learner, score, prediction
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lrn.checks import choice
from lrn.names import TASKS, UNITS
from lrn.tasks.settings import TaskSettings  # before the function that shares the module's name

if TYPE_CHECKING:
    from lrn.tasks.base import Task


def settings(name: str) -> TaskSettings:
    """The settings of a task; needs no torch."""
    found: TaskSettings = _module(name, "config").SETTINGS
    return found


def load(name: str) -> Task[Any, Any, Any, Any]:
    """A task: what it says of itself, and what the commands do with it."""
    found: Task[Any, Any, Any, Any] = _module(name, "task").TASK
    return found


def parameters(name: str) -> list[tuple[str, str, int]]:
    """Preset, unit and exact count of the settings that the paper counts; needs torch alone."""
    known, count = settings(name), _module(name, "model").count
    return [
        (
            preset,
            unit,
            count(known.train(**{**known.presets[preset], "preset": preset, "unit": unit}), **sizes),
        )
        for preset, sizes in known.counted.items()
        for unit in UNITS
    ]


def _module(name: str, part: str) -> Any:
    return importlib.import_module(f"lrn.tasks.{choice('task', name, TASKS)}.{part}")
