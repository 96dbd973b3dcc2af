"""Word vectors of which some are learnt and the others stay as they are."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class FrozenWords(nn.Module):
    """A table whose first rows are learnt; the rest is given, stays as it is and is not saved.

    >>> import torch
    >>> words = FrozenWords(2, torch.ones(3, 4))
    >>> words(torch.tensor([0, 4])).shape, sum(p.numel() for p in words.parameters())
    (torch.Size([2, 4]), 8)
    """

    frozen: Tensor

    def __init__(self, learnt: int, frozen: Tensor) -> None:
        super().__init__()
        self.learnt = nn.Parameter(frozen.new_empty(learnt, frozen.shape[1]).uniform_(-0.08, 0.08))
        self.register_buffer("frozen", frozen, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Vectors of 1-D ``rows``."""
        learnt = len(self.learnt)
        vectors = F.embedding((rows - learnt).clamp_min(0), self.frozen)
        places = (rows < learnt).nonzero().squeeze(1)
        return vectors.index_copy_(0, places, F.embedding(rows[places], self.learnt))

    def extra_repr(self) -> str:
        return f"{len(self.learnt)} learnt, {len(self.frozen)} as they are"
