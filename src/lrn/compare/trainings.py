"""The trainings of a comparison: each a process, one after the other, and what is said of them meanwhile."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from lrn.files import make_folder, write_json, write_text
from lrn.progress import DIVERGED, QUIET_SECONDS
from lrn.report import records
from lrn.report.results import Facts, spoken

GRACE = 30.0  # seconds in which a training ends by itself


@dataclass(frozen=True, eq=False)
class Training:
    """A training of a comparison.

    Args:
        unit: of its model.
        label: what tells it from the others of the unit, like "seed 1".
        folder: its run folder.
        settings: all of them but the folder.
        file: where they are written, for the process that reads them.
        may_diverge: whether a training that diverges is an outcome like others, and not an error.
    """

    unit: str
    label: str
    folder: Path
    settings: Facts
    file: Path
    may_diverge: bool = False

    @property
    def diverged(self) -> Path:
        """The file that says how the training diverged, if it did and may."""
        return self.folder.with_name(f"{self.folder.name}.diverged")

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to train."""
        return (self.folder / "metrics.json").exists() or self.diverged.exists()

    def score(self, metric: str) -> float | None:
        """What it has come to; None if it diverged, or has nothing of that name."""
        return None if self.diverged.exists() else Metrics.read(self.folder, metric).score

    def outcome(self, metric: str) -> str:
        """The same in words."""
        if self.diverged.exists():
            return "diverged"
        score = self.score(metric)
        return "done" if score is None else f"done: {spoken(metric)} {score:.2f}"


@dataclass(frozen=True)
class Metrics:
    """What counts of a run's metrics.json; no score where the run has none of that name."""

    parameters: int
    score: float | None

    @classmethod
    def read(cls, folder: Path, metric: str) -> Metrics:
        """Of a run that is finished; the score is what it calls ``metric``."""
        path = folder / "metrics.json"
        found = records.read(dict[str, object], path)
        return records.from_json(cls, found | {"score": found.get(metric)}, path)


def train_all(task: str, trainings: Sequence[Training], metric: str, console: Console) -> bool:
    """Train what is not finished, and say what each has come to; False if the user stopped it."""
    warned: set[str] = set()
    with _screen(trainings, console) as screen:
        for training in trainings:
            if not training.is_over:
                screen.begin(training)
                child = start(task, training)
                line = ""
                try:
                    for line in _lines_of(child):
                        if line.startswith("warning: ") and line not in warned:
                            warned.add(line)  # of all trainings that say the same, the first
                            console.print(line, highlight=False, soft_wrap=True, markup=False)
                        screen.hear(training, line)
                    code = child.wait()
                except BaseException as error:
                    _end(child)
                    if isinstance(error, KeyboardInterrupt):
                        return False
                    raise
                if code == 130:
                    return False
                if code:
                    reason = line.removeprefix("lrn: ")
                    if not training.may_diverge or DIVERGED not in reason:
                        raise ValueError(f"training {training.unit} ({training.label}) failed: {reason}")
                    make_folder(training.diverged.parent)
                    write_text(training.diverged, f"{reason}\n")
            screen.end(training, training.outcome(metric))
    return True


def start(task: str, training: Training) -> subprocess.Popen[str]:
    """A process that trains, or goes on where another was stopped."""
    words = [sys.executable, "-m", "lrn", "train"]
    if (training.folder / "config.json").exists():
        words += ["--resume", str(training.folder)]
    else:
        write_json(training.file, {**training.settings, "out": str(training.folder)})  # which YAML reads too
        words += [task, "--config", str(training.file)]
    return subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LRN_QUIET_SECONDS": "1", "COLUMNS": "200"},
    )


def _end(child: subprocess.Popen[str]) -> None:
    """Let a training that was told to stop, as Ctrl-C tells all, save where it is; tell one that was not."""
    try:
        child.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        child.terminate()
        child.communicate()


def _lines_of(child: subprocess.Popen[str]) -> Iterator[str]:
    assert child.stderr is not None
    for line in child.stderr:
        if line.strip():
            yield line.strip()


# What is said -----------------------------------------------------------------------------------


class _Screen:
    """What is said while units are trained.

    Args:
        trainings: all of them, in their order.
        say: takes a line about one of them, and whether it is one that must be seen.
    """

    def __init__(self, trainings: Sequence[Training], say: Callable[[_Screen, Training, bool], None]) -> None:
        self.said, self._say = dict.fromkeys(trainings, "waiting"), say
        self.done, self._known, self._start = 0, 0, time.perf_counter()

    def begin(self, training: Training) -> None:
        """A training begins."""
        self._tell(training, "starting", True)

    def hear(self, training: Training, line: str) -> None:
        """A line of a training that is going on."""
        self._tell(training, line, False)

    def end(self, training: Training, line: str) -> None:
        """A training is done, or was already."""
        self.done += 1
        self._known += self.said[training] == "waiting"  # was there before, and took no time
        self._tell(training, line, True)

    def _tell(self, training: Training, line: str, must: bool) -> None:
        self.said[training] = line
        self._say(self, training, must)

    @property
    def left(self) -> str:
        """About how long it will still take, by what the trainings have taken so far."""
        taken = self.done - self._known
        if not taken or self.done == len(self.said):
            return ""
        seconds = (time.perf_counter() - self._start) / taken * (len(self.said) - self.done)
        return f", about {math.ceil(seconds / 60)} min left"


@contextmanager
def _screen(trainings: Sequence[Training], console: Console) -> Iterator[_Screen]:
    """A living table in a terminal; elsewhere a line for every training, and one every 15 seconds."""
    if not console.is_terminal:
        yield _Screen(trainings, _Lines(console))
        return
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        yield _Screen(trainings, lambda screen, training, must: live.update(_table(screen)))


class _Lines:
    """Says where a comparison is, in lines: what must be seen, and the rest now and then."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, 0.0

    def __call__(self, screen: _Screen, training: Training, must: bool) -> None:
        now = time.perf_counter()
        if not must and now < self._next:
            return
        self._next = now + QUIET_SECONDS
        place = f"{[*screen.said].index(training) + 1}/{len(screen.said)}"
        text = f"{place} {training.unit}, {training.label}: {screen.said[training]}{screen.left}"
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)


def _table(screen: _Screen) -> Table:
    table = Table("unit", "", "", title=f"{screen.done} of {len(screen.said)} trained{screen.left}")
    for training, line in screen.said.items():
        table.add_row(training.unit, training.label, line[:90])
    return table
