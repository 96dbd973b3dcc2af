"""A linear layer, its product by the faster of torch's libraries."""

from __future__ import annotations

from torch import Tensor, nn

from lrn.migration.quantizing import LINEAR
from lrn.recurrence.products import linear


class Linear(nn.Linear):
    """An ``nn.Linear`` whose product goes to the faster of torch's two libraries.

    ``lrn.quantize`` takes it for the ``nn.Linear`` that it is. torch.jit.script does not, nor do tools that
    look for that very class, like torch's ``quantize_dynamic``.

    >>> import torch
    >>> Linear(3, 4)(torch.randn(2, 3)).shape
    torch.Size([2, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


LINEAR.add(Linear)
