"""``lrn compare``: the same model, only the unit changed; quality, parameters and time of each.

Every unit and seed is a run of its own, in a process of its own, one after the other. What is finished is
kept, so a comparison that was stopped goes on where it was, and units and seeds can be added to one that is
finished. Times are measured afterwards: training steps of all units, taking turns in one process, on the same
batches.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lrn import own, tasks
from lrn.compare import matching, rates
from lrn.compare.plan import Plan, claim, joined, seeds_of, units_of
from lrn.compare.timing import taking_turns
from lrn.compare.trainings import Metrics, Training, train_all
from lrn.files import make_folder
from lrn.progress import terminal_width
from lrn.report import page, records, tables
from lrn.report.memory import Picture, inline
from lrn.report.results import Comparison, Drawing, Timing, UnitResult
from lrn.report.runs import read_curve
from lrn.training.config import TrainConfig
from lrn.training.lock import Lock
from lrn.training.run import Run, command, versions

if TYPE_CHECKING:
    from lrn.tasks.base import Task

    AnyTask = Task[Any, Any, Any, Any]

__all__ = ["Plan", "compare", "joined", "seeds_of", "time_units", "units_of"]

SECONDS = 30.0  # for timing
RESULTS = "results.json"


def compare(plan: Plan, out: Path) -> int:
    """Train, measure, and write results.json, table.md, table.tex and report.html into ``out``."""
    console = Console(width=terminal_width())
    make_folder(out)
    lock = Lock(out)
    try:
        whole = claim(out, plan)
        more = whole.beyond(plan)
        if more:
            console.print(f"{out} also has {more}: kept", highlight=False, soft_wrap=True, markup=False)
        return _compare(whole, out, console, _command(plan, whole))
    finally:
        lock.release()


def _compare(plan: Plan, out: Path, console: Console, command: str) -> int:
    task = tasks.load(plan.task)
    trials = matched = None
    if plan.match != "width":
        matched = matching.match(task, plan, out, console)
        plan = plan.choosing("hidden", matched.widths)
    if plan.rates:
        trials = rates.choose(task, plan, out, console)
        if trials is None:
            return _stopped(out)
        plan = plan.choosing("lr", trials.chosen)
    if not train_all(plan.task, _runs(plan, out), task.metric, console):
        return _stopped(out)
    times = _known_times(out / RESULTS, plan.units)
    if not times:
        console.print("measuring the time of training steps, taking turns …")
        times = time_units(plan.task, {unit: plan.config_of(unit) for unit in plan.units})
    results = replace(_comparison(task, plan, times, out, command), trials=trials, matched=matched)
    results.write(out / RESULTS)
    tables.write(results, out)
    page.write(results, out / "report.html")
    console.print(tables.terminal(results))
    for line in tables.notes(results):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)
    return 0


def _stopped(out: Path) -> int:
    print(f"stopped; the same command goes on where it was ({out})", file=sys.stderr)
    return 130


def _command(typed: Plan, whole: Plan) -> str:
    """What repeats the whole comparison: what was typed, with all that the folder has."""
    if not whole.beyond(typed):
        return command()
    return f"{command()} --units {','.join(whole.units)} --seeds {','.join(map(str, whole.seeds))}"


def _runs(plan: Plan, out: Path) -> list[Training]:
    return [
        Training(
            unit,
            f"seed {seed}",
            _folder(out, unit, seed),
            plan.settings | plan.own(unit) | {"unit": unit, "seed": seed},
            out / "settings.json",
        )
        for seed in plan.seeds
        for unit in plan.units
    ]


def _folder(out: Path, unit: str, seed: int) -> Path:
    return out / "runs" / f"{own.folder_name(unit)}-{seed}"


# Measuring --------------------------------------------------------------------------------------


def time_units(task: str, configs: Mapping[str, TrainConfig], seconds: float = SECONDS) -> dict[str, Timing]:
    """The time of a training step of each unit with its settings, on the same few batches, taking turns."""
    known = tasks.load(task)
    return taking_turns({unit: known.prepare(config) for unit, config in configs.items()}, seconds)


def _known_times(path: Path, units: Sequence[str]) -> dict[str, Timing]:
    """The times that this comparison has measured already; empty if it has not, or not of all its units.

    Those of other units cannot be added: only times that took turns can be compared.
    """
    if not path.exists():
        return {}
    times = Comparison.read(path).times
    return {unit: times[unit] for unit in units} if set(times) == set(units) else {}


def _comparison(task: AnyTask, plan: Plan, times: dict[str, Timing], out: Path, command: str) -> Comparison:
    """What the runs in the folder have come to, and the units' times."""
    seeds = plan.seeds
    path = _folder(out, plan.units[0], seeds[0]) / "about.json"
    about = records.read(dict[str, object], path)
    data = records.from_json(dict[str, object], about.get("data", {}), path)
    printed, printed_on = task.printed(plan.settings, data), ""
    if plan.against and not printed:
        printed_on, printed = task.printed_elsewhere(plan.settings, data)
    return Comparison(
        task=task.name,
        metric=task.metric,
        lower_is_better=task.lower_is_better,
        curve=task.curve,
        units={
            unit: replace(
                _unit(task, [_folder(out, unit, n) for n in seeds], times[unit]), own=plan.own(unit)
            )
            for unit in plan.units
        },
        seeds=seeds,
        printed=printed,
        config=plan.shared,
        data=data,
        versions=versions(),
        command=command,
        memory=_memory(task, _folder(out, "lrn", seeds[0])),
        printed_on=printed_on,
        remarks=records.from_json(tuple[str, ...], about.get("remarks", []), path),
    )


def _unit(task: AnyTask, folders: list[Path], time: Timing) -> UnitResult:
    """The runs of a unit, one for every seed."""
    metrics = [Metrics.read(folder, task.metric) for folder in folders]
    scores = tuple(found.score for found in metrics if found.score is not None)
    if not scores:
        raise ValueError(f"{folders[0]} has no {task.metric}: nothing to compare")
    curves = tuple(read_curve(folder / "log.csv", task.curve) for folder in folders)
    return UnitResult(metrics[0].parameters, scores, curves, time)


def _memory(task: AnyTask, folder: Path) -> Drawing | None:
    """The picture of what LRN remembers of a document, for a task that has one, if it can be drawn."""
    if not folder.exists() or importlib.util.find_spec("matplotlib") is None:
        return None
    found = task.remembered_example(Run.open(folder))
    if found is None:
        return None
    picture = Picture.of(found)
    return Drawing(f"A test document, {picture.title}.", inline(picture))
