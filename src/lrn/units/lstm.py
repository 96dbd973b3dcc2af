"""LSTM behind the common contract: torch's own kernels, one bias per gate."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lrn.recurrence import cells
from lrn.units.fused import FusedUnit


class LSTM(FusedUnit):
    """``nn.LSTM`` with one bias per gate, ``norm``, ``lengths`` and ``reset``; gate order i, f, g, o.

    The state is the pair ``(h, c)``. Parameters per layer and direction: 4H(I + H + 1).

    >>> import torch, lrn
    >>> output, (h_n, c_n) = lrn.LSTM(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 4
    hidden_gates = 4
    parts = 2

    def _kernel(
        self,
        x: Tensor,
        batch_sizes: Tensor | None,
        state: tuple[Tensor, ...],
        weights: list[Tensor],
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            # torch's kernel fails in bfloat16 on processors without instructions for it.
            with torch.autocast("cpu", enabled=False):
                state = tuple(part.float() for part in state)
                return self._kernel(x.float(), batch_sizes, state, weights, batch_first)
        tail = (weights, self.bias, 1, 0.0, self.training, self.bidirectional)
        if batch_sizes is not None:
            return torch.lstm(x, batch_sizes, state, *tail)
        return torch.lstm(x, state, *tail, batch_first)

    def _stepper(self, layer: int, direction: int) -> Callable[[Tensor, cells.State], cells.State]:
        return cells.lstm(self._hidden(layer, direction))
