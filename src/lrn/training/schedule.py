"""Optimizers and learning-rate schedules by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from lrn.training.config import TrainConfig

Parameters = Iterable[nn.Parameter] | list[dict[str, Any]]  # weights, or torch's groups of them


_FUSED_ADAM = ("cpu", "cuda", "mps", "xpu")  # types of devices that have it


def _adam(parameters: Parameters, config: TrainConfig, **options: Any) -> torch.optim.Optimizer:
    own: dict[str, Any] = {"weight_decay": config.weight_decay} | options
    given: Any = list(parameters)
    weights = [w for entry in given for w in (entry["params"] if isinstance(entry, dict) else [entry])]
    # One pass over the weights instead of eight: tables of word vectors are large. With float16, gradients
    # have to be scaled back before they are clipped, which it would do itself.
    if config.precision != "16" and all(weight.device.type in _FUSED_ADAM for weight in weights):
        own["fused"] = True
    return torch.optim.Adam(given, config.lr, **own)


def _sgd(parameters: Parameters, config: TrainConfig, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, config.lr, weight_decay=config.weight_decay, **options)


def _averaged_sgd(parameters: Parameters, config: TrainConfig, **options: Any) -> torch.optim.Optimizer:
    own = {"t0": 0, "lambd": 0.0, "weight_decay": config.weight_decay} | options
    return torch.optim.ASGD(parameters, config.lr, **own)


def _adadelta(parameters: Parameters, config: TrainConfig, **options: Any) -> torch.optim.Optimizer:
    own = {"rho": 0.95, "eps": 1e-6, "weight_decay": config.weight_decay} | options
    return torch.optim.Adadelta(parameters, config.lr, **own)


_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": _adam,
    "sgd": _sgd,
    "adadelta": _adadelta,
    "asgd": _averaged_sgd,
}


def optimizer(
    name: str, parameters: Parameters, config: TrainConfig, **options: Any
) -> torch.optim.Optimizer:
    """A new optimizer: adam, sgd, adadelta or asgd (averaged SGD); ``options`` go to torch's class."""
    return _OPTIMIZERS[name](parameters, config, **options)


def state_names(optimizer: torch.optim.Optimizer) -> set[str]:
    """What an optimizer gathers for each weight."""
    if isinstance(optimizer, torch.optim.Adam):
        return {"step", "exp_avg", "exp_avg_sq"}
    if isinstance(optimizer, torch.optim.Adadelta):
        return {"step", "square_avg", "acc_delta"}
    if isinstance(optimizer, torch.optim.ASGD):
        return {"step", "eta", "mu", "ax"}
    return {"momentum_buffer"}


def averaged(optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Averaged SGD's own average of the weights; empty where there is none."""
    state = optimizer.state
    found = [state[parameter].get("ax") for parameter in parameters if parameter in state]
    return [average for average in found if isinstance(average, Tensor)]


def factor(config: TrainConfig, time: float, step: int) -> float:
    """What the learning rate is multiplied by after ``time`` epochs, which are ``step`` steps.

    ``constant``: 1; ``linear``: falls to nothing at the last epoch's end; ``exponential``: is multiplied by
    ``decay`` after every whole epoch; ``plateau``: see :class:`Plateau`; ``chen``: see :func:`chen`.
    """
    if config.schedule == "chen":
        return chen(step, config.replicas, config.warmup, config.decay_from, config.decay_to)
    if config.schedule == "linear":
        return 1 - time / config.epochs
    if config.schedule == "exponential":
        return config.decay ** int(time)
    return 1.0


@dataclass
class Plateau:
    """The rate that falls when the validation loss does not: what it has seen so far, all of it saved.

    A loss that is not below the stored one wears patience down; when it is at its end, the rate falls, and
    the loss of that moment is stored in place of the lowest.

    >>> plateau = Plateau()
    >>> for loss in (3.0, 3.5, 3.2, 3.1):
    ...     plateau.see(loss, patience=2, decay=0.5)
    >>> plateau
    Plateau(factor=0.5, stored=3.1, worn=0)
    """

    factor: float = 1.0  # of the learning rate
    stored: float = math.inf
    worn: int = 0  # validations without a lower loss

    def see(self, loss: float, patience: int, decay: float) -> None:
        """Take notice of the loss of a validation."""
        self.worn = 0 if loss < self.stored else self.worn + 1
        if self.worn == 0:
            self.stored = loss
        elif self.worn >= patience:
            self.factor, self.stored, self.worn = self.factor * decay, loss, 0

    @classmethod
    def load(cls, state: Any) -> Plateau:
        """Take up what was saved of one; a ValueError if it cannot have been that."""
        kinds = {field.name: type(field.default) for field in fields(cls)}
        if isinstance(state, dict) and {name: type(value) for name, value in state.items()} == kinds:
            found = cls(**state)
            if 0 < found.factor <= 1 and not math.isnan(found.stored) and found.worn >= 0:
                return found
        raise ValueError(f"the saved state says of the falling rate {state!r:.80}")


def chen(step: int, replicas: int, warmup: int, start: int, end: int) -> float:
    """The schedule of Chen et al. (2018) for a training of n ``replicas`` at a time.

    It rises from 1 to n within n·p steps, p being the ``warmup``, and falls from step s/n, with s the
    ``start``, to 1/2 at step e/n, with e the ``end``, and on:
    ``min(1 + t(n−1)/(n·p), n, n·(2n)^((s−n·t)/(e−s)))``.

    >>> [round(chen(step, 4, 100, 4_000, 8_000), 3) for step in (0, 200, 400, 1_000, 1_500, 2_000)]
    [1.0, 2.5, 4.0, 4.0, 1.414, 0.5]
    """
    n = replicas
    fallen: float = n * (2 * n) ** ((start - n * step) / (end - start))
    return min(1 + step * (n - 1) / (n * warmup), float(n), fallen)
