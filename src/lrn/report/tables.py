"""A comparison as a table: in the terminal, in Markdown, in LaTeX; the paper's layout."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.table import Table

from lrn.files import write_text
from lrn.tasks import paper as figures


def rows(results: dict[str, Any]) -> list[list[str]]:
    """Cells as text, the header first. The paper's figure only where task and setting are the paper's."""
    name = results["metric"].replace("_", " ")
    printed = paper(results)
    header = ["unit", "parameters", name, "ms / batch", "time"]
    if printed:
        header.append("paper")
    table = [header]
    reference = "lrn" if "lrn" in results["times"] else next(iter(results["times"]))
    for unit, row in results["units"].items():
        time = results["times"][unit]["median"]
        deviation = f" ± {row['deviation']:.2f}" if row["deviation"] is not None else ""
        cells = [
            unit,
            f"{row['parameters']:,}",
            f"{row['mean']:.2f}{deviation}",
            f"{time * 1e3:.1f}",
            f"{time / results['times'][reference]['median']:.2f}x",
        ]
        table.append(cells + ([printed.get(unit, "")] if printed else []))
    return table


def best(results: dict[str, Any]) -> dict[str, list[str]]:
    """Which units are best, by column; nothing where there is no choice."""
    units, sign = results["units"], 1 if results["lower_is_better"] else -1
    if len(units) < 2:
        return {}
    values = {
        "parameters": {unit: row["parameters"] for unit, row in units.items()},
        results["metric"].replace("_", " "): {unit: sign * row["mean"] for unit, row in units.items()},
        "ms / batch": {unit: results["times"][unit]["median"] for unit in units},
    }
    least = {name: min(filter(math.isfinite, found.values()), default=None) for name, found in values.items()}
    return {name: [u for u in units if found[u] == least[name]] for name, found in values.items()}


def paper(results: dict[str, Any]) -> dict[str, str]:
    """What the paper prints for this task in this preset on this data, if it does."""
    preset, data = results["config"].get("preset", ""), results["data"]
    if results["task"] == "lm":
        return figures.perplexity(preset, data.get("tokens", {}).get("train"))
    if results["task"] == "ner":
        return figures.f1(preset, data["train"]["sentences"])
    return figures.error(preset, len(data["classes"]), data["train"]["documents"])


def title(results: dict[str, Any]) -> str:
    seeds = ", ".join(map(str, results["seeds"]))
    return f"{results['task']}, preset {results['config'].get('preset')}, seeds {seeds}"


def terminal(results: dict[str, Any]) -> Table:
    header, *body = rows(results)
    table = Table(title=title(results))
    for column in header:
        table.add_column(column, justify="left" if column == "unit" else "right")
    for row in body:
        table.add_row(*row)
    return table


def markdown(results: dict[str, Any]) -> str:
    header, *body = rows(results)
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines) + "\n"


def latex(results: dict[str, Any]) -> str:
    header, *body = (
        [cell.replace("±", r"$\pm$").replace("_", r"\_").replace("%", r"\%") for cell in row]
        for row in rows(results)
    )
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", " & ".join(header) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in body]
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def write(results: dict[str, Any], folder: Path) -> None:
    """table.md and table.tex."""
    write_text(folder / "table.md", markdown(results))
    write_text(folder / "table.tex", latex(results))
