"""What the command line knows of a task before anything slow is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrn.checks import choice
from lrn.training.config import EvaluateConfig, PredictConfig, TrainConfig


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a task by command, and what its data looks like from outside.

    Args:
        train: settings of a training.
        presets: named sets of them.
        evaluate: settings of ``lrn evaluate``.
        predict: settings of ``lrn predict``.
        commands: settings of commands for runs of this task alone, by the command's name.
        counted: presets whose parameters are counted beside the paper's, with the sizes that its data had.
        note: what there is to say about those counts.
        files: the names of the files in a folder of data; where there are several ways to name them, each.
        builtin: names of built-in data beside that without a name.
    """

    train: type[TrainConfig]
    presets: Mapping[str, Mapping[str, Any]]
    evaluate: type[EvaluateConfig]
    predict: type[PredictConfig]
    commands: Mapping[str, type[Any]] = field(default_factory=dict)
    counted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    note: str = ""
    files: tuple[tuple[str, ...], ...] = ()
    builtin: tuple[str, ...] = ()

    def check_data(self, data: str | None, default: str = "the built-in data is used") -> None:
        """An error unless ``data`` is built in, or a folder that has the files.

        ``default`` says what happens without it.
        """
        if data is None:
            return
        if self.builtin and data.startswith("builtin:"):
            choice("built-in data", data, self.builtin)
            return
        folder = Path(data)
        expected = f"expected {' or '.join(', '.join(names) for names in self.files)}"
        hint = f"{expected}; without --data {default}"
        if not folder.exists():
            raise FileNotFoundError(f"there is no folder {folder}; {hint}")
        if not folder.is_dir():
            raise ValueError(f"{folder} is a file, not the folder that holds it; {hint}")
        missing = [[name for name in names if not (folder / name).is_file()] for names in self.files]
        fewest = min(missing, key=len, default=[])
        if fewest:
            raise FileNotFoundError(f"{folder} lacks {' and '.join(fewest)}; {hint}")
