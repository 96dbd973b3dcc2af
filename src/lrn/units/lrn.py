"""LRN and its relatives: oLRN (output gate), gLRN and eLRN (the paper's ablations)."""

from __future__ import annotations

from typing import ClassVar

from lrn.units.bases import Activated, ElementwiseUnit


class LRN(Activated, ElementwiseUnit):
    """Lightweight Recurrent Network (Zhang & Sennrich, 2019), eqs. (1) to (4).

    ``q, k, v = W x + b``, ``i = σ(k + h')``, ``f = σ(q − h')``, ``h = g(i⊙v + f⊙h')``.
    Fused order q, k, v. Parameters per layer and direction: 3H(I + 1).

    >>> import torch, lrn
    >>> unit = lrn.LRN(input_size=3, hidden_size=4)
    >>> output, h_n = unit(torch.randn(5, 2, 3))
    >>> output.shape, h_n.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    gates = 3
    forget_gate: ClassVar[int | None] = 0
    input_gate: ClassVar[int | None] = 1


class OLRN(ElementwiseUnit):
    """LRN with an output gate (section 6.3): ``c = i⊙v + f⊙h'``, ``o = σ(W_o x − c)``, ``h = o⊙c``.

    Fused order q, k, v, o. Parameters per layer and direction: 4H(I + 1).

    >>> import torch, lrn
    >>> output, h_n = lrn.OLRN(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 4
    forget_gate: ClassVar[int | None] = 0
    input_gate: ClassVar[int | None] = 1


class GLRN(LRN):
    """Ablation (section 6.7): one general gate, ``f = σ(q − h')``, ``i = 1 − f``; no key weight.

    Fused order q, v. Parameters per layer and direction: 2H(I + 1).

    >>> import torch, lrn
    >>> output, h_n = lrn.GLRN(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 2
    forget_gate: ClassVar[int | None] = 0
    input_gate: ClassVar[int | None] = None


class ELRN(LRN):
    """Ablation (section 6.7), the extreme case: ``f = σ(−h')``, ``i = 1 − f``; no key, no query weight.

    Only v is projected. Parameters per layer and direction: H(I + 1).

    >>> import torch, lrn
    >>> output, h_n = lrn.ELRN(3, 4)(torch.randn(5, 2, 3))
    """

    gates = 1
    forget_gate: ClassVar[int | None] = None
    input_gate: ClassVar[int | None] = None
