"""What runs have come to, as a table: a row for each, or for several that differ in nothing but the seed."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lrn.report import records
from lrn.report.results import Curve, deviation_of, spoken

VALIDATIONS = ("each", "best", "last")
NOTHING = "–"


@dataclass(frozen=True)
class Trained:
    """What one run has come to.

    Args:
        folder: the run folder.
        unit: its recurrent unit.
        seed: its seed.
        settings: what may tell it from other runs beside these two, by name.
        usual: what its preset says of these settings.
        planned: the epochs that it was told.
        epochs: those that its figures are of; None of a run that is not finished.
        parameters: how many numbers its model learns; None of a run that is not finished.
        curve: the figure on the validation data as training went on.
        tests: figures on the test data, by name.
        paper: the paper's figure by what stands above it.
    """

    folder: str
    unit: str
    seed: int
    settings: dict[str, object]
    usual: dict[str, object]
    planned: int
    epochs: float | None
    parameters: int | None
    curve: Curve
    tests: dict[str, float]
    paper: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure of one run or more: a value for each, their mean, and their deviation if there are several."""

    values: tuple[float, ...]
    mean: float = field(init=False)
    deviation: float | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", statistics.fmean(self.values))
        object.__setattr__(self, "deviation", deviation_of(self.values))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.deviation is not None else "")


@dataclass(frozen=True)
class Row:
    """A row of the table; a figure that a run has not, unfinished or not tested, is not there.

    Args:
        unit: the recurrent unit.
        runs: the folders of the runs.
        seeds: the seed of each.
        parameters: how many numbers the model learns.
        epochs: those that were trained, and what there is to say about them.
        settings: what differs between the rows.
        validation: the figure on the validation data after every epoch, or the one that was asked for.
        tests: the figures on the test data, by name.
        paper: the paper's figure by what stands above it.
    """

    unit: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    parameters: int | None
    epochs: str
    settings: dict[str, object]
    validation: tuple[Figure, ...]
    tests: dict[str, Figure]
    paper: dict[str, str]


@dataclass(frozen=True)
class RunTable:
    """The runs of one task.

    Args:
        task: its name.
        settings: names of the settings that differ between the rows.
        validation: what stands above the figures on the validation data.
        tests: names of the figures on the test data.
        paper: what stands above the paper's figures.
        rows: in the order in which the runs were named.
    """

    task: str
    settings: tuple[str, ...]
    validation: str
    tests: tuple[str, ...]
    paper: tuple[str, ...]
    rows: tuple[Row, ...]


# Reading ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Metrics:
    """What counts of a run's metrics.json beside its figures."""

    parameters: int
    epochs: float


def read_metrics(path: Path) -> tuple[int, float, dict[str, float]]:
    """The parameters, the epochs and the figures on the test data of a finished run."""
    found = records.read(dict[str, object], path)
    known = records.from_json(_Metrics, found, path)
    tests = {name: value for name, value in found.items() if name.startswith("test_")}
    return known.parameters, known.epochs, records.from_json(dict[str, float], tests, path)


def read_curve(path: Path, name: str) -> Curve:
    """Epoch and value for every epoch that log.csv has; nothing where there is no log yet."""
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return tuple(
                (int(row["epoch"]), float(row[name])) for row in csv.DictReader(file) if row.get(name)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None


# Making the table -------------------------------------------------------------------------------


def table(
    task: str,
    runs: Sequence[Trained],
    *,
    metric: str,
    lower_is_better: bool,
    validation: str = "each",
    tests: Sequence[str] = (),
    single: bool = False,
) -> RunTable:
    """The table of the runs of a task.

    Runs of different seeds that differ in nothing else are one row, unless ``single``. A run that is not
    finished has a row of its own. ``validation`` is each, best or last; ``tests`` are the names of figures on
    the test data, by default the one that counts, after the last epoch too where a run has that.
    """
    shown = differing(runs)
    spread = [*dict.fromkeys(name for run in runs for name in run.tests)]
    names = [f"test_{name}" for name in tests] or [f"{metric}_last_epoch", metric]
    for name in names if tests else ():
        if name not in spread:
            there = ", ".join(name.removeprefix("test_") for name in spread) or "nothing, none is tested"
            raise ValueError(f"the runs of {task} have no {spoken(name)}; there is: {there}")
    figure = spoken(metric).removeprefix("test ")
    after = {"each": " after each epoch", "best": ", the best", "last": " after the last epoch"}[validation]
    groups = [[run] for run in runs] if single else _groups(runs, shown)
    return RunTable(
        task=task,
        settings=shown,
        validation=f"validation {figure}{after}",
        tests=tuple(name for name in names if name in spread or name == metric),
        paper=tuple(dict.fromkeys(name for run in runs for name in run.paper)),
        rows=tuple(_row(group, shown, names, validation, lower_is_better) for group in groups),
    )


def differing(runs: Sequence[Trained]) -> tuple[str, ...]:
    """The settings that are not the same in all runs, but for those that the runs' presets explain."""
    first = runs[0].settings
    return tuple(
        name
        for name in first
        if any(run.settings[name] != first[name] for run in runs)
        and any(name not in run.usual or run.settings[name] != run.usual[name] for run in runs)
    )


def _groups(runs: Sequence[Trained], shown: Sequence[str]) -> list[list[Trained]]:
    """Runs that belong together: finished, of different seeds, and alike in all that is shown."""
    found: list[list[Trained]] = []
    for run in runs:
        for group in found:
            if _alike(run, group[0], shown) and run.seed not in [other.seed for other in group]:
                group.append(run)
                break
        else:
            found.append([run])
    return found


def _alike(one: Trained, other: Trained, shown: Sequence[str]) -> bool:
    finished = one.epochs is not None and other.epochs is not None
    same = (one.unit, one.planned, one.parameters) == (other.unit, other.planned, other.parameters)
    return finished and same and all(one.settings[name] == other.settings[name] for name in shown)


def _row(
    group: Sequence[Trained], shown: Sequence[str], names: Sequence[str], validation: str, lower: bool
) -> Row:
    first = group[0]
    curves = [_chosen(run.curve, validation, lower) for run in group]
    length = min(map(len, curves))  # a seed may have stopped before another
    tested = [name for name in names if all(name in run.tests for run in group)]
    return Row(
        unit=first.unit,
        runs=tuple(run.folder for run in group),
        seeds=tuple(run.seed for run in group),
        parameters=first.parameters,
        epochs=_epochs(group),
        settings={name: first.settings[name] for name in shown},
        validation=tuple(
            Figure(values) for values in zip(*(curve[:length] for curve in curves), strict=True)
        ),
        tests={name: Figure(tuple(run.tests[name] for run in group)) for name in tested},
        paper=first.paper,
    )


def _chosen(curve: Curve, validation: str, lower: bool) -> tuple[float, ...]:
    values = tuple(value for _, value in curve)
    if not values or validation == "each":
        return values
    if validation == "last":
        return values[-1:]
    return (min(values) if lower else max(values),)


def _epochs(group: Sequence[Trained]) -> str:
    """The epochs that were trained, from the least to the most where seeds differ."""
    first = group[0]
    if first.epochs is None:
        done = first.curve[-1][0] if first.curve else 0
        return f"{done} of {first.planned}, unfinished"
    counts = sorted({run.epochs for run in group if run.epochs is not None})
    return f"{counts[0]:g}" + (f" to {counts[-1]:g}" if len(counts) > 1 else "")


# Writing ----------------------------------------------------------------------------------------


def cells(found: RunTable) -> list[list[str]]:
    """The table's cells as text, the header first; empty where there is nothing to say."""
    tests = [spoken(name).replace(" last epoch", ", last epoch") for name in found.tests]
    header = ["unit", "seed", "parameters", "epochs", *found.settings, found.validation, *tests, *found.paper]
    rows = [
        [
            row.unit,
            ", ".join(map(str, row.seeds)),
            f"{row.parameters:,}" if row.parameters is not None else "",
            row.epochs,
            *(_shown(row.settings[name]) for name in found.settings),
            ", ".join(map(str, row.validation)),
            *(str(row.tests.get(name, "")) for name in found.tests),
            *(row.paper.get(name, "") for name in found.paper),
        ]
        for row in found.rows
    ]
    return [header, *rows]


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def markdown(tables: Sequence[RunTable]) -> str:
    """The tables in Markdown, with the task's name above each if there are several."""
    return "\n".join(
        (f"**{found.task}**\n\n" if len(tables) > 1 else "") + _markdown(found) for found in tables
    )


def _markdown(found: RunTable) -> str:
    header, *body = ([cell.replace("|", r"\|") or NOTHING for cell in row] for row in cells(found))
    left = {"unit", "seed", *found.settings, found.validation}
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "".join("---|" if name in left else "---:|" for name in header))
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body]) + "\n"


def comma_separated(tables: Sequence[RunTable]) -> str:
    """The tables as CSV with the task in the first column and an empty line between them."""
    texts = []
    for found in tables:
        header, *body = cells(found)
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([["task", *header], *([found.task, *row] for row in body)])
        texts.append(buffer.getvalue())
    return "\n".join(texts)


def to_json(tables: Sequence[RunTable]) -> object:
    """Plain data for JSON: every value of every seed."""
    return records.to_json(list(tables))
