"""Documents as numbers: where they come from, what their words become, and how they are cut into batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.checks import choice
from lrn.tasks.doc import csv_set, generator
from lrn.tasks.doc.config import BUILTIN, DocConfig
from lrn.tasks.doc.documents import Builder, Documents, Part, Types
from lrn.text.batches import Batch, Packing, Tokens
from lrn.text.builtin import docstrings, part_of
from lrn.text.lines import Progress, ignore
from lrn.text.spelling import SpellingTable
from lrn.text.spelt import SpeltWords
from lrn.text.tokens import basic_tokens
from lrn.text.vocabulary import SPECIALS, UNKNOWN, Vocabulary

Numbers = NDArray[np.int32]


def read_documents(config: DocConfig, data: str | None = None, progress: Progress = ignore) -> Documents:
    """Read the documents that the settings, or ``data`` instead of theirs, ask for."""
    source = data or config.data or "builtin:cues"
    if source in generator.MANNERS:
        return read_cues(config.documents, config.seed, source)
    if source == "builtin:docstrings":
        return read_docstrings()
    if source.startswith("builtin:"):
        choice("built-in data", source, BUILTIN)
    return csv_set.read_folder(Path(source), progress)


def read_cues(count: int, seed: int = 1, source: str = "builtin:cues") -> Documents:
    """Return ``count`` documents to train with, and some to test, that :mod:`generator` makes."""
    builder, manner = Builder(), generator.MANNERS[source]
    for part, size in (("train", count), ("test", max(200, count // 5))):
        for document in generator.documents(size, part=part, seed=seed, manner=manner):
            builder.add(part, document.label, document.words)
    return builder.build(generator.CLASSES, source=source, documents_made=count, seed=seed)


def read_docstrings(most: int = 10, least: int = 100) -> Documents:
    """Return the docstrings of Python's own library, with the package they are from as the class.

    It has the packages with the most docstrings, ``most`` at the most, each with at least ``least``.
    A docstring is in the training or the test part by what it says, so the same is never in both.
    """
    found: dict[str, dict[str, None]] = {}
    for module, text in docstrings():
        package, _, inside = module.partition(".")
        if inside and len(text.split()) >= 8:
            found.setdefault(package, {})[text] = None
    largest = sorted(found, key=lambda name: (-len(found[name]), name))[:most]
    classes = sorted(name for name in largest if len(found[name]) >= least)
    if len(classes) < 2:
        raise RuntimeError(
            "this Python comes without the sources of its library; give data of your own: --data"
        )
    builder = Builder()
    for label, package in enumerate(classes):
        for text in found[package]:
            words = basic_tokens(text)
            part = "train" if part_of(" ".join(words)) == "train" else "test"
            builder.add(part, label, words)
    return builder.build(classes, source="builtin:docstrings")


def split(documents: Documents, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of nine in ten training documents, to train with, and of the rest, to validate."""
    order = np.random.default_rng([seed, 10]).permutation(len(documents.train))
    tenth = max(1, len(order) // 10)
    return np.sort(order[tenth:]), np.sort(order[:tenth])


@dataclass(frozen=True)
class Codes(SpeltWords):
    """The numbers of words that have a vector, of characters and of classes. Case is kept."""

    classes: Vocabulary

    @classmethod
    def of(cls, documents: Documents, words: Iterable[str]) -> Codes:
        """Number every character that the documents have more than three times, and the words given."""
        counts = documents.counts.sum(1).tolist()
        return cls(*cls.vocabularies(documents.types, counts, words), Vocabulary(documents.classes))


def frequent_words(documents: Documents, min_count: int) -> list[str]:
    """Return the words that the training documents have at least ``min_count`` times."""
    counts = documents.counts[:, 0].tolist()
    words = zip(documents.types, counts, strict=True)
    return [word for word, count in words if count >= min_count and word not in SPECIALS]


@dataclass(frozen=True)
class DocumentBatch(Batch):
    """B documents, N words in all, packed one step after the other."""

    tokens: Tokens  # [N]
    packing: Packing
    labels: Tensor  # [B], or empty where none is known

    @property
    def lengths(self) -> Tensor:
        """Words of each document, ``[B]``, on the host."""
        return self.packing.lengths


def encode(
    documents: Sequence[Numbers], table: SpellingTable, labels: Sequence[int] | NDArray[Any] = ()
) -> DocumentBatch:
    """Make a batch of documents, none of them empty; each is given as the numbers of its words' types."""
    packing = Packing.of([len(document) for document in documents])
    types = np.zeros(packing.mask.shape, np.int32)  # [B, T]
    for row, document in zip(types, documents, strict=True):
        row[: len(document)] = document
    return DocumentBatch(
        table.tokens(types.reshape(-1)[packing.places.numpy()]),
        packing,
        torch.from_numpy(np.asarray(labels, dtype=np.int64)),
    )


def encode_texts(texts: Sequence[Sequence[str]], codes: Codes) -> DocumentBatch:
    """Make a batch of documents, none of them empty; each is given as its words."""
    types: dict[str, int] = {}
    documents = [
        np.array([types.setdefault(word, len(types)) for word in words], dtype=np.int32) for words in texts
    ]
    return encode(documents, codes.table(types))


def cut_off(part: Part, numbers: NDArray[np.int64], longest: int) -> dict[str, int]:
    """Count the documents of these numbers that are cut to ``longest`` words, and the words they lose."""
    lengths = part.lengths[numbers]
    lost = lengths - np.minimum(lengths, longest) if longest else np.zeros_like(lengths)
    return {"documents": int((lost > 0).sum()), "words": int(lost.sum())}


def without_words(types: Types, part: Part, numbers: NDArray[np.int64]) -> int:
    """Count the documents of these numbers that had no words, for which ``<unk>`` stands."""
    short = numbers[part.lengths[numbers] == 1]
    return sum(types[int(token)] == UNKNOWN for token in part.tokens[part.offsets[short]])


def cut_lengths(part: Part, longest: int) -> NDArray[np.int64]:
    """Return the lengths of a part's documents, cut to ``longest`` words unless that is 0."""
    return np.minimum(part.lengths, longest) if longest else part.lengths
