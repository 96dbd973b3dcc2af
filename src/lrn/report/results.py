"""What a comparison of units found: all that its tables and its page show, and that results.json carries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from lrn.files import write_json
from lrn.report import records

Curve: TypeAlias = tuple[tuple[int, float], ...]  # epoch and value
Facts: TypeAlias = dict[str, object]  # what is shown as names and values, whatever they are


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median and quartiles over the rounds."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class UnitResult:
    """What came of one unit.

    Args:
        parameters: how many numbers its model learns.
        scores: the task's metric on the test data, one for every seed.
        curves: the metric on the validation data as training went on, one for every seed.
        time: of one training step.
        own: settings that are the unit's own, like its learning rate.
        mean: of the scores.
        deviation: of the scores; None of a single one, or if a training came to nothing finite.
    """

    parameters: int
    scores: tuple[float, ...]
    curves: tuple[Curve, ...]
    time: Timing
    own: Facts = field(default_factory=dict)
    mean: float = field(init=False)
    deviation: float | None = field(init=False)

    def __post_init__(self) -> None:
        if not self.scores:
            raise ValueError("a unit must have a score")
        object.__setattr__(self, "mean", statistics.fmean(self.scores))
        object.__setattr__(self, "deviation", deviation_of(self.scores))


@dataclass(frozen=True)
class Trials:
    """Trainings that chose each unit's learning rate.

    Args:
        metric: name of the score on the validation data that decided, like valid_loss.
        seed: of all of them.
        rates: that were tried, the lowest first.
        scores: by unit, one for every rate; None of a training that diverged.
        chosen: the best rate of each unit.
    """

    metric: str
    seed: int
    rates: tuple[float, ...]
    scores: dict[str, tuple[float | None, ...]]
    chosen: dict[str, float]

    def at_edge(self, unit: str) -> bool:
        """Whether the best rate is the lowest or the highest of several, so that one beyond may be better."""
        return len(self.rates) > 1 and self.chosen[unit] in (self.rates[0], self.rates[-1])


@dataclass(frozen=True)
class Matched:
    """Widths that were chosen so that the models are alike in something else.

    Args:
        by: parameters, or time, that of a training step.
        standard: the unit that the others were to be like.
        widths: of each unit.
        ratios: what each came to, relative to the standard.
    """

    by: str
    standard: str
    widths: dict[str, int]
    ratios: dict[str, float]


@dataclass(frozen=True)
class Drawing:
    """An SVG picture to be shown as it is, and what to say below it."""

    caption: str
    svg: str


@dataclass(frozen=True)
class Comparison:
    """The same model and settings, only the recurrent unit changed.

    Args:
        task: its name.
        metric: name of the score, like test_perplexity.
        lower_is_better: whether a lower score is better.
        curve: name of what the curves show, like valid_perplexity.
        units: what came of each.
        seeds: with which each was trained.
        printed: the paper's score by unit, as it prints it; empty unless setting and data are the paper's, or
            it was asked for.
        config: the settings that all trainings shared.
        data: what there is to say about the data.
        versions: of the programs and the machine.
        command: that repeats it.
        memory: the picture of what LRN remembers, for a task that has one.
        trials: that chose the learning rates, if each unit has its own.
        matched: how the widths were chosen, if each unit has its own.
        printed_on: what the paper's scores are of, where setting or data are not the paper's.
        remarks: what of the data was not read, and what makes its figures doubtful.
    """

    task: str
    metric: str
    lower_is_better: bool
    curve: str
    units: dict[str, UnitResult]
    seeds: tuple[int, ...]
    printed: dict[str, str]
    config: Facts
    data: Facts
    versions: dict[str, str]
    command: str
    memory: Drawing | None = None
    trials: Trials | None = None
    matched: Matched | None = None
    printed_on: str = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.units:
            raise ValueError("a comparison must have a unit")

    @property
    def title(self) -> str:
        """What was compared, in a line."""
        seeds = ", ".join(map(str, self.seeds))
        several = "s" if len(self.seeds) > 1 else ""
        return f"{self.task}, preset {self.config.get('preset')}, seed{several} {seeds}"

    @property
    def times(self) -> dict[str, Timing]:
        """The times of a training step by unit."""
        return {unit: result.time for unit, result in self.units.items()}

    @property
    def standard(self) -> str:
        """The unit that the others are measured by: LRN, or the first one where LRN is not compared."""
        return "lrn" if "lrn" in self.units else next(iter(self.units))

    @property
    def ratios(self) -> dict[str, float]:
        """The times of a training step relative to the standard's, by unit."""
        one = self.units[self.standard].time.median
        return {unit: time.median / one for unit, time in self.times.items()}

    def to_json(self) -> Facts:
        """Plain data for JSON."""
        content: Facts = records.to_json(self)
        return content

    def write(self, path: Path) -> None:
        """Write results.json."""
        write_json(path, self.to_json())

    @classmethod
    def read(cls, path: Path) -> Comparison:
        """Read results.json; one that is damaged or something else is an error of one line."""
        return records.read(cls, path)


def deviation_of(scores: Sequence[float]) -> float | None:
    """How far scores are apart; None of a single one, or if a training came to nothing finite.

    >>> deviation_of([1.0, 2.0, 3.0]), deviation_of([1.0])
    (1.0, None)
    """
    several = len(scores) > 1 and all(map(math.isfinite, scores))
    return statistics.stdev(scores) if several else None


def spoken(name: str) -> str:
    """A metric's name in words.

    >>> spoken("test_perplexity")
    'test perplexity'
    """
    return name.replace("_", " ")
