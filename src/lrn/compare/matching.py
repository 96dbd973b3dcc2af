"""The width of each unit, chosen so that all models are alike in parameters, or in the time of a step."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lrn.compare.plan import Plan
from lrn.compare.timing import taking_turns
from lrn.files import write_json
from lrn.report import records
from lrn.report.results import Matched
from lrn.training.config import MOST, TrainConfig

if TYPE_CHECKING:
    from lrn.tasks.base import Task, TaskLearner

    AnyLearner = TaskLearner[Any, Any, Any, Any, Any]

FILE = "widths.json"
SECONDS = 10.0  # of timing, for a unit at all sizes, and for its chosen one
FACTORS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # sizes at which a unit is timed
WIDEST = 8  # times the width that was asked for


def check(task: str, config: TrainConfig, by: str) -> None:
    """Raise a ValueError if the widths of a task's units cannot be chosen so."""
    if by != "width" and "hidden" not in {setting.name for setting in fields(config)}:
        raise ValueError(f"--match {by}: {task} has no setting hidden, whose value could be chosen")


def match(task: Task[Any, Any, Any, Any], plan: Plan, out: Path, console: Console) -> Matched:
    """The width of each unit of the plan; those that the folder has already stay as they are."""
    path = out / FILE
    first = Matched(plan.match, plan.standard, {plan.standard: _hidden(plan.config)}, {plan.standard: 1.0})
    found = records.read(Matched, path) if path.exists() else first
    missing = [unit for unit in plan.units if unit not in found.widths]
    if missing:
        console.print(f"choosing widths that match in {plan.match} …", highlight=False)
        sizes = Sizes(task, replace(plan.config, unit=found.standard))
        for unit in missing:
            search = _by_parameters if plan.match == "parameters" else _by_time
            width, ratio = search(sizes, unit, found.standard)
            found = replace(
                found, widths=found.widths | {unit: width}, ratios=found.ratios | {unit: round(ratio, 4)}
            )
        write_json(path, records.to_json(found))
    return replace(
        found,
        widths={unit: found.widths[unit] for unit in plan.units},
        ratios={unit: found.ratios[unit] for unit in plan.units},
    )


class Sizes:
    """Models of any unit and width on data that is read once."""

    def __init__(self, task: Task[Any, Any, Any, Any], config: TrainConfig) -> None:
        learner = task.prepare(config)
        self._task, self._data, self._kept = task, learner.data, learner.kept
        self.config: TrainConfig = learner.config
        self.width = _hidden(self.config)

    def learner(self, unit: str, width: int) -> AnyLearner:
        """A training that has not begun."""
        return self._task.learner_on(self._with(unit=unit, hidden=width), self._data, self._kept)

    def count(self, unit: str, width: int) -> int:
        """How many numbers such a model learns."""
        return sum(parameter.numel() for parameter in self.learner(unit, width).model.parameters())

    def allowed(self) -> list[int]:
        """The widths that the task takes, some must be multiples of another setting."""
        return [
            width for width in range(1, min(WIDEST * self.width, MOST["hidden"]) + 1) if self._takes(width)
        ]

    def _takes(self, width: int) -> bool:
        try:
            self._with(hidden=width)
        except ValueError:
            return False
        return True

    def _with(self, **changes: Any) -> TrainConfig:
        return replace(self.config, **changes)


def _hidden(config: TrainConfig) -> int:
    width: int = config.hidden  # type: ignore[attr-defined]  # which check() has seen
    return width


# By parameters ----------------------------------------------------------------------------------


def _by_parameters(sizes: Sizes, unit: str, standard: str) -> tuple[int, float]:
    """The width whose model has about as many parameters as the standard's, and their ratio."""
    wanted, widths = sizes.count(standard, sizes.width), sizes.allowed()
    if sizes.count(unit, widths[0]) == sizes.count(unit, widths[-1]):
        raise ValueError(
            "--match parameters: with these settings hidden does not change the size of the model"
        )
    place = bisect_left(widths, wanted, key=lambda width: sizes.count(unit, width))
    near = {width: sizes.count(unit, width) for width in widths[max(place - 1, 0) : place + 1]}
    best = min(near, key=lambda width: abs(near[width] - wanted))
    return best, near[best] / wanted


# By time ----------------------------------------------------------------------------------------


def _by_time(sizes: Sizes, unit: str, standard: str) -> tuple[int, float]:
    """The width whose training step takes about as long as the standard's, and their ratio as measured."""
    allowed = sizes.allowed()
    widths = sorted({nearest(allowed, factor * sizes.width) for factor in FACTORS})
    times = _times(sizes, standard, unit, widths)
    wanted = times.pop(0)
    best = nearest(allowed, width_at({width: times[width] for width in widths}, wanted))
    again = _times(sizes, standard, unit, [best])
    return best, again[best] / again[0]


def _times(sizes: Sizes, standard: str, unit: str, widths: Sequence[int]) -> dict[int, float]:
    """The time of a step by width, and that of the standard in its own width as 0; all take turns."""
    learners = {"0": sizes.learner(standard, sizes.width)}
    learners |= {str(width): sizes.learner(unit, width) for width in widths}
    return {int(name): time.median for name, time in taking_turns(learners, SECONDS).items()}


def width_at(times: Mapping[int, float], wanted: float) -> float:
    """The width at which the time would be the wanted one: between two by powers, never beyond those timed.

    >>> round(width_at({10: 1.0, 20: 4.0, 40: 16.0}, 9.0), 6)
    30.0
    """
    widths = sorted(times)
    for low, high in pairwise(widths):
        if times[low] <= wanted < times[high]:
            part = math.log(wanted / times[low]) / math.log(times[high] / times[low])
            return low * math.pow(high / low, part)
    return float(widths[0] if wanted < times[widths[0]] else widths[-1])


def nearest(allowed: Sequence[int], width: float) -> int:
    """The allowed width that is nearest."""
    return min(allowed, key=lambda candidate: abs(candidate - width))
