"""Documents cut into tokens: each different token, a type, is held once; a document is numbers of types."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lrn.text.vocabulary import UNKNOWN

PARTS = ("train", "test")
MOST_LABELS = 256
# the flat arrays that documents consist of
ARRAYS: dict[str, type[np.generic]] = {
    "types": np.uint8,
    "types.offsets": np.int64,
    "counts": np.int64,
    **{f"{part}.tokens": np.int32 for part in PARTS},
    **{f"{part}.offsets": np.int64 for part in PARTS},
    **{f"{part}.labels": np.uint8 for part in PARTS},
}


@dataclass(frozen=True)
class Part:
    """A part of the data: documents one after the other, and the label of each."""

    tokens: NDArray[np.int32]  # numbers of types; may be a file that is only mapped into memory
    offsets: NDArray[np.int64]  # [documents + 1] where each begins
    labels: NDArray[np.uint8]  # [documents] from 0

    def __len__(self) -> int:
        return len(self.labels)

    def document(self, n: int, longest: int = 0) -> NDArray[np.int32]:
        """Return the tokens of document ``n``; only the first ``longest`` of them unless that is 0."""
        if not 0 <= n < len(self):
            raise IndexError(f"documents are numbered from 0 to {len(self) - 1}, got {n}")
        first, last = int(self.offsets[n]), int(self.offsets[n + 1])
        return self.tokens[first : min(last, first + longest) if longest else last]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


class Types:
    """The different tokens in order of first appearance: one long text and where each begins in it.

    Millions of Python strings would take ten times the memory.

    >>> types = Types(np.frombuffer("théby".encode(), np.uint8), np.array([0, 4, 6]))
    >>> len(types), types[0], list(types)
    (2, 'thé', ['thé', 'by'])
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._text, self._offsets = text, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, n: int) -> str:
        if not 0 <= n < len(self):
            raise IndexError(f"types are numbered from 0 to {len(self) - 1}, got {n}")
        return self._text[self._offsets[n] : self._offsets[n + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 10_000):
            offsets = self._offsets[start : start + 10_001]
            text = self._text[offsets[0] : offsets[-1]].tobytes()
            places = (offsets - offsets[0]).tolist()
            for first, last in pairwise(places):
                yield text[first:last].decode()

    def __repr__(self) -> str:
        return f"{len(self)} types"


@dataclass(frozen=True)
class Documents:
    """A training and a test part over the same types."""

    types: Types
    counts: NDArray[np.int64]  # [types, 2] how often in train and in test
    train: Part
    test: Part
    classes: tuple[str, ...]
    about: dict[str, Any]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], about: dict[str, Any]) -> Documents:
        """Make documents of the arrays of ``ARRAYS``, which must fit each other and ``about``."""
        types = Types(arrays["types"], arrays["types.offsets"])
        counts = arrays["counts"].reshape(-1, len(PARTS))
        parts = [
            Part(*(arrays[f"{name}.{kind}"] for kind in ("tokens", "offsets", "labels"))) for name in PARTS
        ]
        cuts = [(part.offsets, len(part), len(part.tokens)) for part in parts]
        for offsets, pieces, whole in [*cuts, (arrays["types.offsets"], len(counts), len(arrays["types"]))]:
            if len(offsets) != pieces + 1 or offsets[0] != 0 or offsets[-1] != whole:
                raise ValueError("the arrays of the documents do not fit each other")
        sizes = {name: _sizes(part) for name, part in zip(PARTS, parts, strict=True)}
        if any(about[name] != about[name] | size for name, size in sizes.items()) or about["types"] != len(
            types
        ):
            raise ValueError("the documents are not those that were described")
        train, test = parts
        return cls(types, counts, train, test, tuple(about["classes"]), about)


def _sizes(part: Part) -> dict[str, int]:
    return {"documents": len(part), "tokens": len(part.tokens)}


class _Numbers(dict[str, int]):
    """A dictionary that gives what it is asked for the first time the next number."""

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        return number


@dataclass(frozen=True)
class Numbered:
    """Some documents as numbers of types of their own: what a worker process hands over."""

    types: str  # one a line
    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]
    digests: bytes  # 32 for each document: of its tokens, one a line
    empty: int  # documents that had no token


def numbered(documents: Iterable[Sequence[str]]) -> Numbered:
    """Give each different token a number. A document without any gets ``<unk>``: none is empty.

    >>> batch = numbered([["to", "be", "or", "not", "to", "be"], []])
    >>> batch.types.split(), batch.tokens.tolist(), batch.lengths.tolist()
    (['to', 'be', 'or', 'not', '<unk>'], [0, 1, 2, 3, 0, 1, 4], [6, 1])
    """
    numbers = _Numbers()
    tokens: list[int] = []
    lengths: list[int] = []
    digests: list[bytes] = []
    empty = 0
    for document in documents:
        empty += not document
        document = document or (UNKNOWN,)
        tokens.extend(map(numbers.__getitem__, document))
        lengths.append(len(document))
        digests.append(sha256("\n".join(document).encode()).digest())
    return Numbered(
        "\n".join(numbers), np.array(tokens, np.int32), np.array(lengths, np.int64), b"".join(digests), empty
    )


class Writer:
    """A writer that brings documents under one numbering and appends them to the files of ``ARRAYS``.

    ``create`` opens a file. Types are numbered in order of first appearance, so that it makes no difference
    how the documents were cut into pieces. In memory are the types, never the documents.
    """

    def __init__(self, create: Callable[[str], IO[bytes]]) -> None:
        self.files = {name: create(name) for name in ARRAYS}
        self._numbers = _Numbers()
        self._counts = np.zeros((1024, len(PARTS)), np.int64)
        self._digests = {part: sha256() for part in PARTS}
        self._sizes = {part: {"documents": 0, "tokens": 0, "without_words": 0} for part in PARTS}
        self._text_size = 0
        for name in ARRAYS:
            if name.endswith(".offsets"):
                self.files[name].write(bytes(8))

    def add(self, part: str, labels: bytes, documents: Numbered) -> None:
        """Append documents and their labels, counted from 0, to a part."""
        size = self._sizes[part]
        globally = self._global_numbers(documents.types.split("\n"))
        self._counts[globally, PARTS.index(part)] += np.bincount(documents.tokens, minlength=len(globally))
        self.files[f"{part}.tokens"].write(globally[documents.tokens].data)
        self.files[f"{part}.offsets"].write((size["tokens"] + np.cumsum(documents.lengths)).data)
        self.files[f"{part}.labels"].write(labels)
        marked = np.column_stack([np.frombuffer(labels, np.uint8), _digest_rows(documents.digests)])
        self._digests[part].update(marked.tobytes())
        size["documents"] += len(labels)
        size["tokens"] += len(documents.tokens)
        size["without_words"] += documents.empty

    def _global_numbers(self, types: Sequence[str]) -> NDArray[np.int32]:
        before = len(self._numbers)
        found = np.fromiter(map(self._numbers.__getitem__, types), np.int32, len(types))
        new = [types[place].encode() for place in np.flatnonzero(found >= before).tolist()]
        self.files["types"].write(b"".join(new))
        ends = self._text_size + np.cumsum([len(text) for text in new], dtype=np.int64)
        self.files["types.offsets"].write(ends.data)
        self._text_size += sum(map(len, new))
        if len(self._numbers) > len(self._counts):
            more = np.zeros((len(self._numbers), len(PARTS)), np.int64)
            self._counts = np.concatenate([self._counts, more])
        return found

    def finish(self, classes: Sequence[str]) -> dict[str, Any]:
        """Write what is known only at the end; returns what there is to say about the documents."""
        self.files["counts"].write(self._counts[: len(self._numbers)].data)
        digests = b"".join(digest.digest() for digest in self._digests.values())
        return {
            "classes": list(classes),
            **self._sizes,
            "types": len(self._numbers),
            "fingerprint": sha256(digests).hexdigest(),
        }


def _digest_rows(digests: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(digests, np.uint8).reshape(-1, 32)


class Builder:
    """A collection of documents in memory.

    >>> builder = Builder()
    >>> builder.add("train", 1, ["so", "so", "good"])
    >>> builder.add("test", 0, ["so", "bad"])
    >>> documents = builder.build(["negative", "positive"], source="two reviews")
    >>> list(documents.types), documents.counts.tolist(), documents.train.document(0).tolist()
    (['so', 'good', 'bad'], [[2, 1], [1, 0], [0, 1]], [0, 0, 1])
    """

    def __init__(self) -> None:
        self._documents: dict[str, list[Sequence[str]]] = {part: [] for part in PARTS}
        self._labels = {part: bytearray() for part in PARTS}

    def add(self, part: str, label: int, tokens: Sequence[str]) -> None:
        """Add a document to ``part``, which is "train" or "test"; labels count from 0."""
        if part not in PARTS:
            raise ValueError(f"a part is one of {', '.join(PARTS)}, got {part!r}")
        if not 0 <= label < MOST_LABELS:
            raise ValueError(f"a label is from 0 to {MOST_LABELS - 1}, got {label}")
        if isinstance(tokens, str):
            raise TypeError(f"expected a list of tokens, got the text {tokens[:40]!r}")
        if any("\n" in token for token in tokens):
            raise ValueError("a token has no line break in it")
        self._documents[part].append(tuple(tokens))
        self._labels[part].append(label)

    def build(self, classes: Sequence[str], **about: Any) -> Documents:
        """Return all documents so far; ``about``, kept beside the counts, should have a ``source``."""
        largest = max(map(max, filter(None, self._labels.values())), default=-1)
        if largest >= len(classes):
            raise ValueError(f"label {largest} has no name among {len(classes)} classes")
        writer = Writer(lambda name: io.BytesIO())
        for part, documents in self._documents.items():
            if documents:
                writer.add(part, bytes(self._labels[part]), numbered(documents))
        about = {"source": "in memory", **about, **writer.finish(classes)}
        buffers = {
            name: file.getvalue() for name, file in writer.files.items() if isinstance(file, io.BytesIO)
        }
        arrays = {name: np.frombuffer(buffers[name], kind) for name, kind in ARRAYS.items()}
        return Documents.of(arrays, about)
