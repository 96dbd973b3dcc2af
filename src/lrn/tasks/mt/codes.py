"""Sentences as numbers of pieces and back: what a run needs to read and write its two languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lrn.text.moses import Moses
from lrn.text.store import Store
from lrn.text.subwords import Subwords, joined
from lrn.text.vocabulary import END, SPECIALS, Vocabulary

MERGES, SOURCE, TARGET = "bpe.json", "source.json", "target.json"
UNKNOWN_NUMBER, END_NUMBER = SPECIALS.index("<unk>"), SPECIALS.index(END)

Lines = Sequence[str]
Progress = Callable[[float], None]


@dataclass
class Side:
    """One of the two languages.

    Args:
        language: its code.
        text: what its lines are: raw, tokenised or segmented.
        vocabulary: its pieces, the special ones first.
        subwords: how words are cut into pieces; None where they come so.
    """

    language: str
    text: str
    vocabulary: Vocabulary
    subwords: Subwords | None = None
    _cut: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.moses = Moses(self.language)

    def encode(self, line: str) -> list[int]:
        """The numbers of a line's pieces, without an end."""
        if self.subwords is None:
            return self.vocabulary.encode(line.split())
        return [number for word in words_of(line, self.text, self.moses) for number in self._word(word)]

    def _word(self, word: str) -> list[int]:
        if word not in self._cut:
            assert self.subwords is not None
            self._cut[word] = self.vocabulary.encode(self.subwords.cut(word, self.vocabulary))
        return self._cut[word]

    def pieces(self, line: str) -> list[str]:
        """The pieces of a line as the model has them; the unknown among them are ``<unk>``."""
        return self.vocabulary.decode(self.encode(line))

    def words(self, numbers: Iterable[int]) -> list[str]:
        """The words of pieces given by number."""
        return joined(self.vocabulary.decode(numbers))

    def words_of_line(self, line: str) -> list[str]:
        """The words of a line, whatever text it is."""
        return joined(line.split()) if self.text == "segmented" else words_of(line, self.text, self.moses)

    def plain(self, words: Sequence[str]) -> str:
        """Words as people write them."""
        return self.moses.text(words, escaped=self.text != "raw")

    def plain_line(self, line: str) -> str:
        """A line as people write it."""
        return line.strip() if self.text == "raw" else self.plain(self.words_of_line(line))


def words_of(line: str, text: str, moses: Moses) -> list[str]:
    """The words of a line that is not cut into pieces."""
    return moses.words(line) if text == "raw" else line.split()


@dataclass(frozen=True)
class Codes:
    """Both languages of a run."""

    source: Side
    target: Side

    @classmethod
    def learn(
        cls,
        lines: tuple[Lines, Lines],
        languages: tuple[str, str],
        text: str,
        merges: int,
        threshold: int,
        progress: Progress = lambda share: None,
    ) -> Codes:
        """Learn pieces and vocabularies from lines of both languages.

        Merges are learnt from both together. Each language has a vocabulary of its own, the most frequent
        first; pieces that it has fewer than ``threshold`` times are cut into smaller ones.
        """
        counts = []
        for number, (side, language) in enumerate(zip(lines, languages, strict=True)):
            moses, found = Moses(language), Counter[str]()
            for place, line in enumerate(side):
                found.update(line.split() if text == "segmented" else words_of(line, text, moses))
                if place % 1000 == 0:
                    progress((number + place / len(side)) / 2)
            counts.append(found)
        if text == "segmented":
            kept = [Counter({w: n for w, n in found.items() if n >= threshold}) for found in counts]
            sides = [
                Side(language, text, _vocabulary(found))
                for language, found in zip(languages, kept, strict=True)
            ]
            return cls(*sides)
        subwords = Subwords.learn(counts[0] + counts[1], merges)
        sides = [
            Side(language, text, _vocabulary(_pieces(found, subwords, threshold)), subwords)
            for language, found in zip(languages, counts, strict=True)
        ]
        return cls(*sides)

    def save(self, folder: Path) -> None:
        """Write what :meth:`load` needs."""
        self.source.vocabulary.save(folder / SOURCE)
        self.target.vocabulary.save(folder / TARGET)
        if self.source.subwords is not None:
            self.source.subwords.save(folder / MERGES)

    @classmethod
    def load(cls, store: Store, languages: tuple[str, str], text: str) -> Codes:
        """Read what :meth:`save` wrote."""
        subwords = None
        if text != "segmented":
            subwords = Subwords.read(store.text(MERGES), store.place(MERGES))
        sides = [
            Side(language, text, Vocabulary.read(store.text(name), store.place(name)), subwords)
            for language, name in zip(languages, (SOURCE, TARGET), strict=True)
        ]
        for side, name in zip(sides, (SOURCE, TARGET), strict=True):
            if side.vocabulary.words[: len(SPECIALS)] != SPECIALS:
                raise ValueError(f"{store.place(name)} does not begin with {', '.join(SPECIALS)}")
        return cls(*sides)


def _pieces(counts: Counter[str], subwords: Subwords, threshold: int) -> Counter[str]:
    """How often a language has each piece, when the rare ones are cut into smaller ones."""
    found = _counted(counts, subwords, None)
    if threshold <= 1:
        return found
    return _counted(counts, subwords, {piece for piece, count in found.items() if count >= threshold})


def _counted(counts: Counter[str], subwords: Subwords, known: set[str] | None) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in counts.items():
        for piece in subwords.cut(word, known):
            found[piece] += count
    return found


def _vocabulary(counts: Counter[str]) -> Vocabulary:
    """The special words, then all others, the most frequent first."""
    frequent = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return Vocabulary([*SPECIALS, *(piece for piece, _ in frequent if piece not in SPECIALS)])
