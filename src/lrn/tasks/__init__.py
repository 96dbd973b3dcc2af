"""The tasks. Each is a folder with its settings, data, model, training and jobs.

config.py   settings and presets; needs no torch, so that help is quick
data.py model.py task.py
jobs.py     what the commands do: train, resume, evaluate, predict, parameters
"""

from __future__ import annotations

import importlib
from typing import Any

from lrn.checks import choice
from lrn.names import TASKS
from lrn.tasks.settings import TaskSettings  # before the function that shares the module's name


def settings(name: str) -> TaskSettings:
    """The settings of a task; needs no torch."""
    found: TaskSettings = _module(name, "config").SETTINGS
    return found


def jobs(name: str) -> Any:
    """A task's ``jobs`` module."""
    return _module(name, "jobs")


def _module(name: str, part: str) -> Any:
    return importlib.import_module(f"lrn.tasks.{choice('task', name, TASKS)}.{part}")
