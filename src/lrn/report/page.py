"""A comparison as one HTML page that needs nothing else: opens from disk, prints on two pages."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from lrn.files import write_text
from lrn.report import charts, palette, tables, verdict
from lrn.report.results import Comparison, Curve, UnitResult, spoken

STYLE = (
    palette.SCHEMES
    + """* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1160px; padding: 1.2rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .3rem } h2 { font-size: 1.05rem; margin: 0 0 .4rem }
.verdict { margin: 0 0 .6rem }
.about { color: var(--soft); margin: 0 0 1rem } figcaption { color: var(--soft); font-size: .85rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th { vertical-align: bottom; font-weight: 500; color: var(--soft); white-space: normal }
.long { min-width: 9rem } .best { font-weight: 700 }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper) }
.lrn, .lrn td:first-child { background: var(--mark); print-color-adjust: exact }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.6rem;
  margin: 1.6rem 0 }
figure { margin: 0; break-inside: avoid }
svg { display: block; width: 100%; height: auto; color: var(--ink); font: 13px system-ui, sans-serif }
svg text:not([fill]) { fill: currentColor } svg .grid { stroke: var(--line) }
svg .dot { stroke: var(--paper) } svg .whisker { stroke: currentColor; opacity: .7 }
.memory { margin: 0 0 1.6rem } .memory svg { min-width: 640px; color: #1b1b1b; background: #fff }
@media screen and (prefers-color-scheme: dark) {
  .memory svg { filter: invert(.91) hue-rotate(180deg) brightness(1.35) } /* it is drawn on white */
}
pre { padding: .7rem; margin: 0; border: 1px solid var(--line); border-radius: 6px; font-size: .82rem;
  white-space: pre-wrap; overflow-wrap: anywhere }
section { margin: 0 0 1.4rem } dl { font-size: .85rem; margin: 0 } .many dl { columns: 4 10rem }
dl div { display: flex; flex-wrap: wrap; column-gap: .6rem; break-inside: avoid }
dt { color: var(--soft); min-width: 6.8rem } dd { margin: 0; min-width: 0; overflow-wrap: anywhere }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 0 2rem }
@media (min-width: 920px) { .charts svg { font-size: 11px } }
@media (max-width: 600px) { th, td { padding: .35rem .4rem; font-size: .85rem } }
@media print {
  :root { color-scheme: light; font-size: 11px } body { padding: 0; max-width: none }
  .charts { grid-template-columns: 1fr 1fr; gap: 1rem 1.6rem } .many dl { columns: 4 }
  .wide { overflow: visible } tr :first-child { position: static !important }
  .memory svg { min-width: 0; max-height: 105mm } section { break-inside: avoid }
}
"""
)
_LONG = " class='long'"  # of a heading that is broken into lines, but not word by word


def write(results: Comparison, path: Path) -> None:
    """Write the page to a file."""
    write_text(path, render(results))


def render(results: Comparison) -> str:
    """The page, from nothing but the results, which it carries along as JSON."""
    return document(
        f"lrn compare: {results.title}",
        f"<p class='verdict'>{escape(verdict.sentence(results))}</p>"
        f"<p class='about'>{escape(_about(results))}</p>"
        f"<div class='wide' tabindex='0'>{_table(results)}</div>"
        f"<div class='charts'>{''.join(_charts(results))}</div>{_trials(results)}{_memory(results)}"
        f"{_facts('Settings', results.config, 'many')}"
        f"<div class='facts'>{_facts('Data', results.data)}"
        f"{_facts('Versions and machine', results.versions)}</div>"
        f"<section><h2>To repeat it</h2><pre>{escape(results.command)}</pre></section>"
        f"<script type='application/json' id='results'>{_embedded(results)}</script>",
    )


def document(title: str, body: str) -> str:
    """A whole page that needs nothing else, with its title above what it has to say."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _about(results: Comparison) -> str:
    several = len(results.seeds) > 1
    names = dict.fromkeys(name for row in results.units.values() for name in row.own)
    own = f", and with it {' and '.join(names)}" if names else ""
    direction = "lower" if results.lower_is_better else "higher"
    return (
        f"The same model and settings, only the recurrent unit changed{own}. "
        f"{spoken(results.metric).capitalize()}: {direction} is better"
        f"{'; ± is the standard deviation over the seeds' if several else ''}. "
        "Times are medians of training steps that took turns in one process. "
        f"{'Bold is the best of its column. ' if len(results.units) > 1 else ''}"
        f"{f'{verdict.RULE} ' if several and len(results.units) > 1 else ''}"
        f"{' '.join(tables.notes(results)[1:])}"
    )


def _embedded(results: Comparison) -> str:
    return json.dumps(results.to_json()).replace("<", "\\u003c")


def _table(results: Comparison) -> str:
    header, *body = tables.rows(results)
    best = tables.best(results)
    heads = (f"<th{_LONG if len(cell) > 20 else ''}>{escape(cell)}</th>" for cell in header)
    lines = [f"<tr>{''.join(heads)}</tr>"]
    for unit, *cells in body:
        line = f"<td>{escape(unit)}</td>"
        for column, cell in zip(header[1:], cells, strict=True):
            line += f"<td{_best(unit in best.get(column, ()))}>{escape(cell)}</td>"
        lines.append(f'<tr class="{escape(unit)}">{line}</tr>')
    return f"<table>{''.join(lines)}</table>"


def _charts(results: Comparison) -> list[str]:
    """The charts, without those that there is nothing to draw for."""
    several = len(results.seeds) > 1
    shown = {unit: f"{ratio:.2f}x" for unit, ratio in results.ratios.items()}
    one = results.units[results.standard].time.median
    within = {unit: (time.low / one, time.high / one) for unit, time in results.times.items()}
    counts = {unit: float(row.parameters) for unit, row in results.units.items()}
    found = [
        (
            "Learning",
            _learning(results),
            "The mean over the seeds; bands from the lowest to the highest." if several else "",
        ),
        (
            "Time of a training step",
            charts.bars(results.ratios, tables.heading(results), shown, within),
            "Half of all steps took a time within the whisker.",
        ),
        (
            "Quality against time",
            _quality(results),
            f"Best is {'low' if results.lower_is_better else 'high'} and left."
            f"{' Upright whiskers: the standard deviation over the seeds.' if several else ''}",
        ),
        ("Parameters", charts.bars(counts, "parameters", {u: _short(v) for u, v in counts.items()}), ""),
    ]
    return [figure(name, drawing, caption) for name, drawing, caption in found if drawing]


def _medians(results: Comparison) -> dict[str, float]:
    return {unit: time.median * 1e3 for unit, time in results.times.items()}


def _quartiles(results: Comparison) -> dict[str, charts.Range]:
    return {unit: (time.low * 1e3, time.high * 1e3) for unit, time in results.times.items()}


def _learning(results: Comparison) -> str:
    """The chart of the curves: means over the seeds, and bands between the extremes if there are several."""
    found = {unit: _by_epoch(row.curves) for unit, row in results.units.items()}
    means = {unit: [(e, statistics.fmean(v)) for e, v in curve] for unit, curve in found.items()}
    bands = {unit: [(e, min(v), max(v)) for e, v in curve] for unit, curve in found.items()}
    several = len(results.seeds) > 1
    up = spoken(results.curve)
    return charts.lines(means, "epoch", up, bands if several else None, log=results.lower_is_better)


def _quality(results: Comparison) -> str:
    """The chart of score against time, with the spread of both."""
    medians, quartiles = _medians(results), _quartiles(results)
    points = {unit: (medians[unit], row.mean) for unit, row in results.units.items()}
    spans = {unit: (quartiles[unit], _span(row)) for unit, row in results.units.items()}
    return charts.scatter(points, "ms / batch", spoken(results.metric), spans)


def figure(name: str, drawing: str, caption: str, kind: str = "") -> str:
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure class='{kind}'><h2>{escape(name)}</h2><div class='wide'>{drawing}</div>{below}</figure>"


def _trials(results: Comparison) -> str:
    """The table of the trials that chose the learning rates."""
    if results.trials is None:
        return ""
    header, *body = tables.trials(results.trials)
    lines = ["<tr>" + "".join(f"<th>{escape(text)}</th>" for text, _ in header) + "</tr>"]
    for row in body:
        cells = (f"<td{_best(bold)}>{escape(text)}</td>" for text, bold in row)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    about = f"<p class='about'>{escape(tables.about_trials(results.trials))}</p>"
    table = f"<div class='wide' tabindex='0'><table>{''.join(lines)}</table></div>"
    return f"<section><h2>Learning rates</h2>{table}{about}</section>"


def _best(marked: bool) -> str:
    return " class='best'" if marked else ""


def _memory(results: Comparison) -> str:
    drawing = results.memory
    return figure("What LRN remembers", drawing.svg, drawing.caption, "memory") if drawing else ""


def _span(row: UnitResult) -> charts.Range:
    deviation = row.deviation or 0.0
    return row.mean - deviation, row.mean + deviation


def _by_epoch(curves: Iterable[Curve]) -> list[tuple[float, list[float]]]:
    """The values of all seeds, epoch by epoch."""
    values: dict[float, list[float]] = {}
    for curve in curves:
        for epoch, value in curve:
            values.setdefault(float(epoch), []).append(value)
    return sorted(values.items())


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    return f"{value / 1e3:.0f}K" if value >= 1e4 else f"{value:,.0f}"


def _facts(name: str, values: Mapping[str, object], kind: str = "") -> str:
    shown = {key: _plain(value) for key, value in values.items()}
    rows = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in shown.items())
    return f"<section class='{kind}'><h2>{escape(name)}</h2><dl>{rows}</dl></section>"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
