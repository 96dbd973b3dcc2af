"""A comparison as one HTML page that needs nothing else: opens from disk, prints on two pages."""

from __future__ import annotations

import json
import statistics
from html import escape
from pathlib import Path
from typing import Any

from lrn.files import write_text
from lrn.report import charts, tables

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --soft: #666; --line: #ddd; --mark: #fdf3ec }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e6e3; --paper: #17181a; --soft: #a09d98; --line: #3a3b3e; --mark: #2b211a }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1160px; padding: 1.2rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .2rem } h2 { font-size: 1.05rem; margin: 0 0 .4rem }
p.about { color: var(--soft); margin: 0 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left } tr.lrn { background: var(--mark); font-weight: 600 }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.2rem;
  margin: 1.4rem 0 }
figure { margin: 0; break-inside: avoid } svg { width: 100%; height: auto; font: 13px system-ui, sans-serif }
svg text:not([fill]) { fill: var(--ink) } svg .grid { stroke: var(--line) }
pre { overflow-x: auto; padding: .7rem; border: 1px solid var(--line); border-radius: 6px; font-size: .82rem;
  white-space: pre-wrap; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; margin: 0 }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: 1.4rem }
@media print { body { font-size: 11px; padding: 0; max-width: none }
  .charts { grid-template-columns: 1fr 1fr }
  dl { font-size: 9px } pre { font-size: 9px } h1 { font-size: 16px } }
"""


def write(results: dict[str, Any], path: Path) -> None:
    write_text(path, render(results))


def render(results: dict[str, Any]) -> str:
    """The page, from nothing but results.json's content, which it carries along."""
    title = f"lrn compare: {tables.title(results)}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1><p class='about'>{escape(_about(results))}</p>"
        f"<div class='wide'>{_table(results)}</div>"
        f"<div class='charts'>{''.join(_figures(results))}</div>"
        f"<div class='facts'>{_facts('Settings', results['config'])}"
        f"{_facts('Data', results['data'])}{_facts('Versions and machine', results['versions'])}</div>"
        f"<h2>To repeat it</h2><pre>{escape(results['command'])}</pre>"
        f"<script type='application/json' id='results'>{_embedded(results)}</script></body></html>\n"
    )


def _about(results: dict[str, Any]) -> str:
    direction = "lower" if results["lower_is_better"] else "higher"
    return (
        "The same model and settings, only the recurrent unit changed. "
        f"{results['metric'].replace('_', ' ').capitalize()}: {direction} is better. "
        "Times are medians of training steps that took turns in one process."
    )


def _embedded(results: dict[str, Any]) -> str:
    return json.dumps(results).replace("<", "\\u003c")


def _table(results: dict[str, Any]) -> str:
    header, *body = tables.rows(results)
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in header) + "</tr>"]
    for row in body:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f'<tr class="{escape(row[0])}">{cells}</tr>')
    return f"<table>{''.join(lines)}</table>"


def _figures(results: dict[str, Any]) -> list[str]:
    units, times = results["units"], results["times"]
    metric, curve = results["metric"].replace("_", " "), results["curve"].replace("_", " ")
    milliseconds = {unit: times[unit]["median"] * 1e3 for unit in units}
    curves = {unit: _mean_curve(row["curves"]) for unit, row in units.items()}
    parameters = {unit: float(row["parameters"]) for unit, row in units.items()}
    found = [
        ("Learning", charts.lines({u: c for u, c in curves.items() if c}, "epoch", curve)),
        (
            "Time of a training step",
            charts.bars(milliseconds, "milliseconds", {u: f"{v:.1f}" for u, v in milliseconds.items()}),
        ),
        (
            "Quality against time",
            charts.scatter({u: (milliseconds[u], units[u]["mean"]) for u in units}, "ms / batch", metric),
        ),
        (
            "Parameters",
            charts.bars(parameters, "parameters", {u: _short(v) for u, v in parameters.items()}),
        ),
    ]
    return [f"<figure><h2>{escape(name)}</h2>{drawing}</figure>" for name, drawing in found]


def _mean_curve(curves: list[list[Any]]) -> list[tuple[float, float]]:
    """Over the seeds, epoch by epoch."""
    values: dict[float, list[float]] = {}
    for curve in curves:
        for epoch, value in curve:
            values.setdefault(float(epoch), []).append(value)
    return [(epoch, statistics.fmean(found)) for epoch, found in sorted(values.items())]


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    return f"{value / 1e3:.0f}K" if value >= 1e4 else f"{value:,.0f}"


def _facts(name: str, values: dict[str, Any]) -> str:
    shown = {k: json.dumps(v) if isinstance(v, dict) else str(v) for k, v in values.items()}
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in shown.items())
    return f"<section><h2>{escape(name)}</h2><dl>{rows}</dl></section>"
