"""ATR (Zhang et al., 2018): twin gates by addition and subtraction, one matrix inside the recurrence."""

from __future__ import annotations

from torch import Tensor

from lrn import recurrence
from lrn.recurrence import Rows
from lrn.units.bases import Activated, MatrixUnit


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

    def _recur(self, layer: int, projected: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.norm is not None:  # a norm on U h' as well, which only our walk knows
            return super()._recur(layer, projected, state, rows)
        x = projected.unflatten(-1, (self.directions, 1, self.hidden_size))  # [rows, D, 1, H]
        weight, bias = self._by_direction("weight_hh", layer), self._by_direction("bias_hh", layer)
        return recurrence.walk_atr(self.activation, x, state, weight, bias, rows, self._direction)
