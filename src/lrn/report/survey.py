"""Comparisons of the same units on several tasks as one table and one page: a row for every task."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from html import escape
from pathlib import Path

from rich.table import Table

from lrn.files import write_text
from lrn.report import charts, tables
from lrn.report.page import document, figure
from lrn.report.results import Comparison, spoken


def write(found: Mapping[str, Comparison], folder: Path) -> None:
    """Write table.md and report.html; each task's own comparison is in the folder of its name."""
    write_text(folder / "table.md", markdown(found))
    write_text(folder / "report.html", render(found))


def rows(found: Mapping[str, Comparison]) -> list[list[str]]:
    """The cells of the table as text, the header first: score and relative time of every unit, by task."""
    units = _units(found)
    table = [["task", "score", *units]]
    for task, results in found.items():
        better = "↓" if results.lower_is_better else "↑"
        table.append([task, f"{spoken(results.metric)} {better}", *(_cell(results, unit) for unit in units)])
    return table


def _standard(found: Mapping[str, Comparison]) -> str:
    """The unit that the others are measured by."""
    return next(iter(found.values())).standard


def _caption(found: Mapping[str, Comparison]) -> str:
    """What is in a cell."""
    times = f"time of a training step relative to {_standard(found)}, less is better"
    return f"score (↓ less, ↑ more is better) · {times}"


def _units(found: Mapping[str, Comparison]) -> list[str]:
    """Every unit that was compared somewhere, in the order of the comparisons."""
    return list(dict.fromkeys(unit for results in found.values() for unit in results.units))


def _cell(results: Comparison, unit: str) -> str:
    if unit not in results.units:
        return ""
    return f"{results.units[unit].mean:.2f} · {results.ratios[unit]:.2f}x"


def summary(found: Mapping[str, Comparison]) -> list[str]:
    """What came out, in sentences: how fast LRN is against every other unit, and how good it is by task; the
    same of the first unit where LRN is not compared."""
    standard = _standard(found)
    both = {task: results for task, results in found.items() if standard in results.units}
    lines, times = [], []
    for unit in _units(found):
        ratios = [results.ratios[unit] for results in both.values() if unit in results.units]
        if unit != standard and ratios:
            span = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
            times.append(f"{unit} {statistics.geometric_mean(ratios):.2f}{span}")
    if times:
        lines.append(f"A training step takes, in {standard}'s, by geometric mean: {', '.join(times)}.")
    places = [f"{_place(results)} on {task}{_level(results)}" for task, results in both.items()]
    lines.append(f"By quality {standard} is number {', '.join(places)}.")
    if any(len(results.seeds) == 1 for results in found.values()):
        lines.append("One seed cannot tell whether a difference of quality is the unit's or chance.")
    return lines


def _place(results: Comparison) -> str:
    """At which place the standard is by its score, the best being 1, and of how many."""
    scores = _scores(results)
    return f"{1 + sum(score < scores[results.standard] for score in scores.values())} of {len(scores)}"


def _level(results: Comparison) -> str:
    """How many others have the standard's score to the last digit; "" if none."""
    scores = _scores(results)
    others = sum(score == scores[results.standard] for score in scores.values()) - 1
    return f" (level with {others} other{'s' if others > 1 else ''})" if others else ""


def _scores(results: Comparison) -> dict[str, float]:
    """The score of every unit, the lower the better; no finite score is worse than any."""
    sign = 1 if results.lower_is_better else -1
    return {u: sign * r.mean if math.isfinite(r.mean) else math.inf for u, r in results.units.items()}


def terminal(found: Mapping[str, Comparison]) -> Table:
    """The table for a terminal."""
    header, *body = rows(found)
    table = Table(title=_caption(found))
    for column in header:
        table.add_column(column, justify="left" if column in header[:2] else "right")
    for row in body:
        table.add_row(*row)
    return table


def markdown(found: Mapping[str, Comparison]) -> str:
    """The table in Markdown, and what came out below it."""
    header, *body = rows(found)
    lines = ["| " + " | ".join(header) + " |", "|---|---|" + "---:|" * (len(header) - 2)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join([*lines, "", f"A cell: {_caption(found)}.", "", *summary(found)]) + "\n"


def render(found: Mapping[str, Comparison]) -> str:
    """The page: what came out, the table, a chart of times for every task, and links to the comparisons."""
    said = "".join(f"<li>{escape(line)}</li>" for line in summary(found))
    drawings = "".join(_chart(task, results) for task, results in found.items())
    return document(
        f"lrn compare: {', '.join(found)}",
        "<p class='about'>The same model and settings for every unit of a task, on built-in data. "
        f"A cell: {_caption(found)}. Bold is the best score.</p>"
        f"<ul>{said}</ul><div class='wide' tabindex='0'>{_table(found)}</div>"
        f"<div class='charts'>{drawings}</div>",
    )


def _table(found: Mapping[str, Comparison]) -> str:
    header, *body = rows(found)
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in header) + "</tr>"]
    for (task, metric, *cells), results in zip(body, found.values(), strict=True):
        link = f'<a href="{escape(task)}/report.html">{escape(task)}</a>'
        line = f"<td>{link}</td><td>{escape(metric)}</td>"
        for unit, cell in zip(header[2:], cells, strict=True):
            line += f"<td{_marked(results, unit)}>{escape(cell)}</td>"
        lines.append(f"<tr>{line}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _marked(results: Comparison, unit: str) -> str:
    return " class='best'" if unit in tables.best(results).get(spoken(results.metric), ()) else ""


def _chart(task: str, results: Comparison) -> str:
    shown = {unit: f"{value:.2f}" for unit, value in results.ratios.items()}
    drawing = charts.bars(results.ratios, f"relative to {results.standard}", shown)
    return figure(f"{task}: time of a training step", drawing, "")
