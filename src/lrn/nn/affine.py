"""An affine map that may be normalised between its product and its bias."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lrn.recurrence import cells
from lrn.recurrence.products import linear


class Affine(nn.Module):
    """The map ``N(x·W) + b``, with the norm where the recurrent units have theirs.

    Args:
        bias: whether there is a b.
        norm: None, "layer" or "rms".
        offset: whether the norm has an offset of its own. Beside a bias it says nothing new; the paper's
            translation code has both, and counts both.

    >>> Affine(3, 4, norm="rms")(torch.randn(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, inputs: int, outputs: int, bias: bool = True, norm: str | None = None, offset: bool = False
    ) -> None:
        super().__init__()
        self.norm = norm
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.scale = nn.Parameter(torch.ones(outputs)) if norm else None
        self.offset = nn.Parameter(torch.zeros(outputs)) if norm and offset else None
        bound = 1 / math.sqrt(inputs)
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., inputs]`` to ``[..., outputs]``."""
        if self.scale is None or self.norm is None:
            return linear(x, self.weight, self.bias)
        added = [part for part in (self.bias, self.offset) if part is not None]
        bias = added[0] + added[1] if len(added) == 2 else added[0] if added else None
        return cells.normalise(linear(x, self.weight), self.norm, self.scale, bias)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        norm = f", norm={self.norm!r}" if self.norm else ""
        offset = ", offset=True" if self.offset is not None else ""
        return f"{inputs}, {outputs}{'' if self.bias is not None else ', bias=False'}{norm}{offset}"
