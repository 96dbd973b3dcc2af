"""What a task trains: a model, what an epoch consists of, and what is lost on a batch of it.

The order of the data and all randomness are functions of (seed, epoch, step, process), so that the state to
save is small: weights, optimizer, how far the training is, and what the task carries from step to step. An
interrupted training goes on from there to the same weights, bit for bit.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from lrn.training import schedule
from lrn.training.config import TrainConfig

Config = TypeVar("Config", bound=TrainConfig)
Model = TypeVar("Model", bound=nn.Module)


class Movable(Protocol):
    """A batch: plain tensors that go to the device together."""

    def to(self, device: torch.device, non_blocking: bool = False) -> Self: ...

    def pin_memory(self) -> Self: ...


Batch = TypeVar("Batch", bound=Movable)


class Loss(NamedTuple):
    """The loss of a batch: what is minimised, and what is reported (without regularisation)."""

    objective: Tensor
    reported: Tensor


class Place(NamedTuple):
    """Which process this is, and of how many that share every batch."""

    rank: int = 0
    world: int = 1

    def of(self, piece: Any) -> Any:
        """This process's share of a piece; one without any takes the first entry, to count for nothing."""
        mine = piece[self.rank :: self.world]
        return mine if len(mine) else piece[:1]


@dataclass(frozen=True)
class Step:
    """One step of the optimizer, and the pieces of the plan whose gradients are added up for it."""

    epoch: int
    index: int
    steps: int  # of the epoch
    pieces: Sequence[Any]

    @property
    def last(self) -> bool:
        """Whether it is the last of its epoch."""
        return self.index == self.steps - 1

    @property
    def time(self) -> float:
        """Epochs that are over when it begins, the share of the present one included."""
        return self.epoch + self.index / self.steps


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
    best: float = math.inf  # of the monitored figure; its negative where more is better
    best_epoch: int = -1
    finished: bool = False


class After(enum.Enum):
    """What follows an epoch."""

    GO_ON = enum.auto()
    NEW_OPTIMIZER = enum.auto()
    STOP = enum.auto()


class Learner(ABC, Generic[Config, Model, Batch]):
    """A task's training. Subclasses say what an epoch's plan is, what a batch of it is, what is lost on it,
    and how to validate; :class:`lrn.training.loop.Loop` takes the steps.

    Args:
        config: the settings of the run.
        model: the model whose weights are trained and saved.
    """

    monitor = "loss"  # the figure of validation by which the best weights are chosen
    more_is_better = False
    largest_loss = math.inf  # that there can be

    def __init__(self, config: Config, model: Model) -> None:
        self.config, self.model = config, model
        self.progress = Progress()
        self.average: list[Tensor] = []
        self.plateau = schedule.Plateau()
        self.first_loss: float | None = None  # of the training's first step; None where it is not known

    # What a task says --------------------------------------------------------------------------

    @abstractmethod
    def plan(self, epoch: int) -> Sequence[Any]:
        """What the epoch consists of, a batch an entry: a pure function of the seed and the epoch."""

    @abstractmethod
    def batch(self, piece: Any, place: Place) -> Batch:
        """This process's share of a piece, on the host. It changes nothing and may run in a worker."""

    def shares(self, step: Step, place: Place) -> list[float]:
        """What each of a process's batches counts in the mean over a step, times the number of processes.

        Processes average their gradients, so that one with fewer sentences than another has to count less.
        """
        whole = sum(map(len, step.pieces))
        return [len(piece[place.rank :: place.world]) * place.world / whole for piece in step.pieces]

    @abstractmethod
    def tokens(self, piece: Any) -> int:
        """How many tokens of all processes together are learnt from in a piece."""

    @abstractmethod
    def loss(self, batch: Batch) -> Loss:
        """The mean loss of a batch on the device."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Figures on the validation data, the monitored one among them."""

    def optimizer(self) -> torch.optim.Optimizer:
        """A new optimizer that fits the state the training is in."""
        return schedule.optimizer(self.config.optimizer, self.model.parameters(), self.config)

    def rate(self, step: Step) -> float:
        """The learning rate of a step."""
        return self.config.lr * self.fallen(step)

    def fallen(self, step: Step) -> float:
        """What the schedule multiplies the learning rate by."""
        return schedule.factor(self.config, step.time, self.progress.step) * self.plateau.factor

    def begin_epoch(self) -> None:
        """Called before the first step of an epoch."""

    def adjust_gradients(self) -> None:
        """Called when all gradients of a step are there, before they are clipped: adds those of the weights'
        squared norm, which needs no graph."""
        if not self.config.l2:
            return
        weights = [weight for weight in self.model.parameters() if weight.grad is not None]
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        torch._foreach_add_(gradients, [weight.detach() for weight in weights], alpha=self.config.l2)

    def end_epoch(self, figures: dict[str, float]) -> After:
        """Called after an epoch's validation."""
        if self.config.schedule == "plateau":
            sign = -1 if self.more_is_better and "loss" not in figures else 1
            loss = sign * figures.get("loss", figures[self.monitor])
            self.plateau.see(loss, self.config.patience, self.config.decay)
        return After.GO_ON

    def extra_state(self) -> dict[str, Any]:
        """What this process carries from step to step, in plain data and tensors."""
        plateau = {"plateau": asdict(self.plateau)} if self.config.schedule == "plateau" else {}
        return {"first_loss": self.first_loss} | plateau

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`extra_state` gave; a ValueError if it cannot have been that."""
        if self.config.schedule == "plateau":
            self.plateau = schedule.Plateau.load(state.get("plateau"))
        self.first_loss = state.get("first_loss")
        if self.first_loss is not None and not isinstance(self.first_loss, float):
            raise ValueError(f"the saved state's first loss is no number: {self.first_loss!r:.40}")

    # Steps -------------------------------------------------------------------------------------

    def steps(self, epoch: int) -> list[Step]:
        """All steps of an epoch."""
        plan, size = self.plan(epoch), self.config.accumulate
        cut = [plan[start : start + size] for start in range(0, len(plan), size)]
        return [
            Step(epoch, index, len(cut), [piece for work in works for piece in self.split(work)])
            for index, works in enumerate(cut)
        ]

    def split(self, work: Any) -> list[Any]:
        """The pieces that an entry of the plan is run in, one after the other, for a single step."""
        return [work]

    def steps_left(self) -> Iterator[Step]:
        """All steps from where the training is to the end of its last epoch."""
        epoch, index = self.progress.epoch, self.progress.index
        while epoch < self.config.epochs:
            yield from self.steps(epoch)[index:]
            epoch, index = epoch + 1, 0

    # Averaged weights --------------------------------------------------------------------------

    def update_average(self) -> None:
        """Update the moving average; early on, what there is counts for more than what there was."""
        if not self.config.ema:
            return
        weights = [parameter.detach() for parameter in self.model.parameters()]
        if not self.average:
            self.average = [weight.clone() for weight in weights]
            return
        steps = self.progress.step + 1
        decay = min(self.config.ema, (1 + steps) / (10 + steps))
        torch._foreach_lerp_(self.average, weights, 1 - decay)

    @contextmanager
    def averaged_weights(self, optimizer: torch.optim.Optimizer) -> Iterator[None]:
        """Within this block the model has the averaged weights, where there are any."""
        average = self.average or schedule.averaged(optimizer, self.model.parameters())
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
