"""What a comparison is to compare, and how its folder remembers it."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lrn import own
from lrn.files import unfinished, write_json
from lrn.names import UNITS
from lrn.report import records
from lrn.report.results import Facts
from lrn.training.config import TrainConfig
from lrn.training.lock import NAME as LOCK

FILE = "compare.json"
MATCHES = ("width", "parameters", "time")


@dataclass(frozen=True)
class Plan:
    """What is compared.

    Args:
        task: its name.
        config: the settings of all trainings, apart from unit and seed.
        units: one or more.
        seeds: a run of every unit for each.
        rates: learning rates, of which every unit gets the one that validates best; none leaves it to config.
        against: "paper" shows the paper's scores beside ours whatever the data is; None only on its own data.
        match: what the units have in common: their width, or about their parameters or the time of a step.
        trial_seed: with which rates are tried; None is the first of the seeds.
        chosen: settings that are a unit's own, by unit; found out as the comparison goes on.
    """

    task: str
    config: TrainConfig
    units: tuple[str, ...]
    seeds: tuple[int, ...]
    rates: tuple[float, ...] = ()
    against: str | None = None
    match: str = "width"
    trial_seed: int | None = None
    chosen: Mapping[str, Facts] = field(default_factory=dict)

    @property
    def standard(self) -> str:
        """The unit that the others are measured by: LRN, or the first one where LRN is not compared."""
        return "lrn" if "lrn" in self.units else self.units[0]

    @property
    def tried_with(self) -> int:
        """The seed of trials: it stays the same when seeds are added."""
        return self.seeds[0] if self.trial_seed is None else self.trial_seed

    @property
    def settings(self) -> Facts:
        """What all runs share."""
        own = ("unit", "seed", "out", "overwrite")
        return {name: value for name, value in asdict(self.config).items() if name not in own}

    @property
    def shared(self) -> Facts:
        """The settings as they are shown, without values of those that are each unit's own."""
        own = {name for unit in self.units for name in self.own(unit)}
        return self.settings | dict.fromkeys(own, "by unit")

    def own(self, unit: str) -> Facts:
        """What a unit has of its own among the settings."""
        return dict(self.chosen.get(unit, {}))

    def config_of(self, unit: str) -> TrainConfig:
        """The settings of a unit's trainings, all but the seed."""
        changes: dict[str, Any] = {"unit": unit, **self.own(unit)}
        return replace(self.config, **changes)

    def choosing(self, name: str, values: Mapping[str, object]) -> Plan:
        """The plan with a setting that is each unit's own."""
        return replace(self, chosen={unit: self.own(unit) | {name: values[unit]} for unit in self.units})

    def beyond(self, other: Plan) -> str:
        """What this has that the other has not, in words; "" if that is nothing.

        >>> config = TrainConfig()
        >>> Plan("lm", config, ("lrn", "lstm"), (1, 2)).beyond(Plan("lm", config, ("lrn",), (1,)))
        'lstm and seed 2'
        """
        units = [unit for unit in self.units if unit not in other.units]
        seeds = [str(seed) for seed in self.seeds if seed not in other.seeds]
        numbers = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}" if seeds else ""
        return " and ".join(part for part in (", ".join(units), numbers) if part)


@dataclass(frozen=True)
class Remembered:
    """A plan as its folder has it."""

    task: str
    units: tuple[str, ...]
    seeds: tuple[int, ...]
    config: Facts
    lrs: tuple[float, ...] = ()
    trial_seed: int | None = None
    match: str = "width"

    @classmethod
    def of(cls, plan: Plan) -> Remembered:
        seed = plan.tried_with if plan.rates else None
        return cls(plan.task, plan.units, plan.seeds, plan.settings, plan.rates, seed, plan.match)

    @classmethod
    def read(cls, path: Path) -> Remembered:
        found = records.read(cls, path)
        for unit in found.units:  # they become names of folders
            own.check(f"unit in {path}", unit)
        return found


def joined(out: Path, plan: Plan) -> Plan:
    """The plan together with the comparison that the folder holds.

    Units and seeds can be added to a comparison; none is taken from it. Where units are added all are in the
    order of ``names.UNITS``, then a user's own by name, and seeds in their own.

    Raises:
        ValueError: the folder holds something else, which may not be thrown away.
    """
    path = out / FILE
    if not path.exists():
        if out.is_dir() and _content(out):
            raise ValueError(f"{out} exists and is not a comparison; choose another --out")
        return plan
    if plan.config.overwrite or not _begun(out):
        return plan
    found = Remembered.read(path)
    differing = _differing(found, Remembered.of(plan))
    if differing:
        raise ValueError(
            f"{out} holds a comparison with other {' and '.join(differing)}; choose another --out, "
            "or --overwrite"
        )
    units, seeds = {*found.units, *plan.units}, {*found.seeds, *plan.seeds}
    return replace(
        plan,
        units=found.units if units == {*found.units} else _ordered(units),
        seeds=found.seeds if seeds == {*found.seeds} else tuple(sorted(seeds)),
        trial_seed=found.trial_seed,
    )


def _ordered(units: set[str]) -> tuple[str, ...]:
    ours = [unit for unit in UNITS if unit in units]
    return (*ours, *sorted(units.difference(ours)))


def claim(out: Path, plan: Plan) -> Plan:
    """Write down what the folder is for, and give the plan together with what was there."""
    whole = joined(out, plan)
    for left in filter(unfinished, out.iterdir()):
        left.unlink()
    if plan.config.overwrite or not _begun(out):
        for entry in _content(out):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    write_json(out / FILE, records.to_json(Remembered.of(whole)))
    return whole


def _begun(out: Path) -> bool:
    """Whether something was trained there."""
    return any((out / name).exists() for name in ("runs", "trials"))


def _content(out: Path) -> list[Path]:
    """What is in the folder beside its lock, and beside files that were being written when somebody died."""
    return [entry for entry in out.iterdir() if entry.name != LOCK and not unfinished(entry)]


def _differing(found: Remembered, wanted: Remembered) -> list[str]:
    """What two comparisons do not share, by name; of their settings each by its own."""
    apart = ["task"] if found.task != wanted.task else []
    if found.lrs != wanted.lrs:
        apart.append(f"lrs ({_typed(found.lrs)}, now {_typed(wanted.lrs)})")
    if found.match != wanted.match:
        apart.append(f"match ({found.match}, now {wanted.match})")
    before, now = found.config, wanted.config
    changed = [name for name in now if before.get(name) != now[name]]
    return apart + [f"{name} ({before.get(name)}, now {now[name]})" for name in changed]


def _typed(rates: tuple[float, ...]) -> str:
    return ",".join(map(str, rates)) or "none"


# Lists as typed ---------------------------------------------------------------------------------


def units_of(text: str) -> list[str]:
    """A list of units as typed, each known or a user's own, and none twice."""
    names = [own.check("unit", name.strip()) for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"--units must be different units separated by commas, like lstm,lrn; got {text!r}")
    for name in names:
        own.trust(name)
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


def rates_of(text: str | None) -> list[float]:
    """A list of learning rates as typed, the lowest first; none if nothing was typed.

    >>> rates_of("0.01,0.001")
    [0.001, 0.01]
    """
    if text is None:
        return []
    try:
        rates = sorted(float(part) for part in text.split(","))
    except ValueError:
        rates = []
    if not rates or not all(0 < rate < math.inf for rate in rates) or len(set(rates)) < len(rates):
        raise ValueError(
            "--lrs must be different positive numbers separated by commas, like 0.001,0.003,0.01; "
            f"got {text!r}"
        )
    return rates
