"""Sentences as numbers, one after the other in one array, and packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrn.text.batches import Packing


@dataclass(frozen=True)
class Sentences:
    """Sentences one after the other, as numbers of types.

    >>> sentences = Sentences.of([[3, 1], [], [2]])
    >>> sentences[2], sentences.lengths
    (array([2], dtype=int32), array([2, 0, 1]))
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

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def where(self, kept: NDArray[np.bool_]) -> Sentences:
        """Those sentences for which ``kept`` is True."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths[kept])])
        return Sentences(self.tokens[np.repeat(kept, self.lengths)], offsets)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


def packed_rows(rows: Sequence[NDArray[Any]], packing: Packing) -> NDArray[np.int32]:
    """Lay sentences out as a packing says: first words of all, then second ones, …

    >>> packed_rows([np.array([1]), np.array([2, 3, 4])], Packing.of([1, 3]))
    array([2, 1, 3, 4], dtype=int32)
    """
    padded = np.zeros(packing.mask.shape, np.int32)  # [B, T]
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    flat: NDArray[np.int32] = padded.reshape(-1)[packing.places.numpy()]  # [N]
    return flat
