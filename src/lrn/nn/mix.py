"""One vector of the several layers of a contextual encoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """A weighted mean of layers, times a scale: ``γ Σ softmax(w)_l x_l`` (Peters et al., 2018).

    Args:
        layers: how many there are; all count the same at first.

    >>> ScalarMix(3)(torch.tensor([[[1.0, 2.0]], [[2.0, 2.0]], [[3.0, 2.0]]]))
    tensor([[2., 2.]], grad_fn=<MulBackward0>)
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, layers: Tensor) -> Tensor:
        """Mix ``[L, ...]`` to ``[...]``."""
        mixed: Tensor = self.scale * torch.tensordot(self.weight.softmax(0), layers, 1)
        return mixed
