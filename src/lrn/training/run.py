"""The run folder: everything about one training, in a place that can be moved.

config.json       settings                      log.csv       loss and metrics as training went on
vocabulary.json   (what the task keeps)         metrics.json  the results
about.json        command, versions, data       best.ckpt, last.ckpt, epoch-N.ckpt
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lrn
from lrn import own
from lrn.checks import nearest
from lrn.files import hindrance, read_json, write_json
from lrn.names import MODEL_FILE
from lrn.training.config import TrainConfig
from lrn.training.lock import NAME as LOCK
from lrn.training.lock import Lock
from lrn.training.lock import check_free as check_unlocked

BUILTIN = "builtin:"  # such data has a name, not a place
FORMAT = 2  # of the folder; raised when an older version's can no longer be used


class Run:
    """One run folder. Make one with :meth:`create`, open one with :meth:`open`."""

    def __init__(self, folder: Path, task: str, config: dict[str, Any]) -> None:
        self.folder, self.task, self.config = folder, task, config
        self._lock: Lock | None = None

    @property
    def best(self) -> Path:
        return self.folder / "best.ckpt"

    @property
    def last(self) -> Path:
        return self.folder / "last.ckpt"

    def epoch(self, number: int) -> Path:
        """Where the weights after an epoch are kept."""
        return self.folder / f"epoch-{number}.ckpt"

    def epochs(self) -> dict[int, Path]:
        """The weights after whole epochs that are kept, by the epoch's number."""
        names = (re.fullmatch(r"epoch-([1-9]\d*)\.ckpt", path.name) for path in self.folder.iterdir())
        numbers = sorted(int(name[1]) for name in names if name)
        return {number: self.epoch(number) for number in numbers}

    @property
    def log(self) -> Path:
        return self.folder / "log.csv"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.json"

    @staticmethod
    def folder_for(task: str, config: TrainConfig) -> Path:
        return Path(config.out or f"runs/{task}-{own.folder_name(config.unit)}-{config.preset}-{config.seed}")

    @classmethod
    def check_free(cls, task: str, config: TrainConfig) -> None:
        """Raise a ValueError if the folder that a new run would have is taken and may not go."""
        folder = cls.folder_for(task, config)
        reason = hindrance(folder.absolute().parent)  # where it is filled under another name
        if reason:
            raise _cannot_make(folder, reason)
        try:
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"{folder} is a file; --out must name a folder")
            if not folder.exists() or not _content(folder):
                return
        except OSError as error:
            raise _cannot_make(folder, error.strerror or str(error)) from None
        if not _is_run(folder):
            raise ValueError(f"{folder} exists and is not a run folder; choose another: --out")
        if not config.overwrite:
            raise ValueError(
                f"{folder} exists. Go on with it: lrn train --resume {folder}; "
                "start anew: --overwrite; or choose another folder: --out"
            )
        check_unlocked(folder)

    @classmethod
    def create(
        cls,
        task: str,
        config: TrainConfig,
        about: dict[str, Any],
        begin: Callable[[Run], object] = lambda run: None,
    ) -> Run:
        """A new folder, locked, into which ``begin`` puts what the task keeps there.

        It is filled under another name and then moved to its place, so that there is a whole run or none.
        One that exists and is not empty is an error unless ``config.overwrite``.
        """
        cls.check_free(task, config)
        folder = cls.folder_for(task, config)
        data = config.data
        if data and not data.startswith(BUILTIN):
            data = str(Path(data).resolve())  # to be found from anywhere
        settings = asdict(config) | {"data": data, "out": None, "overwrite": False}  # it may be moved
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        try:
            _remove_leftovers(folder)
            temporary.mkdir(parents=True)
            run = cls(temporary, task, settings)
            run.lock()
            write_json(temporary / "about.json", {"command": command(), "versions": versions(), **about})
            begin(run)
            write_json(temporary / "config.json", {"task": task, "format": FORMAT, **settings})
            _put_in_place(temporary, folder)
        except OSError as error:
            reason = (error.strerror or str(error)).replace(str(temporary), str(folder))
            raise _cannot_make(folder, reason) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        run.folder = folder
        return run

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """An existing folder, as far as its settings go."""
        folder = Path(folder)
        if folder.is_file():
            raise ValueError(_not_a_folder(folder))
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no run folder {folder}{_similar(folder)}")
        if not (folder / "config.json").exists():
            raise ValueError(f"{folder} is not a run folder: it has no config.json{_inside(folder)}")
        settings = read_json(folder / "config.json")
        if not isinstance(settings, dict) or not isinstance(settings.get("task"), str):
            raise ValueError(f"{folder / 'config.json'} does not name a task")
        run = cls(folder, settings.pop("task"), settings)
        if settings.pop("format", 1) != FORMAT:
            raise ValueError(
                f"{folder} was made by lrn {run.made_by()}, whose run folders this version "
                f"({lrn.__version__}) does not read; train it anew, or use that version"
            )
        return run

    def made_by(self) -> str:
        """The version of lrn that made this folder, as far as it says."""
        try:
            return str(self.about()["versions"]["lrn"])
        except (OSError, ValueError, KeyError, TypeError):
            return "of another version"

    def lock(self) -> None:
        """Make this process the folder's only writer, or raise a ValueError that names who is."""
        self._lock = Lock(self.folder)

    def check_unlocked(self) -> None:
        """Raise a ValueError if another process is writing to the folder now."""
        check_unlocked(self.folder)

    def release(self) -> None:
        """Let others write."""
        if self._lock:
            self._lock.release()
            self._lock = None

    def change(self, **settings: Any) -> None:
        """Change settings of a run that is told to go further."""
        self.config |= settings
        write_json(self.folder / "config.json", {"task": self.task, "format": FORMAT, **self.config})

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
        before = read_json(self.metrics) if self.metrics.exists() else {}
        write_json(self.metrics, before | values)


def first_process() -> bool:
    """Whether this is the first of the processes of a training, which all run the same command."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0"


def _cannot_make(folder: Path, reason: str) -> ValueError:
    return ValueError(f"cannot make the run folder {folder} ({reason}); choose another: --out")


def _content(folder: Path) -> list[Path]:
    """What is in a folder beside a lock that nobody holds."""
    return [path for path in folder.iterdir() if path.name != LOCK]


def _remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed left beside the folder it was making."""
    for left in folder.parent.glob(f".{folder.name}.*.part"):
        try:
            Lock(left).release()
        except (OSError, ValueError):  # no folder, or somebody is still at it
            continue
        shutil.rmtree(left, ignore_errors=True)


def _put_in_place(temporary: Path, folder: Path) -> None:
    """Move a finished folder to its place; what is there may go, unless somebody is writing to it."""
    if not folder.exists():
        os.rename(temporary, folder)
        return
    lock = Lock(folder)
    try:
        away = folder.with_name(f".{folder.name}.{os.getpid()}.old.part")
        os.rename(folder, away)
        os.rename(temporary, folder)
        shutil.rmtree(away, ignore_errors=True)
    finally:
        lock.release()


def _not_a_folder(file: Path) -> str:
    """What to say of a file where a run folder was expected."""
    if file.suffix.lower() == MODEL_FILE:
        return f"{file} is an exported model, which lrn serve and lrn.load take; expected a run folder"
    if (file.parent / "config.json").exists():
        return f"{file} is a file; name the run folder that it is in: {file.parent}"
    return f"{file} is a file; expected a run folder"


def _inside(folder: Path) -> str:
    """The end of an error that names the run folders in a folder that is none itself, five at most."""
    runs = sorted(str(path.parent) for path in folder.glob("*/config.json"))
    if not runs:
        return ""
    more = f" and {len(runs) - 5:,} more" if len(runs) > 5 else ""
    return f"; the run folders in it: {', '.join(runs[:5])}{more}"


def _similar(folder: Path) -> str:
    """A hint at the run beside it, or in runs/, that was meant."""
    near = [*folder.parent.glob("*/config.json"), *Path("runs").glob("*/config.json")]
    return nearest(folder, [str(path.parent) for path in near]) if near else ""


def _is_run(folder: Path) -> bool:
    """Whether it was made here, by whatever version: many programs have a config.json."""
    try:
        settings = read_json(folder / "config.json")
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and "task" in settings and (folder / "about.json").is_file()


def command() -> str:
    """How this process was started, without the path to the program."""
    return " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:]])


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
        "engine": os.environ.get("LRN_ENGINE") or "the device's own",
    }
    found["lrn"] = lrn.__version__
    for package in ("torch", "lightning", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
