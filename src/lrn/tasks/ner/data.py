"""Sentences with tagged words: reading them, numbering them, and cutting them into batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lrn.tasks.ner import generator
from lrn.tasks.ner.config import SETTINGS
from lrn.tasks.ner.schemes import check, entities, mark
from lrn.text.batches import Batch, Packing, Tokens, padded
from lrn.text.codes import Vocabularies
from lrn.text.folders import find_files
from lrn.text.lines import Progress, Reading, ignore
from lrn.text.vocabulary import UNKNOWN, Vocabulary
from lrn.training.config import PARTS

PAD = "<pad>"
LONGEST = 500  # words of a sentence: four times as many as the longest of CoNLL-2003
LONGEST_ALONE = 60  # of a sentence that is all there is


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence and their IOB2 tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Dataset:
    """Three parts of tagged sentences."""

    train: list[Sentence]
    valid: list[Sentence]
    test: list[Sentence]
    about: dict[str, Any]


def read_conll(path: Path, reading: Reading | None = None) -> list[Sentence]:
    """Read a file of columns, the word first and its tag last, with a blank line after each sentence.

    Two or four columns; tags in IOB1, IOB2 or IOBES, brought to IOB2; lines of ``-DOCSTART-`` are dropped.
    """
    sentences: list[Sentence] = []
    columns = 0
    words: list[str] = []
    tags: list[str] = []
    for number, line in (reading or Reading()).lines(path):
        parts = line.split()
        if not parts or parts[0] == "-DOCSTART-":
            if words:
                sentences.append(_sentence(words, tags))
                words, tags = [], []
            continue
        columns = columns or len(parts)
        if len(parts) != columns or columns < 2:
            expected = f"{columns} columns like the lines before" if columns >= 2 else "a word and a tag"
            raise ValueError(f"{path}, line {number}: expected {expected}, got {len(parts)}: {line[:60]!r}")
        try:
            tags.append(check(parts[-1]))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        words.append(parts[0])
    if words:
        sentences.append(_sentence(words, tags))
    if not sentences:
        raise ValueError(f"{path} is empty: it has no sentences")
    if len(sentences) == 1 and len(sentences[0].words) > LONGEST:
        raise ValueError(
            f"{path}: all its {len(sentences[0].words):,} words are one sentence; "
            "there must be a blank line after each sentence"
        )
    return sentences


def _sentence(words: list[str], tags: list[str]) -> Sentence:
    return Sentence(tuple(words), tuple(mark(len(tags), entities(tags), "iob2")))


def read_folder(folder: Path, progress: Progress = ignore) -> Dataset:
    """Read the three files of a data set, named in one of the known ways; ``progress`` is told the share."""
    paths = find_files(folder, SETTINGS.files, "without --data sentences of our own making are used")
    reading = Reading(paths, progress)
    return _dataset([read_conll(path, reading) for path in paths], source=str(folder))


def read_builtin(sentences: int, seed: int = 1) -> Dataset:
    """Make sentences with :mod:`generator`; valid and test have names and templates that training has not."""
    small = max(100, sentences // 5)
    parts = [
        [Sentence(tuple(w), tuple(t)) for w, t in generator.sentences(count, part=part, seed=seed)]
        for part, count in zip(PARTS, (sentences, small, small), strict=True)
    ]
    return _dataset(parts, source="built-in", sentences_made=sentences)


def _dataset(parts: list[list[Sentence]], **about: Any) -> Dataset:
    digest = hashlib.sha256()
    for name, part in zip(PARTS, parts, strict=True):
        about[name] = {
            "sentences": len(part),
            "tokens": sum(len(s.words) for s in part),
            "entities": sum(len(entities(s.tags)) for s in part),
        }
        for sentence in part:
            digest.update(" ".join([*sentence.words, *sentence.tags, "\n"]).encode())
    about["fingerprint"] = digest.hexdigest()
    train, valid, test = parts
    return Dataset(train, valid, test, about)


@dataclass(frozen=True)
class Codes(Vocabularies):
    """The numbers of words (lower-cased), characters and tags."""

    first: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(("words", "characters", "tags"), (PAD,))

    words: Vocabulary
    characters: Vocabulary
    tags: Vocabulary

    @classmethod
    def of(cls, sentences: Iterable[Sentence], more_words: Iterable[str] = ()) -> Codes:
        """Number words and characters of the training sentences and of ``more_words``, those with vectors."""
        sentences, more_words = list(sentences), list(more_words)
        words = dict.fromkeys(word.lower() for s in sentences for word in s.words)
        characters = dict.fromkeys(c for s in sentences for word in s.words for c in word)
        characters |= dict.fromkeys(c for word in more_words for c in word)
        tags = sorted({tag for s in sentences for tag in s.tags}, key=lambda tag: (tag != "O", tag[2:], tag))
        return cls(
            Vocabulary([PAD, *(words | dict.fromkeys(more_words)), UNKNOWN]),
            Vocabulary([PAD, *characters, UNKNOWN]),
            Vocabulary([PAD, *tags]),
        )


@dataclass(frozen=True)
class SentenceBatch(Batch):
    """A batch of B sentences of similar length, of at most T words."""

    tokens: Tokens  # [B, T]
    packing: Packing
    tags: Tensor  # [B, T] numbers of tags, 0 where none is known

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, ``[B]``, on the host."""
        return self.packing.lengths

    @property
    def mask(self) -> Tensor:
        """True where a word is, ``[B, T]``."""
        return self.packing.mask


def encode(
    sentences: Sequence[Sequence[str]], codes: Codes, tags: Sequence[Sequence[str]] = ()
) -> SentenceBatch:
    """Make a batch of these sentences, none of them empty."""
    lengths = [len(words) for words in sentences]
    different: dict[str, int] = {}
    spellings = [[different.setdefault(word, len(different)) for word in words] for words in sentences]
    numbers = [codes.words.encode([word.lower() for word in words]) for words in sentences]
    characters = [codes.characters.encode(list(word)) for word in different]
    tag_numbers = [codes.tags.encode(row) for row in tags] or [[0] * length for length in lengths]
    return SentenceBatch(
        Tokens(
            padded(numbers), padded(spellings), padded(characters), _packing([len(row) for row in characters])
        ),
        _packing(lengths),
        padded(tag_numbers),
    )


def _packing(lengths: Sequence[int]) -> Packing:
    """Pack, with equally long sequences in the order in which torch's pack_padded_sequence would put them."""
    order = torch.from_numpy(np.array(lengths)).sort(descending=True).indices
    return Packing.of(lengths, order.numpy())
