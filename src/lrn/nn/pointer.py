"""Pointing at a span of a sequence: a network that points twice, and the search for the best span."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn.dropout import SequenceDropout, check_probability
from lrn.nn.initial import glorot
from lrn.nn.linear import Linear
from lrn.nn.reset_gru import ResetGRU

if TYPE_CHECKING:
    from lrn.text.batches import RowPacking


class Pointer(nn.Module):
    """A pointer network (Vinyals et al., 2015) that points at where a span begins, then at where it ends.

    ``s_t = v·tanh(W [d(h) ; d(m_t)])`` points; what it points at, ``Σ softmax(s)_t d(m_t)``, moves the
    state h by a GRU's step, and the new state points again. d is dropout: one mask a sequence on the memory
    m, one a sequence on both states.

    Args:
        width: of the memory.
        state: of h.
        hidden: of what is inside the tanh.

    >>> from lrn.text.batches import RowPacking
    >>> first, last = Pointer(6, 4, 3)(torch.zeros(2, 4), torch.randn(5, 6), RowPacking.of([2, 3]))
    >>> first.shape, last[0, 2]
    (torch.Size([2, 3]), tensor(-inf, grad_fn=<SelectBackward0>))
    """

    def __init__(self, width: int, state: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.p = check_probability("dropout", dropout)
        self.dropout = SequenceDropout(dropout)
        self.state = Linear(state, hidden, bias=False)
        self.memory = Linear(width, hidden, bias=False)
        self.score = Linear(hidden, 1, bias=False)
        self.cell = ResetGRU(width, state)
        for linear in (self.state, self.memory):
            glorot(linear.weight, state + width, hidden)
        nn.init.xavier_uniform_(self.score.weight)

    def forward(self, state: Tensor, memory: Tensor, packing: RowPacking) -> tuple[Tensor, Tensor]:
        """Return the scores of all places to begin and to end at, ``[B, T]`` each, −∞ where there is none.

        Args:
            state: of each sequence before anything is pointed at, ``[B, state]``.
            memory: packed, ``[N, width]``.
        """
        memory = self.dropout(memory, packing)
        mask = self.dropout.mask(len(state), state)  # [B, state]
        keys = self.memory(memory)  # [N, hidden]
        first = self._scores(state, mask, keys, packing)
        found = (first.softmax(-1).unsqueeze(1) @ packing.pad(memory)).squeeze(1)  # [B, width]
        found = F.dropout(found, self.p, self.training)
        after = self.cell.step(self.cell.project(found), state)
        return first, self._scores(after, mask, keys, packing)

    def _scores(self, state: Tensor, mask: Tensor | None, keys: Tensor, packing: RowPacking) -> Tensor:
        query = self.state(state if mask is None else state * mask).index_select(
            0, packing.rows
        )  # [N, hidden]
        scores = packing.pad(self.score(torch.tanh(query + keys)).squeeze(-1))  # [B, T]
        return scores.masked_fill(~packing.mask, -torch.inf)


def best_spans(first: Tensor, last: Tensor, longest: int, count: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Find the spans whose ``first[i] + last[j]`` are the greatest, of all with ``i ≤ j < i + longest``.

    Args:
        first: of each sequence's places to begin, ``[B, T]``: the logarithms of their probabilities; −∞ where
            there is no place.
        last: the same for places to end.
        longest: steps that a span may have.
        count: how many spans to find.

    Returns:
        First steps, last steps and sums, ``[B, count]`` each, the best first; fewer if there are not so many
        spans, and with a sum of −∞ for what is none in a shorter sequence.

    >>> scores = torch.tensor([[0.1, 0.2, 0.7]]).log()
    >>> starts, ends, sums = best_spans(scores.flip(1), scores, longest=2)
    >>> starts.item(), ends.item(), round(sums.exp().item(), 2)
    (0, 1, 0.14)
    """
    steps = first.shape[1]
    widths = range(min(longest, steps))
    ends = [F.pad(last[:, width:], (0, width), value=-torch.inf) for width in widths]
    sums = (first.unsqueeze(-1) + torch.stack(ends, -1)).flatten(1)  # [B, T * widths]
    best, places = sums.topk(min(count, sums.shape[1]), 1)  # [B, count]
    starts = places // len(widths)
    return starts, (starts + places % len(widths)).clamp_max(steps - 1), best
