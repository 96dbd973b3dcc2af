"""Gated dot attention: every step of a sequence looks at a memory, and a gate lets through what counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lrn.nn.dropout import SequenceDropout
from lrn.nn.linear import Linear

if TYPE_CHECKING:
    from lrn.text.batches import RowPacking


class GatedAttention(nn.Module):
    """Attention of packed sequences to one memory each, with a gate on what was read and found.

    ``a = softmax_s(relu(d(x) W₁)·relu(d(m_s) W₂) / √H)``, ``r = [x ; Σ a_s m_s]``, result ``r ⊙ σ(d(r) W₃)``;
    d is dropout with one mask a sequence.

    Sequences are looked at one by one in their own lengths, so that nothing is computed or kept for padding:
    of all weights there are as many at a time as the squared lengths add up to.

    Args:
        width: of sequences and memory.
        hidden: H, in which they are compared.

    >>> from lrn.text.batches import RowPacking
    >>> x, memory, packing, places = torch.randn(5, 4), torch.randn(3, 4), RowPacking.of([3, 2]), [1, 2]
    >>> GatedAttention(4, 2)(x, packing, memory, RowPacking.of(places)).shape
    torch.Size([5, 8])
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = SequenceDropout(dropout)
        self.query = Linear(width, hidden, bias=False)
        self.key = Linear(width, hidden, bias=False)
        self.gate = Linear(2 * width, 2 * width, bias=False)
        for linear in (self.query, self.key, self.gate):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, packing: RowPacking, memory: Tensor, places: RowPacking) -> Tensor:
        """Read packed steps ``[N, W]`` that look at packed memories ``[M, W]``; returns ``[N, 2 * W]``."""
        found = [
            weights @ states
            for weights, states in zip(
                self.weights(x, packing, memory, places), _by_row(memory, places), strict=True
            )
        ]  # of [T, W]
        read = torch.cat([x, torch.cat(found).index_select(0, packing.from_row)], -1)  # [N, 2 * W]
        return read * torch.sigmoid(self.gate(self.dropout(read, packing)))

    def weights(self, x: Tensor, packing: RowPacking, memory: Tensor, places: RowPacking) -> list[Tensor]:
        """How much each step of each sequence looks at each of its memory, ``[T, S]`` a sequence."""
        queries = torch.relu(self.query(self.dropout(x, packing))) / math.sqrt(self.query.out_features)
        keys = torch.relu(self.key(self.dropout(memory, places)))  # [M, H]
        rows = zip(_by_row(queries, packing), _by_row(keys, places), strict=True)
        return [(query @ key.t()).softmax(-1) for query, key in rows]


def _by_row(steps: Tensor, packing: RowPacking) -> tuple[Tensor, ...]:
    """The packed steps of each sequence, ``[T, W]``."""
    rows: tuple[Tensor, ...] = steps.index_select(0, packing.by_row).split(packing.lengths.tolist())
    return rows
