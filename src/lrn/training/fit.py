"""Train with Lightning: progress on the screen, log, saved states, and a way out at any time."""

from __future__ import annotations

import csv
import importlib.util
import io
import logging
import math
import os
import signal
import sys
import time
import warnings
from types import FrameType
from typing import Any

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy
from rich.console import Console
from rich.live import Live
from rich.text import Text

from lrn.files import write_text
from lrn.training import checkpoint
from lrn.training.run import Run
from lrn.training.trainee import Trainee

LOG_STEPS = 20  # training steps to a line of the log
# Between lines about progress where there is no terminal; lrn compare, which reads them, asks for more.
QUIET_SECONDS = float(os.environ.get("LRN_QUIET_SECONDS", "30"))


class Stopped(Exception):  # noqa: N818  (nothing went wrong)
    """The user has stopped the training; it can be resumed."""


def fit(trainee: Trainee, run: Run) -> None:
    """Train to the end, from wherever ``trainee`` is; raises :class:`Stopped` if told to stop before."""
    config = trainee.config
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    keeper = Keeper(run)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        trainer = L.Trainer(
            accelerator="cpu",
            devices=config.devices,
            num_nodes=config.nodes,
            # buffers never change, and may be as large as a table of word vectors
            strategy=DDPStrategy(broadcast_buffers=False) if config.devices * config.nodes > 1 else "auto",
            precision="bf16-mixed" if config.precision == "bf16" else "32-true",
            max_epochs=1,  # all steps of all epochs are one pass over Trainee.steps()
            callbacks=[keeper],
            logger=_tensorboard(run),
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
        )
        if trainee.progress.finished:
            return
        try:
            trainer.fit(trainee)
        except SystemExit:  # Lightning's answer to KeyboardInterrupt
            raise Stopped("stopped") from None
    if keeper.stop_signal is not None:
        raise Stopped(f"stopped after step {trainee.progress.step:,}")


def _tensorboard(run: Run) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return False
    from lightning.pytorch.loggers import TensorBoardLogger

    return TensorBoardLogger(run.folder, name="tensorboard", version="")


class Keeper(L.Callback):
    """Looks after a training: shows it, logs it, validates after every epoch, saves, and stops it cleanly."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.stop_signal: int | None = None
        self.logbook = Logbook(run)
        self._handlers: dict[int, Any] = {}

    def setup(self, trainer: L.Trainer, trainee: L.LightningModule, stage: str) -> None:
        assert isinstance(trainee, Trainee)
        if trainee.config.threads:  # here, since Lightning sets the threads of several processes itself
            torch.set_num_threads(trainee.config.threads)

    def on_train_start(self, trainer: L.Trainer, trainee: L.LightningModule) -> None:
        assert isinstance(trainee, Trainee)
        self.screen = Screen(trainee, trainer.is_global_zero)
        self.logbook.begin(trainee, trainer.is_global_zero)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._stop)
        self.screen.begin()
        if trainee.progress.step == 0:
            self._save(trainer, trainee)  # from now on there is always something to return to

    def _stop(self, number: int, _: FrameType | None) -> None:
        """After the step at hand; asked a second time, at once."""
        if self.stop_signal is not None:
            raise Stopped("stopped at once")
        self.stop_signal = number
        self.screen.say("stopping after this step …")

    def on_train_batch_end(
        self, trainer: L.Trainer, trainee: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(trainee, Trainee)
        done, config = trainee.progress, trainee.config
        self.logbook.add(trainee)
        self.screen.show()
        cut = bool(config.max_steps) and done.step >= config.max_steps
        ended = False
        if batch.last or cut:
            ended = self._validate(trainer, trainee, whole=batch.last)
        if ended or cut or done.epoch == config.epochs:
            done.finished = True
        stop = done.finished or self._told_to_stop(trainer)
        if stop or batch.last or done.step % config.save_steps == 0:
            self._save(trainer, trainee)
        if stop:
            trainer.should_stop = True

    def _save(self, trainer: L.Trainer, trainee: Trainee) -> None:
        state = trainee.state()
        if trainer.is_global_zero:
            self.logbook.flush()
            checkpoint.save(self.run.last, self.run.task, state)

    def _told_to_stop(self, trainer: L.Trainer) -> bool:
        """Whether any process of this training was; they have to leave together."""
        if trainer.world_size == 1:
            return self.stop_signal is not None
        told: bool = trainer.strategy.reduce_boolean_decision(self.stop_signal is not None, all=False)
        if told and self.stop_signal is None:
            self.stop_signal = signal.SIGTERM
        return told

    def _validate(self, trainer: L.Trainer, trainee: Trainee, *, whole: bool) -> bool:
        """After a whole epoch, or where the last one is cut short; True ends the training."""
        done = trainee.progress
        number = done.epoch if whole else done.epoch + 1
        self.screen.say(f"epoch {number}: validating …")
        with trainee.evaluated_weights():
            figures = trainee.validate()
            decides = figures[trainee.decides]
            trainee.check_finite(decides, f"the validation {trainee.decides} after epoch {number}")
            if decides < done.best:
                done.best, done.best_epoch = decides, number
                if trainer.is_global_zero:
                    save_best(self.run, trainee, figures)
        self.logbook.add_figures(trainee, figures)
        shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        seconds = done.epoch_seconds[-1]
        self.screen.print(f"epoch {number:3}: {shown}  ({seconds:.1f} s of training)")
        return trainee.end_epoch(figures) if whole else True

    def on_train_end(self, trainer: L.Trainer, trainee: L.LightningModule) -> None:
        self._release()

    def on_exception(self, trainer: L.Trainer, trainee: L.LightningModule, error: BaseException) -> None:
        if not isinstance(error, StopIteration):
            self._release()

    def _release(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}
        if hasattr(self, "screen"):
            self.screen.end()


def save_best(run: Run, trainee: Trainee, figures: dict[str, float]) -> None:
    """The weights alone, for evaluation and prediction."""
    state = {"model": trainee.model.state_dict(), "figures": figures, "epoch": trainee.progress.epoch}
    checkpoint.save(run.best, run.task, state)


class Logbook:
    """log.csv: a line every few steps, and one with the figures of every epoch."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rows: list[dict[str, Any]] = []

    def begin(self, trainee: Trainee, writes: bool) -> None:
        """What was logged after the state that we resume from was lost with it."""
        self.writes = writes
        if not self.run.log.exists():
            return
        try:
            with self.run.log.open(newline="") as file:
                self.rows = [row for row in csv.DictReader(file) if int(row["step"]) <= trainee.progress.step]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{self.run.log} is damaged; move it away to go on without it") from None

    def add(self, trainee: Trainee) -> None:
        done = trainee.progress
        done.losses.append(trainee.recent_loss)
        if done.step % LOG_STEPS:
            return
        mean = sum(done.losses) / len(done.losses)
        self.rows.append(self._row(trainee, train_loss=mean))
        self._tensorboard(trainee, {"train_loss": mean})
        done.losses = []

    def add_figures(self, trainee: Trainee, figures: dict[str, float]) -> None:
        figures = {f"valid_{name}": value for name, value in figures.items()}
        self.rows.append(self._row(trainee, **figures))
        self._tensorboard(trainee, figures)

    def _row(self, trainee: Trainee, **values: float) -> dict[str, Any]:
        done = trainee.progress
        speed = done.tokens / done.seconds if done.seconds else 0.0
        return {
            "step": done.step,
            "epoch": done.epoch,
            "seconds": round(done.seconds, 3),
            "tokens_per_second": round(speed, 1),
            **values,
        }

    def _tensorboard(self, trainee: Trainee, values: dict[str, float]) -> None:
        if trainee.logger is not None:
            trainee.logger.log_metrics(values, trainee.progress.step)

    def flush(self) -> None:
        if not self.writes or not self.rows:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        room = io.StringIO()
        writer = csv.DictWriter(room, names)
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(self.run.log, room.getvalue())


class Screen:
    """One line that lives: epoch, loss, tokens a second, time left. Without a terminal, one now and then."""

    def __init__(self, trainee: Trainee, shown: bool) -> None:
        self.trainee = trainee
        self.console = Console(stderr=True, quiet=not shown)
        self.live: Live | None = None
        self.loss = math.nan
        self.start = time.perf_counter()
        self.before = (trainee.progress.seconds, trainee.progress.tokens)
        self.last = 0.0

    def begin(self) -> None:
        if self.console.is_terminal and not self.console.quiet:
            self.live = Live(Text(""), console=self.console, refresh_per_second=4, transient=True)
            self.live.start()

    def end(self) -> None:
        if self.live:
            self.live.stop()
            self.live = None

    def show(self) -> None:
        loss = self.trainee.recent_loss
        self.loss = loss if math.isnan(self.loss) else 0.95 * self.loss + 0.05 * loss
        now = time.perf_counter()
        if now - self.last < (0.25 if self.live else QUIET_SECONDS):
            return
        self.last = now
        self.say(self.line())

    def line(self) -> str:
        done, epochs = self.trainee.progress, self.trainee.config.epochs
        seconds, tokens = done.seconds - self.before[0], done.tokens - self.before[1]
        plan = len(self.trainee.plan(min(done.epoch, epochs - 1)))
        share = (done.epoch + done.index / plan) / epochs
        if self.trainee.config.max_steps:
            share = max(share, done.step / self.trainee.config.max_steps)
        left = done.seconds / share * (1 - share) if share else math.nan
        return (
            f"epoch {min(done.epoch + 1, epochs)}/{epochs} {done.index / plan:4.0%}  loss {self.loss:.3f}  "
            f"{tokens / seconds if seconds else 0:,.0f} tokens/s  {_clock(left)} left"
        )

    def say(self, text: str) -> None:
        """On the living line."""
        if self.live:
            self.live.update(Text(text))
        else:
            self.print(text)

    def print(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False, highlight=False)
        sys.stderr.flush()


def _clock(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def figures_of(trainee: Trainee) -> dict[str, Any]:
    """What a finished training goes into metrics.json with."""
    done = trainee.progress
    return {
        "parameters": sum(p.numel() for p in trainee.model.parameters()),
        "epochs": done.epoch,
        "steps": done.step,
        "seconds_of_training": round(done.seconds, 2),
        "seconds_per_epoch": [round(s, 2) for s in done.epoch_seconds],
        "tokens_per_second": round(done.tokens / done.seconds, 1) if done.seconds else None,
        "best_epoch": done.best_epoch,
    }
