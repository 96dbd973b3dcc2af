"""ATR (Zhang et al., 2018): twin gates by addition and subtraction, one matrix inside the recurrence."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lrn.recurrence import cells
from lrn.units.unit import Activated, MatrixUnit


class ATR(Activated, MatrixUnit):
    """Addition-subtraction Twin-gated Recurrent network.

    ``p = W x + b``, ``q = U h' + b'``, ``i = σ(p + q)``, ``f = σ(p − q)``, ``h = g(i⊙p + f⊙h')``.
    Parameters per layer and direction: H(I + H + 2).

    >>> import torch, lrn
    >>> output, h_n = lrn.ATR(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 1
    hidden_gates = 1

    def _shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(width)
        return shapes | {"bias_hh": (self.hidden_size,)} if self.bias else shapes

    def _stepper(self, layer: int, direction: int) -> Callable[[Tensor, cells.State], cells.State]:
        return cells.atr(cells.ACTIVATIONS[self.activation], self._hidden(layer, direction))
