"""The run folder: everything about one training, in a place that can be moved.

config.json       settings                      log.csv       loss and metrics as training went on
vocabulary.json   (what the task keeps)         metrics.json  the results
about.json        command, versions, data       best.ckpt, last.ckpt
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lrn.checks import nearest
from lrn.files import read_json, write_json
from lrn.training.config import TrainConfig

BUILTIN = "builtin:"  # such data has a name, not a place


class Run:
    """One run folder. Make one with :meth:`create`, open one with :meth:`open`."""

    def __init__(self, folder: Path, task: str, config: dict[str, Any]) -> None:
        self.folder, self.task, self.config = folder, task, config

    @property
    def best(self) -> Path:
        return self.folder / "best.ckpt"

    @property
    def last(self) -> Path:
        return self.folder / "last.ckpt"

    @property
    def log(self) -> Path:
        return self.folder / "log.csv"

    @staticmethod
    def folder_for(task: str, config: TrainConfig) -> Path:
        return Path(config.out or f"runs/{task}-{config.unit}-{config.preset}-{config.seed}")

    @classmethod
    def create(
        cls,
        task: str,
        config: TrainConfig,
        about: dict[str, Any],
        begin: Callable[[Run], object] = lambda run: None,
    ) -> Run:
        """A new folder, into which ``begin`` puts what the task keeps there.

        One that exists and is not empty is an error unless ``config.overwrite``.
        """
        folder = cls.folder_for(task, config)
        try:
            _clear(folder, config.overwrite)
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_make(folder, error) from None
        data = config.data
        if data and not data.startswith(BUILTIN):
            data = str(Path(data).resolve())  # to be found from anywhere
        settings = asdict(config) | {"data": data, "out": None, "overwrite": False}  # it may be moved
        run = cls(folder, task, settings)
        try:
            write_json(folder / "about.json", {"command": command(), "versions": versions(), **about})
            begin(run)
            write_json(folder / "config.json", {"task": task, **settings})  # last: now it is a run folder
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)  # it was empty, and half of it would be in the way
            raise _cannot_make(folder, error) from None
        return run

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """An existing folder, as far as its settings go."""
        folder = Path(folder)
        if folder.is_file():
            raise ValueError(f"{folder} is a file; name the run folder that it is in: {folder.parent}")
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no run folder {folder}{_similar(folder)}")
        if not (folder / "config.json").exists():
            raise ValueError(f"{folder} is not a run folder: it has no config.json")
        settings = read_json(folder / "config.json")
        if not isinstance(settings, dict) or not isinstance(settings.get("task"), str):
            raise ValueError(f"{folder / 'config.json'} does not name a task")
        return cls(folder, settings.pop("task"), settings)

    def file(self, name: str) -> Path:
        """One of the files without which a run is of no use."""
        path = self.folder / name
        if path.is_file():
            return path
        if path.suffix == ".ckpt":
            raise FileNotFoundError(
                f"{self.folder} has no {name}: nothing was validated yet, or it was deleted"
            )
        raise FileNotFoundError(f"{self.folder} cannot be used: its {name} is missing")

    def data(self, moved: str | None = None) -> str | None:
        """Where its data is: what the user says, or where it was; None is the built-in data."""
        here: str | None = self.config.get("data")
        if moved or here is None or here.startswith(BUILTIN):
            return moved or here
        if not Path(here).exists():
            raise FileNotFoundError(f"the data of {self.folder} is no longer at {here}; say where: --data")
        return here

    def check_data(self, fingerprint: str) -> None:
        """An error unless this is the fingerprint of the data that the run was begun with."""
        if fingerprint != self.about()["data"]["fingerprint"]:
            raise ValueError(
                f"the data is not what {self.folder} was trained on so far; say where that is: --data"
            )

    def about(self) -> dict[str, Any]:
        path = self.file("about.json")
        about = read_json(path)
        if not isinstance(about, dict):
            raise ValueError(f"{path} is damaged: it holds no settings but a {type(about).__name__}")
        return about

    def clean(self) -> None:
        """Remove what a process that was killed had begun to write."""
        for part in self.folder.glob(".*.part"):
            part.unlink(missing_ok=True)

    def add_metrics(self, **values: Any) -> None:
        """Add to metrics.json."""
        path = self.folder / "metrics.json"
        before = read_json(path) if path.exists() else {}
        write_json(path, before | values)


def _clear(folder: Path, overwrite: bool) -> None:
    """Make room for a run, if what is there may go."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; --out must name a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not _is_run(folder):
        raise ValueError(f"{folder} exists and is not a run folder; choose another: --out")
    if not overwrite:
        raise ValueError(
            f"{folder} exists. Go on with it: lrn train --resume {folder}; "
            "start anew: --overwrite; or choose another folder: --out"
        )
    shutil.rmtree(folder)


def _cannot_make(folder: Path, error: OSError) -> ValueError:
    reason = error.strerror or str(error)
    return ValueError(f"cannot make the run folder {folder} ({reason}); choose another: --out")


def _similar(folder: Path) -> str:
    """A hint at the run beside it, or in runs/, that was meant."""
    near = [*folder.parent.glob("*/config.json"), *Path("runs").glob("*/config.json")]
    return nearest(folder, [str(path.parent) for path in near]) if near else ""


def _is_run(folder: Path) -> bool:
    """Whether it was made here: many programs have a config.json."""
    try:
        Run.open(folder)
    except (OSError, ValueError):
        return False
    return (folder / "about.json").is_file()


def command() -> str:
    """How this process was started, without the path to the program."""
    return " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:]])


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
    }
    for package in ("lrn", "torch", "lightning", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
