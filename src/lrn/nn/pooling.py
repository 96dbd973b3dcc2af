"""Attentive pooling: many states to one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lrn.nn.dropout import Dropout, SequenceDropout
from lrn.nn.linear import Linear

if TYPE_CHECKING:
    from lrn.text.batches import Packing, RowPacking


class AttentivePooling(nn.Module):
    """A weighted mean of the states of a sequence: each counts by how well it answers a summary of the whole.

    ``m_t = tanh(A u_t + B s)``, ``α = softmax(w·m)``, result ``Σ α_t u_t``; in training u_t and s are dropped
    out, s anew at every step.

    Args:
        width: of states and summary.
        hidden: of m.

    >>> pool = AttentivePooling(8, 4)
    >>> mask = torch.arange(5) < torch.tensor([[5], [3]])
    >>> pooled, weights = pool(torch.randn(2, 5, 8), torch.randn(2, 8), mask)
    >>> pooled.shape, weights[1, 3:]
    (torch.Size([2, 8]), tensor([0., 0.], grad_fn=<SliceBackward0>))
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.state = Linear(width, hidden)
        self.summary = Linear(width, hidden)
        self.score = Linear(hidden, 1, bias=False)

    def forward(self, states: Tensor, summary: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pool the states of each sequence; returns the means ``[B, W]`` and the weights ``[B, T]``.

        Args:
            states: ``[B, T, W]``.
            summary: ``[B, W]``.
            mask: ``[B, T]``, True where a state is.
        """
        states = self.dropout(states)
        summary = summary.unsqueeze(1)  # [B, 1, W]
        if self.training and self.dropout.p:
            summary = self.dropout(summary.expand(states.shape))  # [B, T, W]
        hidden = torch.tanh(self.state(states) + self.summary(summary))  # [B, T, hidden]
        scores = self.score(hidden).squeeze(-1)  # [B, T]
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        return (weights.unsqueeze(1) @ states).squeeze(1), weights  # [B, W]


class SelfPooling(nn.Module):
    """A weighted mean of the states of a sequence, each of which says by itself how much it counts.

    ``α = softmax(v·tanh(A u_t))``, result ``Σ α_t u_t``; in training u_t is dropped out.

    Args:
        width: of the states.
        hidden: of what is inside the tanh.

    >>> from lrn.text.batches import Packing
    >>> pooled, weights = SelfPooling(8, 4)(torch.randn(4, 8), Packing.of([3, 1]))
    >>> pooled.shape, weights[1, 1:]
    (torch.Size([2, 8]), tensor([0., 0.], grad_fn=<SliceBackward0>))
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.state = Linear(width, hidden)
        self.score = Linear(hidden, 1, bias=False)

    def forward(self, states: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """Pool packed states ``[N, W]``; returns the means ``[B, W]`` and the weights ``[B, T]``."""
        states = self.dropout(states)
        scores = packing.pad(self.score(torch.tanh(self.state(states))).squeeze(-1))  # [B, T]
        weights = scores.masked_fill(~packing.mask, -torch.inf).softmax(-1)
        return _mean(states, weights, packing), weights


class LockedPooling(nn.Module):
    """A weighted mean of the states of a sequence like :class:`SelfPooling`'s, of states that are whole.

    ``α = softmax(v·tanh(A d(u_t) + b))``, result ``Σ α_t u_t``: the dropout d, one mask a sequence, acts on
    what the weights are computed from alone.

    Args:
        width: of the states.
        hidden: of what is inside the tanh.

    >>> from lrn.text.batches import RowPacking
    >>> pooled, weights = LockedPooling(8, 4)(torch.randn(4, 8), RowPacking.of([3, 1]))
    >>> pooled.shape, weights[1, 1:]
    (torch.Size([2, 8]), tensor([0., 0.], grad_fn=<SliceBackward0>))
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = SequenceDropout(dropout)
        self.state = Linear(width, hidden)
        self.score = Linear(hidden, 1, bias=False)
        nn.init.xavier_uniform_(self.state.weight)
        nn.init.xavier_uniform_(self.score.weight)
        nn.init.zeros_(self.state.bias)

    def forward(self, states: Tensor, packing: RowPacking) -> tuple[Tensor, Tensor]:
        """Pool packed states ``[N, W]``; returns the means ``[B, W]`` and the weights ``[B, T]``."""
        hidden = torch.tanh(self.state(self.dropout(states, packing)))  # [N, hidden]
        scores = packing.pad(self.score(hidden).squeeze(-1))  # [B, T]
        weights = scores.masked_fill(~packing.mask, -torch.inf).softmax(-1)
        return _mean(states, weights, packing), weights


def _mean(states: Tensor, weights: Tensor, packing: Packing) -> Tensor:
    """The weighted means ``[B, W]`` of packed states ``[N, W]``, by weights ``[B, T]``.

    They are added up where they lie: padded, the states would be the largest thing that a model keeps.
    """
    shares = weights.flatten().index_select(0, packing.places)  # [N]
    parts = states * shares.unsqueeze(-1)  # [N, W]
    rows = packing.places // packing.mask.shape[1]  # [N] the sequence of each state
    return parts.new_zeros(len(weights), parts.shape[1]).index_add(0, rows, parts)
