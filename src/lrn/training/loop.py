"""The loop that every task is trained by, on the devices and processes that Fabric gives it.

A step never waits for the device: batches are made ahead and moved without waiting, lengths stay on the host,
and losses are read when they are logged.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from lrn.progress import DIVERGED
from lrn.training.ahead import ahead
from lrn.training.checkpoint import TrainingState, load_weights
from lrn.training.device import Host
from lrn.training.learner import Learner, Loss, Place, Progress, Step

if TYPE_CHECKING:
    from lightning.fabric import Fabric


T = TypeVar("T")

TIMES, MORE = 6, 5.0  # a loss is hopeless at so many times that of the first step, and by so much more
FEWEST = 3  # losses that can tell


class Loop:
    """Takes the steps of a learner's training."""

    def __init__(self, learner: Learner[Any, Any, Any], fabric: Fabric) -> None:
        self.learner, self.fabric = learner, fabric
        self.place = Place(fabric.global_rank, fabric.world_size)
        self.host = Host(fabric.world_size)
        with warnings.catch_warnings():  # the newest torch has another name for it, the oldest has not
            warnings.filterwarnings("ignore", message=".*broadcast_buffers")
            self.module = fabric.setup_module(_Runner(learner.model))
        self._unread: list[tuple[Step, Tensor]] = []
        self._latest: Tensor | None = None
        self.new_optimizer()

    @property
    def is_first(self) -> bool:
        """Whether this is the process that speaks and writes."""
        return self.place.rank == 0

    def new_optimizer(self) -> None:
        """Begin anew with the optimizer that the learner now asks for."""
        self.optimizer = self.learner.optimizer()
        self._stepper: Any = self.fabric.setup_optimizers(self.optimizer)

    # Steps -------------------------------------------------------------------------------------

    def run(self) -> Iterator[Step]:
        """Take all steps that are left; each is yielded when it is done."""
        with closing(ahead(self.learner.steps_left(), self.batches)) as made:
            began = time.perf_counter()
            for step, batches in made:
                self.take(step, batches, began)
                yield step
                began = time.perf_counter()

    def batches(self, step: Step) -> list[Any]:
        """The batches of a step, still on the host."""
        made = [self.learner.batch(piece, self.place) for piece in step.pieces]
        # copies to a GPU that nobody waits for must come from memory that stays where it is
        return [batch.pin_memory() for batch in made] if self.fabric.device.type == "cuda" else made

    def take(self, step: Step, batches: Sequence[Any] | None = None, began: float | None = None) -> Tensor:
        """Learn from one step; returns its loss, which is still on the device.

        Its batches are made now unless they are given; its time counts from when it ``began``.
        """
        learner, device = self.learner, self.fabric.device
        began = began or time.perf_counter()
        if batches is None:
            batches = self.batches(step)
        if step.index == 0:
            learner.begin_epoch()
        torch.manual_seed(seed_of(learner.config.seed, step.epoch, step.index, self.place.rank))
        total = self._add_gradients(step, [batch.to(device, non_blocking=True) for batch in batches])
        self._step_optimizer(learner.rate(step))
        learner.update_average()
        self._unread.append((step, total))
        self._latest = total
        self._count(step, time.perf_counter() - began)
        return total

    def _add_gradients(self, step: Step, batches: Sequence[Any]) -> Tensor:
        """Add up the gradients of all batches of a step; returns the mean of their losses."""
        learner = self.learner
        total: Tensor | None = None
        for number, (share, batch) in enumerate(zip(learner.shares(step, self.place), batches, strict=True)):
            more_to_come = self.place.world > 1 and number + 1 < len(batches)
            with self.fabric.no_backward_sync(self.module) if more_to_come else nullcontext():
                loss: Loss = self.module(lambda batch=batch: learner.loss(batch))
                self.fabric.backward(loss.objective * share)
            part = loss.reported.detach() * share
            total = part if total is None else total + part
        assert total is not None
        return total

    def _step_optimizer(self, rate: float) -> None:
        learner, clip = self.learner, self.learner.config.clip
        if learner.config.precision == "16":
            self.fabric.strategy.precision.unscale_gradients(self.optimizer)
        learner.adjust_gradients()
        if clip:
            nn.utils.clip_grad_norm_(learner.model.parameters(), clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get(
                "scale", 1.0
            )  # a learner may give some weights a rate of their own
        self._stepper.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _count(self, step: Step, seconds: float) -> None:
        done = self.learner.progress
        if step.index == 0 or not done.epoch_seconds:
            done.epoch_seconds.append(0.0)
        done.seconds += seconds
        done.epoch_seconds[-1] += seconds
        done.tokens += sum(map(self.learner.tokens, step.pieces))
        done.step += 1
        done.epoch, done.index = (step.epoch + 1, 0) if step.last else (step.epoch, step.index + 1)

    # Losses ------------------------------------------------------------------------------------

    def read_losses(self) -> list[float]:
        """The losses of all steps since they were last taken away, the mean over all processes.

        This waits for the device, and all processes have to ask together.
        """
        unread, self._unread = self._unread, []
        losses = self.host.mean(torch.stack([loss for _, loss in unread]).tolist() if unread else [])
        for (step, _), loss in zip(unread, losses, strict=True):
            check_finite(loss, f"the loss at epoch {step.epoch + 1}, step {step.index + 1}", self.learner)
            if step.epoch == step.index == 0:
                self.learner.first_loss = loss
        self.learner.progress.losses += losses
        return self.learner.progress.losses

    def check_losses(self) -> None:
        """Raise a ValueError if the losses that were read are finite, but so large that nothing is learnt.

        An untrained model guesses, and its loss is that of a guess; several times as much is no matter of
        chance, and no figure of such a model means anything. Where losses are bounded, so is halfway there.
        """
        learner, first = self.learner, self.learner.first_loss
        done, losses = learner.progress, learner.progress.losses
        if first is None or len(losses) < FEWEST:
            return
        loss = median(losses)
        if loss > min(max(first * TIMES, first + MORE), (first + learner.largest_loss) / 2):
            where = f"the loss up to epoch {len(done.epoch_seconds)}, step {done.step:,} of all,"
            raise ValueError(f"{where} is about {loss:.4g}, and was {first:.4g} at first: {_lower(learner)}")

    def latest_loss(self) -> float:
        """This process's loss in the latest step: waits for the device, but for nobody else."""
        return math.nan if self._latest is None else float(self._latest)

    def first_does(self, action: Callable[[], T]) -> T | None:
        """Let the first process do something, and all know whether it could; elsewhere the result is None."""
        result, error = None, None
        if self.is_first:
            try:
                result = action()
            except (OSError, ValueError) as caught:
                error = caught
        failed = self.host.any(error is not None)
        if error is not None:
            raise error
        if failed:
            raise SystemExit(2)  # the first process says why
        return result

    # Validation and saving ---------------------------------------------------------------------

    def validate(self, with_best: Callable[[dict[str, float]], None]) -> dict[str, float]:
        """Figures of validation with the weights that count; ``with_best`` is called if they are the best."""
        learner, done = self.learner, self.learner.progress
        number = done.epoch if done.index == 0 else done.epoch + 1
        with learner.averaged_weights(self.optimizer):
            figures = learner.validate()
            monitored = figures[learner.monitor]
            check_finite(monitored, f"the validation {learner.monitor} after epoch {number}", learner)
            value = -monitored if learner.more_is_better else monitored
            if value < done.best:
                done.best, done.best_epoch = value, number
                with_best(figures)
        return figures

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on. All processes have to ask for it together."""
        self.read_losses()
        learner = self.learner
        return {
            "model": learner.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(learner.progress),
            "average": learner.average,
            "precision": self.fabric.strategy.precision.state_dict(),
            "extra": self.host.gather(learner.extra_state()),
        }

    def restore(self, state: TrainingState) -> None:
        """Take up what :meth:`state` gave, before the first step."""
        if len(state.extra) != self.place.world:
            raise ValueError(
                f"the saved state is that of {len(state.extra)} processes, not of {self.place.world}"
            )
        learner = self.learner
        load_weights(learner.model, state.model)
        learner.progress = Progress(**state.progress)
        _check_progress(learner)
        learner.load_extra_state(state.extra[self.place.rank])
        parameters = list(learner.model.parameters())
        state.check_average(parameters)
        device = self.fabric.device
        learner.average = [weight.to(device) for weight in state.average]
        self.new_optimizer()
        state.load_optimizer(self.optimizer)
        self.fabric.strategy.precision.load_state_dict(state.precision)


class _Runner(nn.Module):
    """Runs any function of the model inside a forward call, which is where DDP and autocast watch."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, run: Callable[[], Loss]) -> Loss:
        return run()


def _check_progress(learner: Learner[Any, Any, Any]) -> None:
    """Raise a ValueError if a training cannot be where its saved state says it is."""
    done, epochs = learner.progress, learner.config.epochs
    if done.finished:
        return
    if done.epoch >= epochs:
        raise ValueError(f"the saved state has {done.epoch} epochs done, and is not finished, of {epochs}")
    if done.index and done.index >= len(learner.steps(done.epoch)):
        raise ValueError(f"the saved state is {done.index} steps into an epoch that has fewer")


def check_finite(value: float, what: str, learner: Learner[Any, Any, Any]) -> None:
    """Raise a ValueError that says what is not finite and what may help."""
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value}: {_lower(learner)}")


def _lower(learner: Learner[Any, Any, Any]) -> str:
    return f"{DIVERGED}; try a smaller --lr (now {learner.config.lr:g})"


def seed_of(*numbers: int) -> int:
    """One well-mixed seed of several numbers."""
    digest = hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()
    return int.from_bytes(digest[:7], "big")
