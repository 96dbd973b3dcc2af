"""How long a unit remembers each token: the decay curves of the paper's figure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lrn.analysis.decomposition import Decomposition, decompose
from lrn.units.bases import ElementwiseUnit


@dataclass(frozen=True)
class Memory:
    """What is left of every token as time goes on.

    Args:
        curves: the weight of token k in the state after t, mean over channels, ``[k, t]``; zeros for k > t.
        half_life: the steps until each token's curve has fallen to half of what it began with, ``[T]``; inf
            if it never does.
        channel_half_life: the half-life of each channel by its mean log forget gate, ``[H]``.
        decomposition: the weights behind the curves.
    """

    curves: Tensor
    half_life: Tensor
    channel_half_life: Tensor
    decomposition: Decomposition

    def ranking(self) -> list[int]:
        """The tokens that the last state remembers best, best first."""
        return self.curves[:, -1].argsort(descending=True, stable=True).tolist()


def memory(unit: ElementwiseUnit, x: Tensor) -> Memory:
    """The memory of ``unit`` (one layer, one direction) over the sequence ``x [T, I]``.

    >>> import torch, lrn
    >>> found = memory(lrn.LRN(3, 4), torch.randn(6, 3))
    >>> found.curves.shape, sorted(found.ranking())
    (torch.Size([6, 6]), [0, 1, 2, 3, 4, 5])
    """
    found = decompose(unit, x)
    curves = found.mean_weights()
    steps = torch.arange(found.steps, device=curves.device)
    half = curves.diagonal() / 2 * (1 + 16 * torch.finfo(curves.dtype).eps)  # to rounding
    fallen = (curves <= half[:, None]) & (steps[None] > steps[:, None])
    first = torch.where(fallen, steps, found.steps).min(1).values
    half_life = torch.where(first < found.steps, first - steps, torch.inf)
    channels = math.log(0.5) / found.gates.log_f.mean(0)
    return Memory(curves, half_life, channels, found)
