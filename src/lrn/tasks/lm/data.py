"""Text as one long stream of word numbers, and how training and evaluation walk over it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lrn.checks import count
from lrn.tasks.lm.config import SETTINGS
from lrn.text.builtin import Lines, python_prose
from lrn.text.folders import find_files
from lrn.text.lines import Progress, Reading, ignore
from lrn.text.vocabulary import END, UNKNOWN, Vocabulary
from lrn.training.config import PARTS

LONGEST_WORD = 10_000  # bytes. Beyond that a file is no text, and a vocabulary of such words fills the memory


@dataclass(frozen=True)
class Corpus:
    """Three streams of word numbers, 1-D int64, with ``<eos>`` after every line."""

    vocabulary: Vocabulary
    train: Tensor
    valid: Tensor
    test: Tensor
    about: dict[str, Any]
    """Where it comes from and how large it is."""


def read_folder(folder: str | Path, progress: Progress = ignore) -> Corpus:
    """Read a folder's ``train.txt``, ``valid.txt`` and ``test.txt`` (or ``wiki.train.tokens``, …).

    Words are what stands between blanks. The vocabulary is every word of all three files, in order
    of appearance. Nothing else is done to the text. ``progress`` is told the share read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in PARTS:
    ...         _ = Path(folder, f"{part}.txt").write_text(f"read the {part}")
    ...     corpus = read_folder(folder)
    >>> corpus.vocabulary.words
    ('read', 'the', 'train', '<eos>', 'valid', 'test')
    >>> corpus.test
    tensor([0, 1, 5, 3])
    """
    numbers: dict[str, int] = {}
    streams = []
    paths = find_files(Path(folder), SETTINGS.files, "without --data the built-in text is used")
    reading = Reading(paths, progress)
    for path in paths:
        stream = array("q")
        for _, words in _lines(path, reading):
            stream.extend(numbers.setdefault(word, len(numbers)) for word in words)
        streams.append(stream)
    return _corpus(Vocabulary(numbers), streams, source=str(folder))


def read_builtin(min_count: int = 3) -> Corpus:
    """Read the built-in text: the documentation of the Python that runs this.

    The vocabulary comes from the training part; words seen there less than ``min_count`` times, or only
    in the other parts, are ``<unk>``.

    >>> corpus = read_builtin()
    >>> "<unk>" in corpus.vocabulary
    True
    """
    count("min_count", min_count)
    prose = python_prose()
    known = Vocabulary.of(_ended(prose.train), min_count).words
    vocabulary = Vocabulary(dict.fromkeys([UNKNOWN, *known]))
    streams = []
    for part in (prose.train, prose.valid, prose.test):
        streams.append(array("q", [number for line in _ended(part) for number in vocabulary.encode(line)]))
    source = {"source": "built-in", "python": prose.python, "hash": prose.hash, "min_count": min_count}
    return _corpus(vocabulary, streams, **source)


def encode_file(path: str | Path, vocabulary: Vocabulary) -> Tensor:
    """Read a text file as one stream, by the rules of :func:`read_folder` and a vocabulary that is given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "mine.txt")
    ...     _ = path.write_text("to be or not to be")
    ...     encode_file(path, Vocabulary(["<eos>", "<unk>", "be", "to"]))
    tensor([3, 2, 1, 1, 3, 2, 0])
    """
    if END not in vocabulary:
        raise ValueError(f"the vocabulary of {len(vocabulary)} words has no {END} for the ends of lines")
    stream = array("q")
    for line, words in _lines(Path(path), Reading()):
        try:
            stream.extend(vocabulary.encode(words))
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
    return _tensor(stream)


def unknown_share(stream: Tensor, vocabulary: Vocabulary) -> float:
    """Return the share of a stream's words, the ends of lines not counted, that are ``<unk>``.

    A text of unknown words alone is easy to foresee: its perplexity says nothing.

    >>> unknown_share(torch.tensor([3, 2, 1, 1, 0]), Vocabulary(["<eos>", "<unk>", "be", "to"]))
    0.5
    """
    if UNKNOWN not in vocabulary:
        return 0.0
    (unknown,) = vocabulary.encode([UNKNOWN])
    words = len(stream)
    if END in vocabulary:
        (end,) = vocabulary.encode([END])
        words -= int((stream == end).sum())
    return int((stream == unknown).sum()) / max(1, words)


def _ended(lines: Lines) -> Iterator[list[str]]:
    return ([*line, END] for line in lines)


def _corpus(vocabulary: Vocabulary, streams: list[array[int]], **about: Any) -> Corpus:
    about["tokens"] = {part: len(stream) for part, stream in zip(PARTS, streams, strict=True)}
    about["types"] = len(vocabulary)
    train, valid, test = map(_tensor, streams)
    about["unknown"] = {
        part: round(unknown_share(stream, vocabulary), 4)
        for part, stream in zip(PARTS, (train, valid, test), strict=True)
    }
    return Corpus(vocabulary, train, valid, test, about)


def _tensor(stream: array[int]) -> Tensor:
    return torch.frombuffer(stream, dtype=torch.int64)


def _lines(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Yield number and words of each line, blank ones too, with ``<eos>`` last."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file")
    empty = True
    for number, line in reading.lines(path):
        words = line.split()
        if len(line) > LONGEST_WORD // 4:  # bytes, of which a character has up to four
            _check_words(words, f"{path}, line {number}")
        empty = empty and not words
        words.append(END)
        yield number, words
    if empty:
        raise ValueError(f"{path} is empty: it has no words")


def _check_words(words: list[str], where: str) -> None:
    for word in words:
        length = len(word.encode())
        if length > LONGEST_WORD:
            raise ValueError(
                f"{where}: a word of {length:,} bytes ({word[:20]}…), allowed are {LONGEST_WORD:,}; "
                "words must be separated by blanks"
            )


def batchify(stream: Tensor, columns: int) -> Tensor:
    """Cut the stream ``[N]`` into ``columns`` pieces of consecutive text side by side, ``[T, B]``.

    What does not fill a row is cut off.

    >>> batchify(torch.arange(7), 2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    count("columns", columns)
    if stream.dim() != 1:
        raise ValueError(f"stream must be one-dimensional, got shape {tuple(stream.shape)}")
    steps = len(stream) // columns
    if steps < 2:  # every column needs a word and one that follows
        raise ValueError(
            f"a text of {len(stream)} words is too short for {columns} columns: needs {2 * columns} words"
        )
    return stream[: steps * columns].view(columns, steps).t().contiguous()


@dataclass(frozen=True)
class Segment:
    """A segment of text: steps ``start`` to ``start + length`` are read, those one later predicted.

    The learning rate of a training step is multiplied by ``scale``.
    """

    start: int
    length: int
    scale: float


def segments(steps: int, *, base: int = 70, delta: int = 40, seed: int, epoch: int) -> list[Segment]:
    """Return the training segments of one epoch over ``[steps, B]``: of random lengths, back to back.

    Lengths are normally distributed around ``base`` (one time in twenty around half of it) with standard
    deviation 5, at least 5 and at most ``base + delta``. The plan depends on the arguments alone, so
    that a resumed run follows the one that was interrupted.

    >>> segments(100, seed=1, epoch=0) == segments(100, seed=1, epoch=0)
    True
    """
    count("base", base)
    for name, value in {"delta": delta, "seed": seed, "epoch": epoch}.items():
        if value < 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    if steps < 3:
        raise ValueError(f"the text is too short to train on: {steps} steps a column, needs 3")
    random = np.random.default_rng([seed, epoch])
    plan = []
    start = 0
    while start < steps - 2:  # one target may stay unused, as in the released code
        center = base if random.random() < 0.95 else base // 2
        length = min(max(5, int(random.normal(center, 5))), base + delta)
        plan.append(Segment(start, min(length, steps - 1 - start), length / base))
        start += length
    return plan


def fixed_segments(steps: int, length: int) -> list[Segment]:
    """Return segments of one length, the last one cut: every step from the second on is predicted once.

    >>> fixed_segments(6, 3)
    [Segment(start=0, length=3, scale=1.0), Segment(start=3, length=2, scale=1.0)]
    """
    count("length", length)
    if steps < 2:
        raise ValueError(f"the text is too short to evaluate on: {steps} steps a column, needs 2")
    return [Segment(start, min(length, steps - 1 - start), 1.0) for start in range(0, steps - 1, length)]
