"""LSTM behind the common contract: torch's own kernels, one bias per gate."""

from __future__ import annotations

from lrn.units.fused import FusedUnit


class LSTM(FusedUnit):
    """``nn.LSTM`` with one bias per gate, ``norm``, ``lengths`` and ``reset``; gate order i, f, g, o.

    The state is the pair ``(h, c)``. Parameters per layer and direction: 4H(I + H + 1).

    >>> import torch, lrn
    >>> output, (h_n, c_n) = lrn.LSTM(3, 4)(torch.randn(5, 2, 3))
    >>> lrn.LSTM(3, 4).load_state_dict(torch.nn.LSTM(3, 4).state_dict())
    <All keys matched successfully>
    """

    gates = 4
    hidden_gates = 4
    forget_gate, input_gate = 1, 0
    parts = 2
