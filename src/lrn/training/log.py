"""log.csv of a run: a line every few steps, and one with the figures of every epoch."""

from __future__ import annotations

import csv
import importlib.util
import io
from typing import Any

from lrn.files import write_text
from lrn.training.learner import Progress
from lrn.training.run import Run

STEPS = 20  # training steps to a line of the log


class Logbook:
    """The log of a run, which is written whenever a state is saved; TensorBoard's too, if it is installed."""

    def __init__(self, run: Run, progress: Progress) -> None:
        """What was logged after the state that is resumed from was lost with it."""
        self.run = run
        self.rows: list[dict[str, Any]] = []
        self._board: Any = None
        if run.log.exists():
            self.rows = _read(run, progress.step)

    def add_losses(self, progress: Progress) -> None:
        """A line with the mean loss of the steps since the last one."""
        mean = sum(progress.losses) / len(progress.losses)
        progress.losses = []
        self._add(progress, {"train_loss": mean})

    def add_figures(self, progress: Progress, figures: dict[str, float]) -> None:
        """A line with the figures of validation."""
        self._add(progress, {f"valid_{name}": value for name, value in figures.items()})

    def _add(self, progress: Progress, values: dict[str, float]) -> None:
        speed = progress.tokens / progress.seconds if progress.seconds else 0.0
        row = {
            "step": progress.step,
            "epoch": progress.epoch,
            "seconds": round(progress.seconds, 3),
            "tokens_per_second": round(speed, 1),
        }
        self.rows.append(row | values)
        if self._board is None and importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self.run.folder / "tensorboard"))
        for name, value in values.items() if self._board else ():
            self._board.add_scalar(name, value, progress.step)

    def flush(self) -> None:
        """Write all of it."""
        if not self.rows:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, names)
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(self.run.log, buffer.getvalue())


def _read(run: Run, step: int) -> list[dict[str, Any]]:
    try:
        with run.log.open(newline="") as file:
            return [row for row in csv.DictReader(file) if int(row["step"]) <= step]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{run.log} is damaged; move it away to go on without it") from None
