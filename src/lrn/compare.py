"""``lrn compare``: the same model, only the unit changed; quality, parameters and time of each.

Every unit and seed is a run of its own, in a process of its own, one after the other. What is finished is
kept, so a comparison that was stopped goes on where it was. Times are measured afterwards: training steps of
all units, taking turns in one process, on the same batches.
"""

from __future__ import annotations

import csv
import importlib.util
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from lrn import tasks
from lrn.checks import choice
from lrn.files import make_folder, write_json
from lrn.names import UNITS
from lrn.progress import QUIET_SECONDS
from lrn.report import page, records, tables
from lrn.report.memory import Picture, inline
from lrn.report.results import Comparison, Curve, Drawing, Facts, Timing, UnitResult, spoken
from lrn.training.config import TrainConfig
from lrn.training.lock import NAME as LOCK
from lrn.training.lock import Lock
from lrn.training.run import Run, command, versions

if TYPE_CHECKING:
    from lrn.tasks.base import Task

    AnyTask = Task[Any, Any, Any, Any]

SECONDS = 30.0  # for timing
PLAN, RESULTS = "compare.json", "results.json"


def compare(task: str, config: TrainConfig, units: list[str], seeds: list[int], out: Path) -> int:
    """Train, measure, and write results.json, table.md, table.tex and report.html into ``out``."""
    console = Console()
    make_folder(out)
    lock = Lock(out)
    try:
        _claim(out, task, config, units, seeds)
        return _compare(task, config, units, seeds, out, console)
    finally:
        lock.release()


def _compare(
    task: str, config: TrainConfig, units: list[str], seeds: list[int], out: Path, console: Console
) -> int:
    plan = [(unit, seed) for seed in seeds for unit in units]
    if not _train_all(task, config, plan, out, console):
        print(f"stopped; the same command goes on where it was ({out})", file=sys.stderr)
        return 130
    times = _known_times(out / RESULTS, units)
    if not times:
        console.print("measuring the time of training steps, taking turns …")
        times = time_units(task, config, units)
    results = _comparison(tasks.load(task), config, times, seeds, out)
    results.write(out / RESULTS)
    tables.write(results, out)
    page.write(results, out / "report.html")
    console.print(tables.terminal(results))
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)
    return 0


def check_free(out: Path, task: str, config: TrainConfig, units: list[str], seeds: list[int]) -> None:
    """Raise a ValueError unless the folder is free, that of this very comparison, or may be overwritten."""
    path = out / PLAN
    if path.exists() and not config.overwrite:
        found, wanted = records.read(dict[str, object], path), _plan(task, config, units, seeds)
        differing = _differing(found, wanted)
        if differing and (out / "runs").exists():
            raise ValueError(
                f"{out} holds a comparison with other {' and '.join(differing)}; choose another --out, "
                "or --overwrite"
            )
    elif not path.exists() and out.is_dir() and _content(out):
        raise ValueError(f"{out} exists and is not a comparison; choose another --out")


def _differing(found: Facts, wanted: Facts) -> list[str]:
    """What two comparisons do not share, by name; of their settings each by its own."""
    apart = [name for name in wanted if name != "config" and found.get(name) != wanted[name]]
    before, now = found.get("config"), wanted["config"]
    if not isinstance(before, dict) or not isinstance(now, dict):
        return [*apart, "config"]
    changed = [name for name in now if before.get(name) != now[name]]
    return apart + [f"{name} ({before.get(name)}, now {now[name]})" for name in changed]


def _claim(out: Path, task: str, config: TrainConfig, units: list[str], seeds: list[int]) -> None:
    """Write down what the folder is for, unless it says so already."""
    check_free(out, task, config, units, seeds)
    if (out / "runs").exists() and not config.overwrite:
        return
    for entry in _content(out):
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    write_json(out / PLAN, _plan(task, config, units, seeds))


def _content(out: Path) -> list[Path]:
    """What is in the folder beside its lock."""
    return [entry for entry in out.iterdir() if entry.name != LOCK]


def _plan(task: str, config: TrainConfig, units: list[str], seeds: list[int]) -> Facts:
    """What tells a comparison from others."""
    return {"task": task, "units": units, "seeds": seeds, "config": _settings(config)}


def _settings(config: TrainConfig) -> Facts:
    """What all runs share."""
    own = ("unit", "seed", "out", "overwrite")
    return {name: value for name, value in asdict(config).items() if name not in own}


def _folder(out: Path, unit: str, seed: int) -> Path:
    return out / "runs" / f"{unit}-{seed}"


def _training_step(task: AnyTask, config: TrainConfig) -> Callable[[], object]:
    """A call that takes a training step, on a few batches in turn."""
    from lrn.training import device
    from lrn.training.loop import Loop

    learner = task.prepare(config)
    loop = Loop(learner, device.fabric(config))
    steps = learner.steps(0)
    work = cycle(steps[1:9] or steps)  # not the first, which begins an epoch, unless there is no other
    learner.model.train()
    return lambda: loop.take(next(work))


# Training ---------------------------------------------------------------------------------------


def _train_all(
    task: str, config: TrainConfig, plan: list[tuple[str, int]], out: Path, console: Console
) -> bool:
    """Train what is not finished; False if the user stopped it."""
    metric = tasks.load(task).metric
    with _screen(plan, console) as screen:
        for run in plan:
            folder = _folder(out, *run)
            if not (folder / "metrics.json").exists():
                screen.begin(run)
                child = _start(task, config, *run, out)
                line = ""
                try:
                    for line in _lines_of(child):
                        screen.hear(run, line)
                    code = child.wait()
                except KeyboardInterrupt:
                    child.wait()
                    return False
                if code == 130:
                    return False
                if code:
                    reason = line.removeprefix("lrn: ")
                    raise ValueError(f"training {run[0]} (seed {run[1]}) failed: {reason}")
            score = _metrics(folder, metric).score
            screen.end(run, f"done: {spoken(metric)} {score:.2f}" if score is not None else "done")
    return True


def _start(task: str, config: TrainConfig, unit: str, seed: int, out: Path) -> subprocess.Popen[str]:
    folder = _folder(out, unit, seed)
    words = [sys.executable, "-m", "lrn", "train"]
    if (folder / "config.json").exists():
        words += ["--resume", str(folder)]
    else:
        settings = out / "settings.json"  # which YAML reads too
        write_json(settings, {**_settings(config), "unit": unit, "seed": seed, "out": str(folder)})
        words += [task, "--config", str(settings)]
    return subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LRN_QUIET_SECONDS": "1", "COLUMNS": "200"},
    )


def _lines_of(child: subprocess.Popen[str]) -> Iterator[str]:
    assert child.stderr is not None
    for line in child.stderr:
        if line.strip():
            yield line.strip()


class _Screen:
    """What is said while units are trained.

    Args:
        plan: the trainings, by unit and seed.
        say: takes a line about one of them, and whether it is one that must be seen.
    """

    def __init__(self, plan: list[tuple[str, int]], say: Callable[[_Screen, tuple[str, int], bool], None]):
        self.said, self._say = dict.fromkeys(plan, "waiting"), say
        self.done, self._known, self._start = 0, 0, time.perf_counter()

    def begin(self, run: tuple[str, int]) -> None:
        """A training begins."""
        self._tell(run, "starting", True)

    def hear(self, run: tuple[str, int], line: str) -> None:
        """A line of a training that is going on."""
        self._tell(run, line, False)

    def end(self, run: tuple[str, int], line: str) -> None:
        """A training is done, or was already."""
        self.done += 1
        self._known += self.said[run] == "waiting"  # was there before, and took no time
        self._tell(run, line, True)

    def _tell(self, run: tuple[str, int], line: str, must: bool) -> None:
        self.said[run] = line
        self._say(self, run, must)

    @property
    def left(self) -> str:
        """About how long it will still take, by what the trainings have taken so far."""
        taken = self.done - self._known
        if not taken or self.done == len(self.said):
            return ""
        seconds = (time.perf_counter() - self._start) / taken * (len(self.said) - self.done)
        return f", about {math.ceil(seconds / 60)} min left"


@contextmanager
def _screen(plan: list[tuple[str, int]], console: Console) -> Iterator[_Screen]:
    """A living table in a terminal; elsewhere a line for every training, and one every 15 seconds."""
    if not console.is_terminal:
        yield _Screen(plan, _Lines(console))
        return
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        yield _Screen(plan, lambda screen, run, must: live.update(_table(screen)))


class _Lines:
    """Says where a comparison is, in lines: what must be seen, and the rest now and then."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, 0.0

    def __call__(self, screen: _Screen, run: tuple[str, int], must: bool) -> None:
        now = time.perf_counter()
        if not must and now < self._next:
            return
        self._next = now + QUIET_SECONDS
        number = [*screen.said].index(run) + 1
        text = f"{number}/{len(screen.said)} {run[0]}, seed {run[1]}: {screen.said[run]}{screen.left}"
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)


def _table(screen: _Screen) -> Table:
    table = Table("unit", "seed", "", title=f"{screen.done} of {len(screen.said)} trained{screen.left}")
    for (unit, seed), line in screen.said.items():
        table.add_row(unit, str(seed), line[:90])
    return table


# Measuring --------------------------------------------------------------------------------------


def time_units(
    task: str, config: TrainConfig, units: list[str], seconds: float = SECONDS
) -> dict[str, Timing]:
    """The time of a training step of each unit, on the same few batches, taking turns."""
    import torch

    from lrn.bench.timing import alternate

    if config.threads:
        torch.set_num_threads(config.threads)
    known = tasks.load(task)
    calls = {unit: _training_step(known, replace(config, unit=unit)) for unit in units}
    return alternate(calls, seconds)


def _known_times(path: Path, units: list[str]) -> dict[str, Timing]:
    """The times that this comparison has measured already; empty if it has not."""
    if not path.exists():
        return {}
    times = Comparison.read(path).times
    if list(times) != units:
        raise ValueError(f"{path} is of other units ({', '.join(times)}); delete it to measure again")
    return times


def _comparison(
    task: AnyTask, config: TrainConfig, times: dict[str, Timing], seeds: list[int], out: Path
) -> Comparison:
    """What the runs in the folder have come to, and the units' times."""
    path = _folder(out, next(iter(times)), seeds[0]) / "about.json"
    about = records.read(dict[str, object], path)
    data = records.from_json(dict[str, object], about.get("data", {}), path)
    settings = _settings(config)
    return Comparison(
        task=task.name,
        metric=task.metric,
        lower_is_better=task.lower_is_better,
        curve=task.curve,
        units={
            unit: _unit(task, [_folder(out, unit, n) for n in seeds], time) for unit, time in times.items()
        },
        seeds=tuple(seeds),
        printed=task.printed(settings, data),
        config=settings,
        data=data,
        versions=versions(),
        command=command(),
        memory=_memory(task, _folder(out, "lrn", seeds[0])),
    )


def _unit(task: AnyTask, folders: list[Path], time: Timing) -> UnitResult:
    """The runs of a unit, one for every seed."""
    metrics = [_metrics(folder, task.metric) for folder in folders]
    scores = tuple(found.score for found in metrics if found.score is not None)
    if not scores:
        raise ValueError(f"{folders[0]} has no {task.metric}: nothing to compare")
    curves = tuple(_curve(folder / "log.csv", task.curve) for folder in folders)
    return UnitResult(metrics[0].parameters, scores, curves, time)


@dataclass(frozen=True)
class _Metrics:
    """What counts of a run's metrics.json; no score if nothing was tested."""

    parameters: int
    score: float | None


def _metrics(folder: Path, metric: str) -> _Metrics:
    path = folder / "metrics.json"
    found = records.read(dict[str, object], path)
    return records.from_json(_Metrics, found | {"score": found.get(metric)}, path)


def _curve(path: Path, name: str) -> Curve:
    """Epoch and value, for every epoch."""
    with path.open(newline="") as file:
        try:
            return tuple(
                (int(row["epoch"]), float(row[name])) for row in csv.DictReader(file) if row.get(name)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None


def _memory(task: AnyTask, folder: Path) -> Drawing | None:
    """The picture of what LRN remembers of a document, for a task that has one, if it can be drawn."""
    if not folder.exists() or importlib.util.find_spec("matplotlib") is None:
        return None
    found = task.remembered_example(Run.open(folder))
    if found is None:
        return None
    picture = Picture.of(found)
    return Drawing(f"A test document, {picture.title}.", inline(picture))


def units_of(text: str) -> list[str]:
    """A list of units as typed, each known and none twice."""
    names = [choice("unit", name.strip(), UNITS) for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"--units must be different units separated by commas, like lstm,lrn; got {text!r}")
    return names


def seeds_of(text: str) -> list[int]:
    """A list of seeds as typed."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ValueError(
            f"--seeds must be different whole numbers separated by commas, like 1,2,3; got {text!r}"
        )
    return seeds
