"""A comparison as a table: in the terminal, in Markdown, in LaTeX; the paper's layout."""

from __future__ import annotations

import math
from pathlib import Path

from rich.table import Table

from lrn import own
from lrn.files import write_text
from lrn.report import verdict
from lrn.report.results import Comparison, Trials, spoken

NEAR = 0.1  # what is further from one is not called matched
EDGE = "†"  # marks a rate beyond which nothing was tried


def rows(results: Comparison) -> list[list[str]]:
    """The table's cells as text, the header first; the paper's scores are a column where there are some."""
    named = [*dict.fromkeys(name for row in results.units.values() for name in row.own)]
    header = ["unit", *named, "parameters", spoken(results.metric), "ms / batch", heading(results)]
    if results.printed:
        header.append("paper (its own data and size)" if results.printed_on else "paper")
    table = [header]
    for unit, row in results.units.items():
        deviation = f" ± {row.deviation:.2f}" if row.deviation is not None else ""
        cells = [
            unit,
            *(str(row.own.get(name, "")) for name in named),
            f"{row.parameters:,}",
            f"{row.mean:.2f}{deviation}",
            f"{row.time.median * 1e3:.1f}",
            f"{results.ratios[unit]:.2f}x",
        ]
        table.append(cells + ([results.printed.get(unit, "")] if results.printed else []))
    return table


def heading(results: Comparison) -> str:
    """What the relative times are, and which are good."""
    return f"time relative to {results.standard}, less is better"


def about_printed(results: Comparison) -> str:
    """What the paper's scores are of, where that is something else; "" where it is not."""
    if not results.printed_on:
        return ""
    others = "its data and the size of its model are not those of this comparison"
    return f"The paper's scores are of {results.printed_on}: {others}."


def about_matched(results: Comparison) -> str:
    """How the widths were chosen; "" where all units have the same."""
    found = results.matched
    if found is None:
        return ""
    like = "about as many parameters as" if found.by == "parameters" else "a training step about as long as"
    text = f"The widths (hidden) were chosen so that every model has {like} {found.standard}'s"
    others = {unit: ratio for unit, ratio in found.ratios.items() if unit != found.standard}
    if not others:
        return f"{text}."
    far = [unit for unit, ratio in others.items() if abs(ratio - 1) > NEAR]
    text += f"; relative to it when they were chosen: {', '.join(f'{u} {r:.2f}' for u, r in others.items())}."
    return f"{text} No width that was tried came within {NEAR:.0%} for {', '.join(far)}." if far else text


def notes(results: Comparison) -> list[str]:
    """What is said below the table: what came out, and what must be known to read it."""
    said = (
        verdict.sentence(results),
        about_own(results),
        about_matched(results),
        about_printed(results),
        about_data(results),
    )
    return [text for text in said if text]


def about_own(results: Comparison) -> str:
    """Why the times of a user's own units cannot be compared with the others; "" where they can."""
    names = [unit for unit in results.units if own.is_own(unit)]
    if not names or len(names) == len(results.units) or results.versions.get("engine") == "torch":
        return ""
    has = "has" if len(names) == 1 else "have"
    return (
        f"{' and '.join(names)} {has} no engine but plain torch, step by step: a fair comparison of times "
        "has all units run so, with LRN_ENGINE=torch."
    )


def about_data(results: Comparison) -> str:
    """What of the data was not read, and what makes its figures doubtful; "" where there is nothing."""
    return f"Of the data: {'; '.join(results.remarks)}." if results.remarks else ""


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


def trials(found: Trials) -> list[list[tuple[str, bool]]]:
    """The scores by unit and rate, the header first; with every text whether it is the chosen one."""
    table = [[("unit", False), *((f"lr {rate}", False) for rate in found.rates)]]
    for unit, scores in found.scores.items():
        row = [(unit, False)]
        for rate, score in zip(found.rates, scores, strict=True):
            best = rate == found.chosen[unit]
            mark = EDGE if best and found.at_edge(unit) else ""
            row.append(("diverged" if score is None else f"{score:.3f}{mark}", best))
        table.append(row)
    return table


def about_trials(found: Trials) -> str:
    """What the table of trials shows."""
    text = f"The learning rate of each unit is the one with the best {spoken(found.metric)} (bold)"
    edge = f" {EDGE}: at the edge of the rates that were tried, so that one beyond may be better."
    return f"{text}, tried with seed {found.seed}.{edge if any(map(found.at_edge, found.chosen)) else ''}"


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
    """The table in Markdown, below it what came out, and the trials if there were some."""
    parts = [_markdown(rows(results)), *notes(results)]
    if results.trials:
        cells = [[f"**{text}**" if bold else text for text, bold in row] for row in trials(results.trials)]
        parts += [about_trials(results.trials), _markdown(cells)]
    return "\n\n".join(parts) + "\n"


def _markdown(cells: list[list[str]]) -> str:
    header, *body = cells
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


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
