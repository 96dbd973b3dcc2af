"""Many sentences as numbers: held one after the other, and laid out for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrn.text.batches import Packing


@dataclass(frozen=True)
class Sentences:
    """Sentences one after the other, as numbers of types.

    >>> sentences = Sentences.of([[5, 7], [5]])
    >>> sentences[1], sentences.lengths
    (array([5], dtype=int32), array([2, 1]))
    """

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]  # [sentences + 1] where each begins

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> Sentences:
        offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
        flat = np.fromiter((token for row in sentences for token in row), np.int32, int(offsets[-1]))
        return cls(flat, offsets)

    def __getitem__(self, number: int) -> NDArray[np.int32]:
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


def pack_types(rows: Sequence[NDArray[np.int32]], packing: Packing) -> NDArray[np.int32]:
    """Lay sentences out in packed order, ``[N]``.

    >>> pack_types([np.array([1, 2], np.int32), np.array([3], np.int32)], Packing.of([2, 1]))
    array([1, 3, 2], dtype=int32)
    """
    padded = np.zeros(packing.mask.shape, np.int32)  # [B, T]
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    flat: NDArray[np.int32] = padded.reshape(-1)[packing.places.numpy()]  # [N]
    return flat
