"""Questions about paragraphs: their words as numbers, where the answers stand, and batches of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.rc.config import LONGEST_TEST, RCConfig
from lrn.tasks.rc.squad import Asked, Passage, read_split
from lrn.text.batches import Batch, Packing, RowPacking, Tokens
from lrn.text.codes import Vocabularies
from lrn.text.english import english_tokens
from lrn.text.sentences import Sentences, packed_rows
from lrn.text.spelling import SpellingTable
from lrn.text.vocabulary import SPECIALS, Vocabulary
from lrn.training.config import PARTS

LONGEST_WORD = 16  # characters
UNKNOWN = 1  # place of <unk> among the special words, and among the special characters
NOWHERE = (-1, -1)  # the span of an answer that does not stand where it is said to

Span = tuple[int, int]  # the first and the last token of an answer


# Texts --------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """A text with the quotation marks that others wrote as two characters; no character changes its place.

    >>> clean("so-called ``truth''.")
    'so-called " truth" .'
    """
    return text.replace("''", '" ').replace("``", '" ')


@dataclass(frozen=True)
class Cut:
    """A text cut into tokens: the tokens, and where each begins and ends."""

    text: str
    words: tuple[str, ...]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, text: str) -> Cut:
        """Clean a text and cut it.

        >>> cut = Cut.of("in ''1066''")
        >>> cut.words, cut.span(5, 9)
        (('in', '"', '1066', '"'), (2, 2))
        """
        text = clean(text)
        tokens = english_tokens(text)
        words = tuple(word for word, _ in tokens)
        starts = np.array([start for _, start in tokens], np.int32)
        return cls(text, words, starts, starts + np.array([len(word) for word in words], np.int32))

    def span(self, start: int, end: int) -> Span | None:
        """The first and the last of the tokens that have a part of the characters from start to end."""
        there = np.flatnonzero((self.starts < end) & (self.ends > start))
        return (int(there[0]), int(there[-1])) if len(there) else None


def answer_span(text: str, cut: Cut, asked: Asked) -> Span | None:
    """Where the last answer stands that stands where it is said to; None if none does."""
    for answer, start in reversed(asked.answers):
        if answer and start >= 0 and text[start : start + len(answer)] == answer:
            return cut.span(start, start + len(answer))
    return None


# The data set -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Some paragraphs, and questions about them."""

    texts: tuple[str, ...]
    paragraphs: Sentences
    starts: NDArray[np.int32]  # of all paragraphs' tokens, one paragraph after the other, in its text
    ends: NDArray[np.int32]
    questions: Sentences
    asked: tuple[str, ...]  # the questions as they were written
    about: NDArray[np.int64]  # [questions] the paragraph of each
    spans: NDArray[np.int64]  # [questions, 2] of the answers; NOWHERE where they do not fit
    answers: tuple[tuple[str, ...], ...]  # of each question, all that count as right
    unread: tuple[tuple[str, tuple[str, ...]], ...] = ()  # questions that were left out, and their answers

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How long the paragraph of each question is."""
        lengths: NDArray[np.int64] = self.paragraphs.lengths[self.about]
        return lengths

    def words(self, question: int, first: int, last: int) -> tuple[str, int]:
        """What stands from one token of a question's paragraph to another, and where it begins."""
        paragraph = self.about[question]
        offset = self.paragraphs.offsets[paragraph]
        start, end = int(self.starts[offset + first]), int(self.ends[offset + last])
        return self.texts[paragraph][start:end], start


@dataclass(frozen=True)
class Dataset:
    """Three parts of questions and paragraphs over the same types of words."""

    types: tuple[str, ...]
    counts: NDArray[np.int64]  # [types, 3] how often in the paragraphs and questions of each part
    train: Part
    valid: Part
    test: Part
    about: dict[str, Any]


def read_folder(folder: Path, config: RCConfig, progress: Callable[[float], None]) -> Dataset:
    """Read the files of a folder; see :func:`lrn.tasks.rc.squad.read_split`."""
    split = read_split(folder, config, lambda share: progress(share / 4))
    parts = (split.train, split.valid, split.test)
    about = {"source": str(folder), **split.about}
    return _collect(parts, config, lambda share: progress(1 / 4 + share * 3 / 4), about)


def read_builtin(config: RCConfig) -> Dataset:
    """Make paragraphs and questions with :mod:`generator`."""
    from lrn.tasks.rc import generator

    small = max(50, config.paragraphs // 6)
    parts = [
        [
            Passage(made.text, tuple(Asked(q.text, ((q.answer, q.start),)) for q in made.questions))
            for made in generator.paragraphs(count, part=part, seed=config.seed)
        ]
        for part, count in zip(PARTS, (config.paragraphs, small, small), strict=True)
    ]
    return _collect(parts, config, lambda share: None, {"source": "built-in", "made": config.paragraphs})


class _Collector:
    """Cuts texts, each of them once, and numbers their tokens."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self._cuts: dict[str, Cut] = {}

    def cut(self, text: str) -> Cut:
        if text not in self._cuts:
            self._cuts[text] = Cut.of(text)
        return self._cuts[text]

    def numbers(self, cut: Cut) -> list[int]:
        return [self.types.setdefault(word, len(self.types)) for word in cut.words]

    def part(
        self,
        name: str,
        passages: Sequence[Passage],
        longest: tuple[int, int],
        progress: Callable[[float], None],
    ) -> tuple[Part, dict[str, int]]:
        """Number the questions of a part; those that it cannot have are counted."""
        cuts: list[Cut] = []
        questions: list[list[int]] = []
        asked: list[tuple[str, int, Span, tuple[str, ...]]] = []
        unread: list[tuple[str, tuple[str, ...]]] = []
        said = {"asked": 0, "too_long": 0, "misplaced": 0}
        for number, passage in enumerate(passages, 1):
            progress(number / len(passages))
            paragraph, used = self.cut(passage.text), False
            for question in passage.asked:
                said["asked"] += 1
                cut, golds = self.cut(question.text), tuple(text for text, _ in question.answers)
                if not 0 < len(paragraph.words) <= longest[0] or not 0 < len(cut.words) <= longest[1]:
                    said["too_long"] += 1
                    unread.append((question.text, golds))
                    continue
                span = answer_span(passage.text, paragraph, question)
                if span is None:
                    said["misplaced"] += 1
                    if name == "train":  # there is nothing to learn from it, though its text can be scored
                        continue
                used = True
                questions.append(self.numbers(cut))
                asked.append((question.text, len(cuts), span or NOWHERE, golds))
            if used:
                cuts.append(paragraph)
        paragraphs = Sentences.of([self.numbers(cut) for cut in cuts])
        texts, about, spans, answers = zip(*asked, strict=True) if asked else ((), (), (), ())
        part = Part(
            tuple(cut.text for cut in cuts),
            paragraphs,
            np.concatenate([cut.starts for cut in cuts]) if cuts else np.zeros(0, np.int32),
            np.concatenate([cut.ends for cut in cuts]) if cuts else np.zeros(0, np.int32),
            Sentences.of(questions),
            tuple(texts),
            np.array(about, np.int64),
            np.array(spans, np.int64).reshape(-1, 2),
            tuple(answers),
            tuple(unread),
        )
        tokens = len(part.paragraphs.tokens) + len(part.questions.tokens)
        return part, {"questions": len(part), "paragraphs": len(cuts), "tokens": tokens, **said}


def _collect(
    parts: Sequence[Sequence[Passage]],
    config: RCConfig,
    progress: Callable[[float], None],
    about: dict[str, Any],
) -> Dataset:
    """Cut and number all parts. Valid is filtered by length like train, test by its own limits."""
    read, limits = _Collector(), (config.longest, config.longest_question)
    found: list[Part] = []
    digest = hashlib.sha256()
    for number, (name, passages) in enumerate(zip(PARTS, parts, strict=True)):
        part, about[name] = read.part(
            name,
            passages,
            LONGEST_TEST if name == "test" else limits,
            lambda share, number=number: progress((number + share) / 3),  # type: ignore[misc]
        )
        if not len(part):
            raise ValueError(f"{about['source']}: the {name} part has no question that can be used")
        for passage in passages:
            digest.update(repr(passage).encode())
        found.append(part)
    about["fingerprint"] = digest.hexdigest()
    counts = [
        np.bincount(part.paragraphs.tokens, minlength=len(read.types))
        + np.bincount(part.questions.tokens, minlength=len(read.types))
        for part in found
    ]
    train, valid, test = found
    return Dataset(tuple(read.types), np.stack(counts, 1), train, valid, test, about)


# Numbers ------------------------------------------------------------------------------------------


def forms(word: str) -> tuple[str, ...]:
    """The forms in which a word may be known, the first before the others."""
    return word, word.lower(), word.capitalize(), word.upper()


def known_form(word: str, known: Container[str]) -> str | None:
    """The form of a word that is known, if one is."""
    return next((form for form in forms(word) if form in known), None)


@dataclass(frozen=True)
class Codes(Vocabularies):
    """The numbers of words that have a vector, and of characters. Case is kept."""

    first: ClassVar[Mapping[str, Sequence[str]]] = {"words": SPECIALS, "characters": SPECIALS[:2]}

    words: Vocabulary
    characters: Vocabulary

    @classmethod
    def of(cls, types: Iterable[str], words: Iterable[str]) -> Codes:
        """Number the ``words`` given, and every character of the types."""
        characters = sorted({character for word in types for character in word[:LONGEST_WORD]})
        return cls(Vocabulary([*SPECIALS, *words]), Vocabulary([*SPECIALS[:2], *characters]))

    def number(self, word: str) -> int:
        """The number of a word's vector: its own, or that of the form in which it is known.

        >>> codes = Codes.of(["Oslo"], ["Oslo", "the"])
        >>> [codes.number(word) for word in ("oslo", "THE", "fjord")]
        [3, 4, 1]
        """
        form = known_form(word, self.words)
        return UNKNOWN if form is None else self.words.encode([form])[0]

    def table(self, types: Iterable[str]) -> SpellingTable:
        """Make a table of the number and the spelling of every type of word."""
        return SpellingTable(types, self.number, self.characters, LONGEST_WORD)


# Batches ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context(Batch):
    """What the L layers of a contextual encoder say of a batch's tokens, in packed order."""

    paragraphs: Tensor  # [L, N, F]
    questions: Tensor  # [L, M, F]


@dataclass(frozen=True)
class QuestionBatch(Batch):
    """B questions of M tokens in all, and their paragraphs of N.

    Both are read by the same layers, and so in one walk: of 2B sequences, the paragraphs first.
    """

    tokens: Tokens  # [N + M] as ``both`` packs them
    both: RowPacking
    paragraphs: RowPacking
    questions: RowPacking
    paragraph_places: Tensor  # [N] of the packed paragraphs' tokens among those of both
    question_places: Tensor  # [M]
    joint: Tensor  # [N + M] the way back: from packed paragraphs and then questions to both
    spans: Tensor  # [B, 2] the answers' first and last tokens, or empty where none are known
    context: Context | None = None


def encode(
    paragraphs: Sequence[NDArray[np.int32]],
    questions: Sequence[NDArray[np.int32]],
    table: SpellingTable,
    spans: Sequence[Span] | NDArray[np.int64] = (),
) -> QuestionBatch:
    """Make a batch of questions and paragraphs, none empty, given as the numbers of their words' types."""
    first, second = ([len(row) for row in rows] for rows in (paragraphs, questions))
    both, before, after = RowPacking.of([*first, *second]), RowPacking.of(first), RowPacking.of(second)
    places = both.by_row[before.from_row], both.by_row[len(before.rows) + after.from_row]
    joint = torch.empty(len(both.rows), dtype=torch.int64)
    joint[torch.cat(places)] = torch.arange(len(joint))
    tokens = table.tokens(packed_rows([*paragraphs, *questions], both))
    lengths = (tokens.characters != 0).sum(1).numpy()
    spelt = replace(
        tokens,
        characters=tokens.characters[:, : lengths.max()].contiguous(),
        character_packing=Packing.of(lengths),
    )
    known = torch.from_numpy(np.asarray(spans, dtype=np.int64).reshape(-1, 2))
    return QuestionBatch(spelt, both, before, after, *places, joint, known)


def encode_words(
    paragraphs: Sequence[Sequence[str]], questions: Sequence[Sequence[str]], codes: Codes
) -> QuestionBatch:
    """Make a batch of questions and paragraphs that are given as their words."""
    types: dict[str, int] = {}
    rows = [
        [np.array([types.setdefault(word, len(types)) for word in words], np.int32) for words in sentences]
        for sentences in (paragraphs, questions)
    ]
    return encode(rows[0], rows[1], codes.table(types))
