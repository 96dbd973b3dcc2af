"""Weight drop (Merity et al., 2018): dropout on a recurrent unit's matrices, one mask for a whole call."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lrn.nn.dropout import check_probability


class WeightDrop(nn.Module):
    """A parametrization that drops entries of a matrix in training."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_probability("weight drop", p)

    def forward(self, weight: Tensor) -> Tensor:
        return F.dropout(weight, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def drop_weights(unit: nn.Module, p: float) -> list[str]:
    """Drop entries of every matrix of ``unit``, not of biases or SRU's vectors; returns the matrices' names.

    Run the unit inside :func:`one_mask`, or every use of a matrix draws a mask of its own.

    >>> import torch, lrn
    >>> unit = lrn.LRN(3, 4)
    >>> drop_weights(unit, 0.5)
    ['weight_ih_l0']
    >>> with one_mask():
    ...     output, state = unit(torch.randn(5, 2, 3))
    """
    names = [name for name, value in unit.named_parameters(recurse=False) if value.dim() == 2]
    for name in names:
        parametrize.register_parametrization(unit, name, WeightDrop(p))
    return names


def one_mask() -> AbstractContextManager[None]:
    """Open a block in which every dropped matrix keeps its mask; the next block draws a new one."""
    return parametrize.cached()
