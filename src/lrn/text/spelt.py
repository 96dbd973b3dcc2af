"""Words that have a vector, given or to be learnt, and the characters that spell all words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lrn.files import write_whole
from lrn.text.codes import Vocabularies
from lrn.text.spelling import SpellingTable, frequent_characters
from lrn.text.store import Store
from lrn.text.vectors import read_table
from lrn.text.vocabulary import SPECIALS, Vocabulary

UNKNOWN = 1  # place of <unk> among the special words
LONGEST_WORD = 25  # characters
RARE = 3  # a character must be seen more often than that
VECTORS = "vectors.npy"


@dataclass(frozen=True)
class SpeltWords(Vocabularies):
    """The numbers of words that have a vector, and of characters. Case is kept."""

    first: ClassVar[Mapping[str, Sequence[str]]] = {"words": SPECIALS, "characters": SPECIALS}

    words: Vocabulary
    characters: Vocabulary

    @staticmethod
    def vocabularies(
        types: Iterable[str], counts: Sequence[int], words: Iterable[str]
    ) -> tuple[Vocabulary, Vocabulary]:
        """Number the ``words`` given, and every character that the types have more than three times."""
        characters = frequent_characters(types, counts, above=RARE, longest=LONGEST_WORD)
        return Vocabulary([*SPECIALS, *words]), Vocabulary([*SPECIALS, *characters])

    def number(self, word: str) -> int:
        """Return the number of a word's vector: its own, else its lower case's, else that of ``<unk>``."""
        for form in (word, word.lower()):
            if form in self.words:
                return self.words.encode([form])[0]
        return UNKNOWN

    def table(self, types: Iterable[str]) -> SpellingTable:
        """Make a table of the number and the spelling of every type of word."""
        return SpellingTable(types, self.number, self.characters, LONGEST_WORD)


def read_given(
    path: str, types: Iterable[str], progress: Callable[[float], None]
) -> tuple[list[str], Tensor]:
    """Return the words of the data, as they are or in lower case, that the file has; and their vectors."""
    wanted = {form for word in types for form in (word, word.lower())} - set(SPECIALS)
    words, vectors = read_table(path, wanted, progress)
    return words, torch.from_numpy(vectors)


def save_given(folder: Path, vectors: Tensor) -> None:
    """Keep given vectors, which never change and are in no checkpoint, in a run folder."""
    write_whole(folder / VECTORS, lambda file: np.save(file, vectors.numpy()))


def load_given(store: Store, codes: Any) -> Tensor:
    """Open what :func:`save_given` wrote for the words of ``codes``."""
    return store.table(VECTORS, len(codes.words) - len(SPECIALS))
