"""A line about work that takes its time: living in a terminal, now and then where there is none. No torch."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable

DIVERGED = "training has diverged"  # is said of a loss without sense; lrn compare listens for it

# Between lines about progress where there is no terminal; lrn compare, which reads them, asks for more.
QUIET_SECONDS = float(os.environ.get("LRN_QUIET_SECONDS", "15"))


def clock(seconds: float) -> str:
    """A time as minutes and seconds, with hours before them if there are any.

    >>> clock(75), clock(3675), clock(math.nan)
    ('1:15', '1:01:15', '?')
    """
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def terminal_width() -> int | None:
    """The width of tables where there is no terminal that has one: none of ours is wider."""
    return None if sys.stdout.isatty() else 160


def lines(what: str) -> Callable[[float], None]:
    """Say the share done of some work whenever it is time to: a function that takes it."""
    line = Line(shown=True)

    def tell(share: float) -> None:
        if line.due():
            line.say(f"{what} {share:4.0%}")

    return tell


class Line:
    """One line on standard error: written over in a terminal, elsewhere repeated every 15 seconds.

    Args:
        shown: whether there is anything to see at all.
    """

    def __init__(self, shown: bool) -> None:
        self.shown, self.living = shown, shown and sys.stderr.isatty()
        self._next = time.perf_counter() + (0.0 if self.living else QUIET_SECONDS)

    def due(self) -> bool:
        """Whether it is time to say something; only then need it be worked out."""
        return self.shown and time.perf_counter() >= self._next

    def say(self, text: str) -> None:
        self._next = time.perf_counter() + (0.25 if self.living else QUIET_SECONDS)
        if self.living:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave no line behind in a terminal."""
        if self.living:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
