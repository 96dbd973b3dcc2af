"""A bidirectional layer each of whose directions has a dropout mask of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrn.nn.dropout import SequenceDropout, locked
from lrn.units.unit import Unit

if TYPE_CHECKING:
    from lrn.text.batches import RowPacking

Masks = tuple[Tensor | None, Tensor | None]


class BothWays(nn.Module):
    """Two units that read packed sequences in opposite directions, each through one mask a sequence.

    Args:
        forwards: a unit of one layer and one direction.
        backwards: another one of the same sizes.
        dropout: of what the units read: one mask a sequence and direction for all steps.

    >>> import lrn
    >>> from lrn.text.batches import RowPacking
    >>> layer = BothWays(lrn.LRN(3, 4), lrn.LRN(3, 4), dropout=0.3)
    >>> layer(torch.randn(5, 3), RowPacking.of([3, 2])).shape
    torch.Size([5, 8])
    """

    def __init__(self, forwards: Unit, backwards: Unit, dropout: float = 0.0) -> None:
        super().__init__()
        self.forwards, self.backwards = forwards, backwards
        self.dropout = SequenceDropout(dropout)

    def masks(self, sequences: int, like: Tensor) -> Masks:
        """Draw the masks of both directions for so many sequences, ``[B, I]`` each."""
        return self.dropout.mask(sequences, like), self.dropout.mask(sequences, like)

    def forward(self, x: Tensor, packing: RowPacking, masks: Masks | None = None) -> Tensor:
        """Read packed steps ``[N, I]``; returns the states of both directions, ``[N, 2 * H]``.

        ``masks`` are those to read through; by default they are drawn now.
        """
        ahead, back = masks or self.masks(len(packing.order), x)
        forwards = _run(self.forwards, locked(x, ahead, packing.rows), packing)
        backwards = _run(self.backwards, locked(x, back, packing.rows, packing.flip), packing)
        return torch.cat([forwards, backwards.index_select(0, packing.flip)], -1)


def _run(unit: Unit, steps: Tensor, packing: RowPacking) -> Tensor:
    output, _ = unit(packing.packed(steps))
    assert isinstance(output, PackedSequence)
    return output.data
