"""What every task shows in a terminal: a bar while it works, its figures when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress


@contextmanager
def bar(what: str) -> Iterator[Callable[[float], None]]:
    """A bar that takes the share done, and is gone when the work is; on a terminal only."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)


def print_figures(console: Console, figures: dict[str, Any]) -> None:
    """A line each."""
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        console.print(f"{name:22} {shown}", highlight=False, markup=False)
