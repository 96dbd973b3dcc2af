"""How far two models agree, added up batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Agreement:
    """How far a student agrees with its teacher.

    Args:
        explained: the share of the variance of the teacher's outputs that the student explains: 1 is the same
            numbers, 0 no better than their mean, and less than 0 worse than that.
        same: the share of outputs whose largest entry stands in the same place; None where there is only one.
        states: the explained share of the states of each recurrent layer, by its name.
    """

    explained: float
    same: float | None
    states: dict[str, float] = field(default_factory=dict)


def worse(before: Agreement, after: Agreement) -> bool:
    """Whether a student agrees less than it did, in both figures where there are two."""
    more = before.same is not None and after.same is not None and after.same > before.same
    return after.explained < before.explained and not more


class Variance:
    """The explained share of the variance, over any number of tensors ``[..., width]``.

    The mean that is taken off is that of each entry of the last dimension by itself.

    >>> share = Variance()
    >>> share.add(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [3.0]]))
    >>> share.share()
    0.5
    """

    def __init__(self) -> None:
        self._count, self._mean, self._spread, self._error = 0, torch.zeros(()), 0.0, 0.0

    def add(self, student: Tensor, teacher: Tensor) -> None:
        if teacher.numel() == 0:
            return
        given = teacher.detach().double().reshape(-1, teacher.shape[-1] if teacher.dim() > 1 else 1)
        self._error += float((student.detach().double().reshape_as(given) - given).square().sum())
        count, mean = len(given), given.mean(0)
        whole = self._count + count
        before = self._mean if self._count else torch.zeros_like(mean)
        gap = mean - before
        self._spread += float((given - mean).square().sum())
        self._spread += float(gap.square().sum()) * self._count * count / whole
        self._mean, self._count = before + gap * (count / whole), whole

    def share(self) -> float:
        if self._error == 0:
            return 1.0
        return 1 - self._error / self._spread if self._spread else float("-inf")


class Tally:
    """An agreement that is being added up."""

    def __init__(self, layers: Sequence[str] = ()) -> None:
        self._outputs: list[Variance] = []
        self._states = {name: Variance() for name in layers}
        self._right = self._all = 0

    def add(self, student: Sequence[Tensor], teacher: Sequence[Tensor]) -> None:
        """Add the outputs of both on a batch."""
        self._outputs = self._outputs or [Variance() for _ in teacher]
        for share, mine, theirs in zip(self._outputs, student, teacher, strict=True):
            share.add(mine, theirs)
            if theirs.dim() > 1 and theirs.shape[-1] > 1:
                equal = mine.argmax(-1) == theirs.argmax(-1)
                self._right += int(equal.sum())
                self._all += equal.numel()

    def add_states(self, name: str, student: Tensor, teacher: Tensor) -> None:
        self._states[name].add(student, teacher)

    def agreement(self) -> Agreement:
        shares = [share.share() for share in self._outputs]
        return Agreement(
            sum(shares) / len(shares),
            self._right / self._all if self._all else None,
            {name: share.share() for name, share in self._states.items()},
        )
