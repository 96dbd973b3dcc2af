"""Words by their characters: which characters count, and tables that spell every word once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrn.text.batches import Tokens
from lrn.text.vocabulary import Vocabulary


def frequent_characters(
    types: Iterable[str], counts: Iterable[int], *, above: int, longest: int
) -> list[str]:
    """Return the characters that occur more than ``above`` times, sorted.

    A type of word counts as often as it occurs, with its first ``longest`` characters.

    >>> frequent_characters(["aha", "oh"], [2, 3], above=2, longest=2)
    ['h', 'o']
    """
    seen: Counter[str] = Counter()
    for word, times in zip(types, counts, strict=True):
        for character in word[:longest]:
            seen[character] += times
    return sorted(character for character, times in seen.items() if times > above)


class SpellingTable:
    """A table of the different words of a data set: the number of each one's vector, and its characters.

    Args:
        types: the different words, in the order in which the data numbers them.
        number: the number of a word's vector.
        characters: the characters' numbers, of which 0 is none.
        longest: characters of a word that count.

    >>> characters, vectors = Vocabulary(["<pad>", "<unk>", "a", "b"]), {"ab": 7}
    >>> table = SpellingTable(["ab", "cab", "b"], lambda word: vectors.get(word, 1), characters, longest=4)
    >>> tokens = table.tokens(np.array([1, 0, 0]))
    >>> tokens.words, tokens.characters[tokens.spellings[0]]
    (tensor([1, 7, 7]), tensor([1, 2, 3, 0]))
    """

    def __init__(
        self, types: Iterable[str], number: Callable[[str], int], characters: Vocabulary, longest: int
    ) -> None:
        spelt = list(types)
        self.words = np.fromiter((number(word) for word in spelt), np.int64, len(spelt))  # [types]
        kind = np.uint16 if len(characters) <= 1 << 16 else np.uint32
        self.characters = np.zeros((len(spelt), longest), kind)  # [types, longest]
        for row, word in zip(self.characters, spelt, strict=True):
            numbers = characters.encode(list(word[:longest]))
            row[: len(numbers)] = numbers

    def tokens(self, types: NDArray[np.integer[Any]]) -> Tokens:
        """Return tokens of these types, with each of the W different ones spelt once.

        The characters end one place behind those of the longest word: :class:`lrn.nn.SpellingPool` counts it.
        """
        different, spellings = np.unique(types, return_inverse=True)
        characters = self.characters[different]  # [W, longest]
        used = int((characters != 0).sum(1).max()) + 1
        return Tokens(
            torch.from_numpy(self.words[types]),
            torch.from_numpy(spellings.reshape(types.shape)),
            torch.from_numpy(characters[:, :used].astype(np.int64)),  # [W, C]
        )
