"""GRU behind the common contract: torch's own kernels, one bias per gate."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lrn.recurrence import cells
from lrn.units.fused import FusedUnit


class GRU(FusedUnit):
    """``nn.GRU`` with one bias per gate, ``norm``, ``lengths`` and ``reset``; gate order r, z, n.

    Parameters per layer and direction: 3H(I + H + 1).

    >>> import torch, lrn
    >>> output, h_n = lrn.GRU(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 3
    hidden_gates = 3

    def _kernel(
        self,
        x: Tensor,
        batch_sizes: Tensor | None,
        state: tuple[Tensor, ...],
        weights: list[Tensor],
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        tail = (weights, self.bias, 1, 0.0, self.training, self.bidirectional)
        if batch_sizes is not None:
            return torch.gru(x, batch_sizes, state[0], *tail)
        return torch.gru(x, state[0], *tail, batch_first)

    def _stepper(self, layer: int, direction: int) -> Callable[[Tensor, cells.State], cells.State]:
        return cells.gru(self._hidden(layer, direction))
