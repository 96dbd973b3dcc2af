"""Words as numbers and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from lrn.files import write_text

UNKNOWN = "<unk>"
END = "<eos>"
SPECIALS = ("<pad>", UNKNOWN, END)
"""Words whose vectors are learnt even where all others are given, first in a vocabulary that has them."""

T = TypeVar("T")


class Vocabulary:
    """A fixed list of words; a word's number is its place in it.

    >>> vocabulary = Vocabulary.of([["the", "cat", "sat"], ["the", "mat"]])
    >>> vocabulary.words
    ('the', 'cat', 'sat', 'mat')
    >>> vocabulary.encode(["the", "mat", "sat"])
    [0, 3, 2]
    >>> vocabulary.decode([1, 2])
    ['cat', 'sat']
    """

    words: tuple[str, ...]

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(_not_a_string(words))
        for place, word in enumerate(self.words):
            if not isinstance(word, str):
                raise TypeError(f"a vocabulary is made of strings, got {word!r} at {place}")
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) < len(self.words):
            twice, count = Counter(self.words).most_common(1)[0]
            raise ValueError(f"every word of a vocabulary has one number, got {twice!r} {count} times")

    @classmethod
    def of(cls, streams: Iterable[Iterable[str]], min_count: int = 1) -> Vocabulary:
        """Make a vocabulary of the words of all ``streams``, in order of first appearance.

        With ``min_count`` above 1, words seen less often are left out and ``<unk>`` stands for them:
        it is in the vocabulary, in front if no stream contains it.

        >>> Vocabulary.of([["a", "b", "a", "c", "c"]], min_count=2).words
        ('<unk>', 'a', 'c')
        """
        if not isinstance(min_count, int) or min_count < 1:
            raise ValueError(f"min_count must be a positive whole number, got {min_count!r}")
        counts: Counter[str] = Counter()
        for stream in _not_a_string(streams):
            counts.update(_not_a_string(stream))
        words = [word for word, count in counts.items() if count >= min_count or word == UNKNOWN]
        if min_count > 1 and UNKNOWN not in counts:
            words.insert(0, UNKNOWN)
        return cls(words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the number of each token; for a word it does not have that of ``<unk>``, if there is one."""
        unknown = self._numbers.get(UNKNOWN)
        numbers = []
        for token in _not_a_string(tokens):
            number = self._numbers.get(token, unknown)
            if number is None:
                raise ValueError(
                    f"{token!r} is not in the vocabulary of {len(self)} words, "
                    f"which has no {UNKNOWN} to stand for it"
                )
            numbers.append(number)
        return numbers

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the word of each number."""
        words = []
        for number in numbers:
            if not 0 <= number < len(self):
                raise ValueError(f"numbers must be from 0 to {len(self) - 1}, got {number}")
            words.append(self.words[number])
        return words

    def save(self, path: str | Path) -> None:
        """Write the words to a JSON file: whole or, when something fails, not at all."""
        text = json.dumps({"words": self.words}, indent=0) + "\n"
        write_text(Path(path), text)

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read what :meth:`save` wrote."""
        return cls.read(Path(path).read_bytes(), path)

    @classmethod
    def read(cls, text: str | bytes, source: object) -> Vocabulary:
        """Read the content of such a file, which errors call ``source``."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source} is no vocabulary: not JSON ({error})") from error
        words = content.get("words") if isinstance(content, dict) else None
        if not isinstance(words, list):
            raise ValueError(f'{source} is no vocabulary: expected {{"words": [...]}}')
        try:
            return cls(words)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source} is no vocabulary: {error}") from error

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._numbers

    def __eq__(self, other: object) -> bool:
        return self.words == other.words if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} words"


def _not_a_string(tokens: Iterable[T]) -> Iterable[T]:
    """Refuse a string, which would pass as a list of its letters."""
    if isinstance(tokens, str | bytes):
        raise TypeError(f"expected a list of words, got the text {tokens[:40]!r}; split it first")
    return tokens
