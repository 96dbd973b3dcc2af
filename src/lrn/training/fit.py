"""A training from wherever it is to its end: shown, logged, validated, saved, and stopped cleanly."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from lrn.training import checkpoint, log
from lrn.training.learner import After, Learner, Step
from lrn.training.loop import Loop
from lrn.training.run import Run
from lrn.training.show import Screen


class Stopped(Exception):  # noqa: N818  (nothing went wrong)
    """The user has stopped the training; it can be resumed."""


def fit(loop: Loop, run: Run) -> None:
    """Train to the end; raises :class:`Stopped` if told to stop before."""
    if not loop.learner.progress.finished:
        _Fit(loop, run).run()


class _Fit:
    def __init__(self, loop: Loop, run: Run) -> None:
        self.loop, self.folder, self.learner = loop, run, loop.learner
        self.logbook = log.Logbook(run, self.learner.progress)
        self.screen = Screen(self.learner, loop.is_first)
        self.told_to_stop = False  # this process, by a signal that may come at any time
        self.stopping = False  # all of them, after the step at hand

    def run(self) -> None:
        done = self.learner.progress
        with self._signals():
            for step in self.loop.run():
                self._after(step)
                if done.finished:
                    return
                if self.stopping:
                    raise Stopped(f"stopped after step {done.step:,}")

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the training after the step at hand; asked a second time, at once."""

        def stop(number: int, _: FrameType | None) -> None:
            if self.told_to_stop:
                raise Stopped("stopped at once")
            self.told_to_stop = True
            self.screen.say("stopping after this step …")

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.screen.end()

    def _after(self, step: Step) -> None:
        """Everything that may be due when a step is done."""
        done, config = self.learner.progress, self.learner.config
        cut = bool(config.max_steps) and done.step >= config.max_steps
        if done.step % log.STEPS == 0:
            self.loop.read_losses()
            self.loop.check_losses()
            self.logbook.add_losses(done)
        self.screen.show(self.loop.latest_loss)
        after = self._validate(step) if step.last or cut else After.GO_ON
        if after is After.STOP or cut or done.epoch == config.epochs:
            done.finished = True
        self.stopping = self.loop.host.any(self.told_to_stop)
        if done.finished or self.stopping or step.last or done.step % config.save_steps == 0:
            self._save()

    def _validate(self, step: Step) -> After:
        """After a whole epoch, or where the last one is cut short."""
        done = self.learner.progress
        number = step.epoch + 1
        self.loop.read_losses()
        self.loop.check_losses()
        self.screen.say(f"epoch {number}: validating …")
        figures = self.loop.validate(with_best=self._save_best)
        self.logbook.add_figures(done, figures)
        shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        cut = "" if step.last else f", cut short after {step.index + 1:,} of {step.steps:,} steps"
        self.screen.print(f"epoch {number:3}: {shown}  ({done.epoch_seconds[-1]:.1f} s of training{cut})")
        if not step.last:
            return After.STOP
        self._keep(number, figures)
        after = self.learner.end_epoch(figures)
        if after is After.NEW_OPTIMIZER:
            self.loop.new_optimizer()
        return after

    def _save(self) -> None:
        state = self.loop.state()
        if self.loop.is_first:
            self.logbook.flush()
            checkpoint.save(self.folder.last, self.folder.task, state)

    def _keep(self, number: int, figures: dict[str, float]) -> None:
        """Keep the weights that were validated, and no more of the epochs before than are asked for."""
        keep = self.learner.config.keep_epochs
        if not keep or not self.loop.is_first:
            return
        with self.learner.averaged_weights(self.loop.optimizer):
            state = {"model": self.learner.model.state_dict(), "figures": figures, "epoch": number}
            checkpoint.save(self.folder.epoch(number), self.folder.task, state)
        for old, path in self.folder.epochs().items():
            if old <= number - keep:
                path.unlink(missing_ok=True)

    def _save_best(self, figures: dict[str, float]) -> None:
        if self.loop.is_first:
            save_best(self.folder, self.learner, figures)


def save_best(run: Run, learner: Learner[Any, Any, Any], figures: dict[str, float]) -> None:
    """Save the weights that the model has now, for evaluation and prediction."""
    state = {"model": learner.model.state_dict(), "figures": figures, "epoch": learner.progress.epoch}
    checkpoint.save(run.best, run.task, state)


def figures_of(learner: Learner[Any, Any, Any]) -> dict[str, Any]:
    """What a finished training goes into metrics.json with."""
    done = learner.progress
    part = done.index / len(learner.steps(done.epoch)) if done.index else 0  # of an epoch that was cut short
    return {
        "parameters": sum(p.numel() for p in learner.model.parameters()),
        "epochs": round(done.epoch + part, 4) if part else done.epoch,
        "steps": done.step,
        "seconds_of_training": round(done.seconds, 2),
        "seconds_per_epoch": [round(s, 2) for s in done.epoch_seconds],
        "tokens_per_second": round(done.tokens / done.seconds, 1) if done.seconds else None,
        "best_epoch": done.best_epoch,
    }
