"""What LSTM and GRU share: torch's own fused implementation where it can run, our walk where it cannot."""

from __future__ import annotations

from torch import Tensor

from lrn import recurrence
from lrn.recurrence import Rows
from lrn.units.bases import MatrixUnit


class FusedUnit(MatrixUnit):
    """A unit that torch.nn has too. One bias per gate: torch's second bias vector is fixed at zero."""

    def _layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.norm is not None or rows.reset is not None:
            return super()._layer(layer, x, state, rows)  # what torch's kernels cannot do
        names = ("weight_ih", "weight_hh", "bias_ih")
        weights = list(zip(*(self._parameters_of(name, layer) for name in names), strict=True))
        return recurrence.fused_layer(self.cell, x, state, weights, rows, self.training)
