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


def settings(name: str) -> Any:
    """A task's ``config`` module."""
    return importlib.import_module(f"lrn.tasks.{choice('task', name, TASKS)}.config")


def jobs(name: str) -> Any:
    """A task's ``jobs`` module."""
    return importlib.import_module(f"lrn.tasks.{choice('task', name, TASKS)}.jobs")
