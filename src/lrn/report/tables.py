"""A comparison as a table: in the terminal, in Markdown, in LaTeX; the paper's layout."""

from __future__ import annotations

import math
from pathlib import Path

from rich.table import Table

from lrn.files import write_text
from lrn.report.results import Comparison, spoken


def rows(results: Comparison) -> list[list[str]]:
    """The table's cells as text, the header first; the paper's scores are a column where there are some."""
    header = ["unit", "parameters", spoken(results.metric), "ms / batch", "time"]
    if results.printed:
        header.append("paper")
    table = [header]
    for unit, row in results.units.items():
        deviation = f" ± {row.deviation:.2f}" if row.deviation is not None else ""
        cells = [
            unit,
            f"{row.parameters:,}",
            f"{row.mean:.2f}{deviation}",
            f"{row.time.median * 1e3:.1f}",
            f"{row.time.median / results.reference.median:.2f}x",
        ]
        table.append(cells + ([results.printed.get(unit, "")] if results.printed else []))
    return table


def best(results: Comparison) -> dict[str, list[str]]:
    """The best units by column; nothing where there is no choice."""
    units, sign = results.units, 1 if results.lower_is_better else -1
    if len(units) < 2:
        return {}
    values: dict[str, dict[str, float]] = {
        "parameters": {unit: row.parameters for unit, row in units.items()},
        spoken(results.metric): {unit: sign * row.mean for unit, row in units.items()},
        "ms / batch": {unit: row.time.median for unit, row in units.items()},
    }
    least = {name: min(filter(math.isfinite, found.values()), default=None) for name, found in values.items()}
    return {name: [u for u in units if found[u] == least[name]] for name, found in values.items()}


def terminal(results: Comparison) -> Table:
    """The table for a terminal."""
    header, *body = rows(results)
    table = Table(title=results.title)
    for column in header:
        table.add_column(column, justify="left" if column == "unit" else "right")
    for row in body:
        table.add_row(*row)
    return table


def markdown(results: Comparison) -> str:
    """The table in Markdown."""
    header, *body = rows(results)
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines) + "\n"


def latex(results: Comparison) -> str:
    """The table in LaTeX."""
    header, *body = (
        [cell.replace("±", r"$\pm$").replace("_", r"\_").replace("%", r"\%") for cell in row]
        for row in rows(results)
    )
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", " & ".join(header) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in body]
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def write(results: Comparison, folder: Path) -> None:
    """Write table.md and table.tex."""
    write_text(folder / "table.md", markdown(results))
    write_text(folder / "table.tex", latex(results))
