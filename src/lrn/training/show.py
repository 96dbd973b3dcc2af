"""What a training shows in a terminal: one living line, a bar while it works, its figures when it is done."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lrn.progress import QUIET_SECONDS, clock, lines
from lrn.training.learner import Learner

if TYPE_CHECKING:
    from rich.live import Live


@contextmanager
def bar(what: str, *, alone: bool = True) -> Iterator[Callable[[float], None]]:
    """A bar that takes the share done, and is gone when the work is; without a terminal a line now and then.

    Where it is not ``alone`` on the terminal, another line there says enough, and there is no bar.
    """
    if not sys.stderr.isatty():
        yield lines(what)
        return
    if not alone:
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)


def lines_of(figures: dict[str, Any]) -> Iterator[str]:
    """A line for each figure; those of a table come as a row for each of its entries."""
    for name, value in figures.items():
        if isinstance(value, dict):
            width = max([6, *map(len, value)])
            for row, columns in value.items():
                yield f"  {row:{width}} " + "  ".join(f"{key} {number:6}" for key, number in columns.items())
        else:
            yield f"{name:22} {value:,}" if isinstance(value, int) else f"{name:22} {value}"


class Screen:
    """One line that lives: epoch, loss, tokens a second, time left. Without a terminal, one now and then."""

    def __init__(self, learner: Learner[Any, Any, Any], shown: bool) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self.learner = learner
        self.console = Console(stderr=True, quiet=not shown)
        self._live: Live | None = None
        self._before = (learner.progress.seconds, learner.progress.tokens)
        self._steps = (-1, 0)  # an epoch, and how many steps it has
        self._next = 0.0
        if shown and self.console.is_terminal:
            self._live = Live(Text(""), console=self.console, refresh_per_second=4, transient=True)
            self._live.start()

    def end(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def show(self, loss: Callable[[], float]) -> None:
        """Show where the training is, if it is time to; only then is the loss asked for."""
        now = time.perf_counter()
        if self.console.quiet or now < self._next:
            return
        self._next = now + (0.25 if self._live else QUIET_SECONDS)
        self.say(self._line(loss()))

    def _line(self, loss: float) -> str:
        done, config = self.learner.progress, self.learner.config
        seconds, tokens = done.seconds - self._before[0], done.tokens - self._before[1]
        over = done.index == 0  # the step was the last of its epoch
        epoch = done.epoch - over
        if self._steps[0] != epoch:
            self._steps = epoch, len(self.learner.steps(epoch))
        part = 1.0 if over else done.index / self._steps[1]
        share = (epoch + part) / config.epochs
        if config.max_steps:
            share = max(share, done.step / config.max_steps)
        left = done.seconds / share * (1 - share) if share else math.nan
        return (
            f"epoch {epoch + 1}/{config.epochs} {part:4.0%}  loss {loss:.3f}  "
            f"{tokens / seconds if seconds else 0:,.0f} tokens/s  {clock(left)} left"
        )

    def say(self, text: str) -> None:
        """Show a text on the living line."""
        from rich.text import Text

        if self._live:
            self._live.update(Text(text))
        else:
            self.print(text)

    def print(self, text: str) -> None:
        """Print a line that stays."""
        if self._live:
            self.say("")  # what it said is over
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        sys.stderr.flush()
