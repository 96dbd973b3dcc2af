"""What Lightning trains: a task's model with its optimizer, so that any step can be returned to.

The order of the data and all randomness are functions of (seed, epoch, step), so the state to save is small:
weights, optimizer, how far we are, and what the task carries along. An interrupted training goes on from
there to the same weights, bit for bit.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn

from lrn.training.config import TrainConfig


class Step:
    """One step of the plan: ``work`` is the task's own. No dataclass, which Lightning would take apart."""

    def __init__(self, epoch: int, index: int, steps: int, work: Any) -> None:
        self.epoch, self.index, self.steps, self.work = epoch, index, steps, work

    @property
    def last(self) -> bool:
        """Of its epoch."""
        return self.index == self.steps - 1


@dataclass
class Progress:
    """How far a training is; all of it is saved."""

    epoch: int = 0
    index: int = 0  # steps done in this epoch
    step: int = 0  # steps done in all
    seconds: float = 0.0  # of training, evaluation not counted
    tokens: int = 0
    losses: list[float] = field(default_factory=list)  # of the steps since the last line of the log
    epoch_seconds: list[float] = field(default_factory=list)
    best: float = math.inf
    best_epoch: int = -1
    finished: bool = False


class Trainee(L.LightningModule):
    """A task's training. Subclasses say what an epoch's plan is, how to learn from one piece of it, and how
    to validate; the rest is here."""

    task: str
    decides = "loss"  # the figure of validation that the best weights have least of

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        self.config = config
        self.automatic_optimization = False
        self.progress = Progress()
        self.average: list[Tensor] = []
        self.recent_loss = math.nan
        self._optimizer_state: dict[str, Any] | None = None
        self._carried: list[dict[str, Any]] = []  # by process, of the state that was restored

    # What a task says --------------------------------------------------------------------------

    @property
    @abstractmethod
    def model(self) -> nn.Module:
        """The model whose weights are trained and saved."""

    @abstractmethod
    def plan(self, epoch: int) -> Sequence[Any]:
        """The epoch's pieces of work, the same whenever it is asked for."""

    @abstractmethod
    def learn(self, step: Step) -> tuple[float, int]:
        """One optimizer step; returns the loss and the number of tokens learnt from."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Figures on the validation data, among them the one that ``decides`` which weights are best."""

    @abstractmethod
    def make_optimizer(self) -> torch.optim.Optimizer:
        """The optimizer that fits the state the task is in."""

    def begin_epoch(self) -> None:
        """Before the first step of an epoch."""

    def end_epoch(self, figures: dict[str, float]) -> bool:
        """After validation; True ends the training."""
        return False

    def carried(self) -> dict[str, Any]:
        """What the task carries from step to step, in plain data and tensors."""
        return {}

    def carry(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`carried` gave."""

    # Steps -------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Step]:
        """All steps that are left."""
        epoch, index = self.progress.epoch, self.progress.index
        while epoch < self.config.epochs:
            plan = self.plan(epoch)
            for number in range(index, len(plan)):
                yield Step(epoch, number, len(plan), plan[number])
            epoch, index = epoch + 1, 0

    def setup(self, stage: str) -> None:
        """Now that it is known which process this is."""
        if not self._carried:
            return
        if len(self._carried) != self.trainer.world_size:
            raise ValueError(
                f"the saved state is that of {len(self._carried)} processes, not of {self.trainer.world_size}"
            )
        self.carry(self._carried[self.global_rank])
        self._carried = []

    def train_dataloader(self) -> Any:
        return _Again(self)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = self.make_optimizer()
        if self._optimizer_state is not None:
            optimizer.load_state_dict(self._optimizer_state)
            self._optimizer_state = None
        return optimizer

    def training_step(self, step: Step, _: int) -> None:
        if step.index == 0:
            self.begin_epoch()
        torch.manual_seed(_seed(self.config.seed, step.epoch, step.index, self.global_rank))
        start = time.perf_counter()
        loss, tokens = self.learn(step)
        self.recent_loss = self._mean(loss)
        self.check_finite(self.recent_loss, f"the loss at epoch {step.epoch + 1}, step {step.index + 1}")
        if self.config.ema:
            self._update_average()
        done = self.progress
        if step.index == 0:
            done.epoch_seconds.append(0.0)
        seconds = time.perf_counter() - start
        done.seconds += seconds
        done.epoch_seconds[-1] += seconds
        done.tokens += tokens
        done.step += 1
        done.epoch, done.index = (step.epoch + 1, 0) if step.last else (step.epoch, step.index + 1)

    def alone(self) -> Callable[[Step], None]:
        """A function that takes one step, without Lightning around it: for timing.

        What belongs to Lightning is replaced in this object, which is of no other use afterwards.
        """
        optimizer = self.make_optimizer()
        stand_in: Any = self
        stand_in._trainer = SimpleNamespace(world_size=1, global_rank=0)
        stand_in.optimizers = lambda: optimizer
        stand_in.manual_backward = lambda loss: loss.backward()
        return lambda step: self.training_step(step, 0)

    def _mean(self, loss: float) -> float:
        """Over all processes, so that they log the same and give up together."""
        if self.trainer.world_size == 1:
            return loss
        mean = self.trainer.strategy.reduce(torch.tensor(loss, dtype=torch.float64), reduce_op="mean")
        return float(mean)

    def check_finite(self, loss: float, what: str) -> None:
        if not math.isfinite(loss):
            raise ValueError(
                f"{what} is {loss}: training has diverged; try a smaller --lr (now {self.config.lr})"
            )

    def take_step(self, optimizer: Any, rate: float) -> None:
        """Clip, set the learning rate, step."""
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.parameters(), self.config.clip)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    # Averaged weights --------------------------------------------------------------------------

    def _update_average(self) -> None:
        """EMA with a warm-up: early on, what there is counts for more than what there was."""
        weights = [parameter.detach() for parameter in self.model.parameters()]
        if not self.average:
            self.average = [weight.clone() for weight in weights]
            return
        steps = self.progress.step + 1
        decay = min(self.config.ema, (1 + steps) / (10 + steps))
        torch._foreach_lerp_(self.average, weights, 1 - decay)

    def averaged(self) -> list[Tensor]:
        """The weights to evaluate instead of the current ones; empty if there are none."""
        return self.average

    @contextmanager
    def evaluated_weights(self) -> Iterator[None]:
        """The averaged weights in place of the current ones, where there are any."""
        average = self.averaged()
        if not average:
            yield
            return
        parameters: list[Tensor] = list(self.model.parameters())
        before = [parameter.detach().clone() for parameter in parameters]
        try:
            with torch.no_grad():
                torch._foreach_copy_(parameters, average)
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(parameters, before)

    # Saving ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on. All processes have to ask for it together."""
        optimizer: Any = self.optimizers()
        carried = [self.carried()]
        if self.trainer.world_size > 1:
            carried *= self.trainer.world_size
            torch.distributed.all_gather_object(carried, self.carried())
        return {
            "model": self.model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "progress": asdict(self.progress),
            "average": self.average,
            "carried": carried[0],
            "carried_by_others": carried[1:],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`state` gave; before training begins."""
        missing = {"model", "optimizer", "progress", "average", "carried"} - set(state)
        if missing:
            raise ValueError(f"the saved state lacks {', '.join(sorted(missing))}")
        load_weights(self.model, state["model"])
        self.progress = Progress(**state["progress"])
        self.average = list(state["average"])
        self._carried = [state["carried"], *state.get("carried_by_others", [])]
        self.carry(self._carried[0])
        self._optimizer_state = state["optimizer"]


class _Again:
    """The steps that are left, for Lightning, which may ask more than once."""

    def __init__(self, trainee: Trainee) -> None:
        self.trainee = trainee

    def __iter__(self) -> Iterator[Step]:
        return self.trainee.steps()


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Into a model of exactly that shape; else an error that says how they differ."""
    own = model.state_dict()
    for name in sorted(set(own) ^ set(weights)):
        where = "the model, not the file" if name in own else "the file, not the model"
        raise ValueError(f"these weights are not this model's: {name} is in {where}")
    for name, value in weights.items():
        if value.shape != own[name].shape:
            raise ValueError(
                f"these weights are not this model's: {name} has shape {tuple(value.shape)} in the file and "
                f"{tuple(own[name].shape)} in the model"
            )
    model.load_state_dict(weights)


def _seed(*numbers: int) -> int:
    """One well-mixed seed of several numbers."""
    import hashlib

    digest = hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()
    return int.from_bytes(digest[:7], "big")
