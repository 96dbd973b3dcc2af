"""SRU (Lei et al., 2018), with its own highway projection as in the paper's comparison."""

from __future__ import annotations

import torch
from torch import Tensor

from lrn.units.bases import ElementwiseUnit


class SRU(ElementwiseUnit):
    """Simple Recurrent Unit; the state is the pair ``(h, c)`` and only ``c`` is read.

    ``f = σ(x_f + v_f⊙c')``, ``r = σ(x_r + v_r⊙c')``, ``c = f⊙c' + (1−f)⊙x_c``, ``h = r⊙c + (1−r)⊙x_h``.
    Fused order r, f, c, h (highway). Parameters per layer and direction: 4HI + 6H.

    >>> import torch, lrn
    >>> output, (h_n, c_n) = lrn.SRU(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 4
    parts = 2
    forget_gate = 1

    def _shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        return super()._shapes(width) | {"v_r": (self.hidden_size,), "v_f": (self.hidden_size,)}

    def _vectors(self, layer: int) -> Tensor:
        pairs = zip(self._parameters_of("v_r", layer), self._parameters_of("v_f", layer), strict=True)
        flat = [vector for pair in pairs for vector in pair if vector is not None]
        return torch.stack(flat).view(self.directions, 2, self.hidden_size)
