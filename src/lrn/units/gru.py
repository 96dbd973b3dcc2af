"""GRU behind the common contract: torch's own kernels, one bias per gate."""

from __future__ import annotations

from lrn.units.fused import FusedUnit


class GRU(FusedUnit):
    """``nn.GRU`` with one bias per gate, ``norm``, ``lengths`` and ``reset``; gate order r, z, n.

    Parameters per layer and direction: 3H(I + H + 1).

    >>> import torch, lrn
    >>> output, h_n = lrn.GRU(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 3
    hidden_gates = 3
    forget_gate = 1
