"""Word vectors of which some are learnt and the others stay as they are."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class FrozenWords(nn.Module):
    """A table of word vectors whose first are learnt; the rest are given, stay as they are and are not saved.

    >>> import torch
    >>> vectors = FrozenWords(2, torch.ones(3, 4))
    >>> vectors(torch.tensor([0, 4])).shape, sum(p.numel() for p in vectors.parameters())
    (torch.Size([2, 4]), 8)
    """

    frozen: Tensor

    def __init__(self, learnt: int, frozen: Tensor) -> None:
        super().__init__()
        self.learnt = nn.Parameter(frozen.new_empty(learnt, frozen.shape[1]).uniform_(-0.08, 0.08))
        self.register_buffer("frozen", frozen, persistent=False)

    def forward(self, words: Tensor) -> Tensor:
        """Look up ``words``, numbers of any shape ``[...]``; returns vectors ``[..., width]``."""
        learnt = len(self.learnt)
        # Both are looked up for every word and one of them is zeros: to choose is to wait for the device.
        # The row behind the learnt ones is no word's; as padding it brings no gradient back.
        table = F.pad(self.learnt, (0, 0, 0, 1))  # [learnt + 1, width]
        vectors = F.embedding(words.clamp_max(learnt), table, padding_idx=learnt)
        given = F.embedding((words - learnt).clamp_min(0), self.frozen)
        return vectors.addcmul_(given, (words >= learnt).unsqueeze(-1).to(given.dtype))

    def extra_repr(self) -> str:
        return f"{len(self.learnt)} learnt, {len(self.frozen)} as they are"
