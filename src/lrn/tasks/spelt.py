"""Words that are spelt, as they leave a task: sequences as numbers, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.portable import Port, padded
from lrn.text.spelling import SpellingTable


def spelt_ports(rows: str, steps: str, before: str = "") -> tuple[Port, ...]:
    """The inputs that say which words sequences have; ``rows`` and ``steps`` name their sizes, ``before``
    stands before their names."""
    return (
        Port(f"{before}words", (rows, steps), "The number of each token's word; 0 behind the last token."),
        Port(
            f"{before}characters",
            (rows, steps, f"{before}letters"),
            "The numbers of each token's characters; 0 behind the last of them, and behind the last token.",
        ),
        Port(f"{before}lengths", (rows,), "How many tokens each row has, at least 1."),
    )


def spelt_text(longest: int) -> tuple[str, ...]:
    """How tokens become numbers where a word is known as it is or in lower case."""
    return (
        "The number of a word is its place, from 0, in vocabularies.words; if it is not there, that of its "
        "lower case; else 1, which is <unk>.",
        spelt_characters(longest),
    )


def spelt_characters(longest: int) -> str:
    """How characters become numbers where so many of a word count."""
    return (
        "The number of a character is its place, from 0, in vocabularies.characters, else 1, which is "
        f"<unk>; of a token the first {longest} characters count."
    )


def spelt(
    words: Sequence[Sequence[int]], characters: Sequence[Sequence[Sequence[int]]]
) -> tuple[Tensor, ...]:
    """Words ``[B, T]``, characters ``[B, T, C]`` and lengths ``[B]`` of sequences that are given as numbers.

    >>> words, characters, lengths = spelt([[7], [8, 9]], [[[1, 2, 3]], [[4], [5, 6]]])
    >>> words.tolist(), characters.tolist(), lengths.tolist()
    ([[7, 0], [8, 9]], [[[1, 2, 3], [0, 0, 0]], [[4, 0, 0], [5, 6, 0]]], [1, 2])
    """
    numbers = padded(words)
    steps = numbers.shape[1]
    flat = [spelling for row in characters for spelling in [*row, *[[]] * (steps - len(row))]]
    return numbers, padded(flat).unflatten(0, numbers.shape), torch.tensor([len(row) for row in words])


def spelt_rows(table: SpellingTable, rows: Sequence[NDArray[Any]]) -> tuple[Tensor, ...]:
    """The same of sequences that are given as the numbers of their words' types."""
    characters = [[[*filter(None, table.characters[kind].tolist())] for kind in row] for row in rows]
    return spelt([table.words[np.asarray(row)].tolist() for row in rows], characters)
