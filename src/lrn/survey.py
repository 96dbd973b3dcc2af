"""``lrn compare --tasks``: the same units on several tasks, each on its built-in data; a row for every task.

Each task's comparison is a folder of its own with its runs, tables and page, made as ``lrn compare TASK``
makes it. What is finished is kept, so a survey that was stopped goes on where it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from lrn import compare, tasks
from lrn.checks import choice
from lrn.compare.plan import Plan
from lrn.files import make_folder, unfinished
from lrn.names import TASKS
from lrn.progress import terminal_width
from lrn.report import survey as report
from lrn.report.results import Comparison

PRESET = "quick"


def plans_of(
    names: list[str], units: list[str], seeds: list[int], *, threads: int = 0, overwrite: bool = False
) -> list[Plan]:
    """What is compared on every task: its quick preset on its built-in data."""
    plans = []
    for name in names:
        known = tasks.settings(name)
        values = {**known.presets[PRESET], "preset": PRESET, "threads": threads, "overwrite": overwrite}
        plans.append(Plan(name, known.train(**values), tuple(units), tuple(seeds)))
    return plans


def check(out: Path) -> None:
    """An error if a folder holds something else, which may not be mixed with a survey."""
    own = {*TASKS, "report.html", "table.md"}
    if out.is_dir() and any(entry.name not in own and not unfinished(entry) for entry in out.iterdir()):
        raise ValueError(f"{out} exists and is not a comparison on several tasks; choose another --out")


def survey(plans: list[Plan], out: Path) -> int:
    """Compare on one task after the other; write table.md and report.html into ``out``."""
    console, found = Console(width=terminal_width()), {}
    make_folder(out)
    for number, plan in enumerate(plans, 1):
        print(f"task {number} of {len(plans)}: {plan.task}", file=sys.stderr, flush=True)
        code = compare.compare(plan, out / plan.task)
        if code:
            return code
        found[plan.task] = Comparison.read(out / plan.task / compare.RESULTS)
        report.write(found, out)  # what is known so far can be looked at
    console.print(report.terminal(found))
    for line in report.summary(found):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)
    return 0


def tasks_of(text: str) -> list[str]:
    """A list of tasks as typed, each known and none twice.

    >>> tasks_of("lm, doc")
    ['lm', 'doc']
    """
    names = [choice("task", name.strip(), TASKS) for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"--tasks must be different tasks separated by commas, like lm,doc; got {text!r}")
    return names
