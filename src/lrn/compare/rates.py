"""The learning rate of each unit, chosen on the validation data: a trial for every unit and rate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lrn import own
from lrn.compare.plan import Plan
from lrn.compare.trainings import Training, train_all
from lrn.report.results import Trials

if TYPE_CHECKING:
    from lrn.tasks.base import Task


def choose(task: Task[Any, Any, Any, Any], plan: Plan, out: Path, console: Console) -> Trials | None:
    """Try all rates with every unit, without a test; None if the user stopped it.

    Raises:
        ValueError: all trainings of a unit diverged.
    """
    metric = f"valid_{task.monitor}"
    trials = {unit: [_trial(plan, unit, rate, out) for rate in plan.rates] for unit in plan.units}
    rates = ", ".join(map(str, plan.rates))
    console.print(f"trying every unit with the learning rates {rates} …", highlight=False, soft_wrap=True)
    if not train_all(plan.task, [trial for found in trials.values() for trial in found], metric, console):
        return None
    scores = {unit: tuple(_finite(trial.score(metric)) for trial in found) for unit, found in trials.items()}
    chosen = {unit: _best(plan, unit, found, task.lower_is_better) for unit, found in scores.items()}
    return Trials(metric, plan.tried_with, plan.rates, scores, chosen)


def _trial(plan: Plan, unit: str, rate: float, out: Path) -> Training:
    return Training(
        unit,
        f"lr {rate}",
        out / "trials" / f"{own.folder_name(unit)}-{rate}",
        plan.settings | plan.own(unit) | {"unit": unit, "seed": plan.tried_with, "lr": rate, "test": False},
        out / "settings.json",
        may_diverge=True,
    )


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


def _best(plan: Plan, unit: str, scores: tuple[float | None, ...], lower_is_better: bool) -> float:
    found = {rate: score for rate, score in zip(plan.rates, scores, strict=True) if score is not None}
    if not found:
        rates = ", ".join(map(str, plan.rates))
        raise ValueError(f"{unit} diverged with every one of --lrs ({rates}); try smaller ones")
    return (min if lower_is_better else max)(found, key=found.__getitem__)
