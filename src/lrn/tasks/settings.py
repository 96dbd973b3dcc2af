"""What the command line knows of a task before anything slow is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrn.checks import choice
from lrn.text.folders import find_files
from lrn.training.config import EvaluateConfig, PredictConfig, TrainConfig


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a task by command, and what its data looks like from outside.

    Args:
        train: settings of a training.
        presets: named sets of them.
        evaluate: settings of ``lrn evaluate``.
        predict: settings of ``lrn predict``.
        metric: the figure that counts in the end, as it stands in metrics.json.
        lower_is_better: whether a lower one is better.
        printed: gives the paper's figure by unit for the settings of a run on what it says of its data;
            nothing where the paper has none for this preset on this very data.
        commands: settings of commands for runs of this task alone, by the command's name.
        counted: presets whose parameters are counted beside the paper's, with the sizes that its data had.
        note: what there is to say about those counts.
        files: the names of the files in a folder of data; where there are several ways to name them, each. If
            they depend on other settings there are none, and ``check`` looks for them.
        described: how the files are called, in words, where a list of their names would be too long.
        builtin: names of built-in data beside that without a name.
        packages: the modules that its built-in data and its scores need beside those of every training.
        graphs: the names of the graphs that leave it; empty where there is one only.
        check: raises an error for settings of a training that name what cannot be used; nothing slow.
        check_use: the same for settings of ``lrn predict``.
    """

    train: type[TrainConfig]
    presets: Mapping[str, Mapping[str, Any]]
    evaluate: type[EvaluateConfig]
    predict: type[PredictConfig]
    metric: str
    lower_is_better: bool
    printed: Callable[[dict[str, Any], dict[str, Any]], dict[str, str]]
    commands: Mapping[str, type[Any]] = field(default_factory=dict)
    counted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    note: str = ""
    files: tuple[tuple[str, ...], ...] = ()
    described: str = ""
    builtin: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ("",)
    check: Callable[[Any], None] = lambda config: None
    check_use: Callable[[Any], None] = lambda options: None

    @property
    def curve(self) -> str:
        """The column of log.csv that shows the figure during training."""
        return f"valid_{self.metric.removeprefix('test_')}"

    def check_data(self, data: str | None, default: str = "the built-in data is used") -> None:
        """An error unless ``data`` is built in, or a folder that has the files.

        ``default`` says what happens without it.
        """
        if data is None:
            return
        if self.builtin and data.startswith("builtin:"):
            choice("built-in data", data, self.builtin)
            return
        find_files(Path(data), self.files or ((),), f"without --data {default}", self.described)
