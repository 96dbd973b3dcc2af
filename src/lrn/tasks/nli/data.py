"""Pairs of sentences: reading them, numbering their words, and cutting them into batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.nli import generator
from lrn.tasks.nli.config import DESCRIBED, FILES, LABELS
from lrn.text.batches import Batch, Packing, Tokens
from lrn.text.bert import PieceBatch
from lrn.text.folders import find_files
from lrn.text.lines import Reading
from lrn.text.sentences import Sentences, packed_rows
from lrn.text.spelling import SpellingTable
from lrn.text.spelt import SpeltWords
from lrn.text.treebank import treebank_tokens
from lrn.training.config import PARTS

EMPTY = "<eos>"  # stands for a sentence without words
NO_LABEL = "-"  # where the annotators did not agree

Record = tuple[str, list[str], list[str]]  # label, words of the premise, words of the hypothesis


# Files --------------------------------------------------------------------------------------------


def read_pairs(path: Path, reading: Reading | None = None) -> Iterator[Record]:
    """Yield the pairs of a file; the label of those on which the annotators did not agree is empty.

    The form goes by the file: ``.jsonl`` is SNLI's and MultiNLI's own; others have a header that names their
    columns, with tabs between them. Words are those of the parses where there are any; else sentences are cut
    as the Penn Treebank does.
    """
    record: Callable[[Path, int, str], Record] = _json
    for number, line in (reading or Reading()).lines(path):
        if number == 1 and path.suffix != ".jsonl":
            record = _Columns(path, line).record
        elif line.strip():
            yield record(path, number, line)


def _json(path: Path, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
        label = record["gold_label"]
        premise, hypothesis = (record[f"sentence{n}_binary_parse"] for n in (1, 2))
        return _label(label), parse_words(premise), parse_words(hypothesis)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path}, line {number}: not a pair in SNLI's form: {what}: {line[:60]!r}") from None


class _Columns:
    """The columns of a table with tabs, found by its header."""

    NAMES: ClassVar[tuple[tuple[str, ...], ...]] = (  # what a column may be called, the best first
        ("gold_label", "label", "gold"),
        ("sentence1_binary_parse", "premise", "sentence1"),
        ("sentence2_binary_parse", "hypothesis", "sentence2"),
    )

    def __init__(self, path: Path, header: str) -> None:
        names = header.rstrip("\r\n").split("\t")
        found = [next((name for name in known if name in names), None) for known in self.NAMES]
        if None in found:
            missing = [known for known, name in zip(self.NAMES, found, strict=True) if name is None]
            raise ValueError(
                f"{path}, line 1: expected a header with tabs that names a column "
                f"{' and one '.join(' or '.join(names) for names in missing)}; got {header[:80]!r}"
            )
        self.width = len(names)
        self.places = [names.index(name) for name in found if name is not None]
        self.parsed = [bool(name and name.endswith("_parse")) for name in found]

    def record(self, path: Path, number: int, line: str) -> Record:
        """The pair of a line."""
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != self.width:
            raise ValueError(
                f"{path}, line {number}: expected {self.width} columns like the header, "
                f"got {len(fields)}: {line[:60]!r}"
            )
        label, *sentences = (fields[place] for place in self.places)
        cut = [
            parse_words(text) if parsed else treebank_tokens(text)
            for text, parsed in zip(sentences, self.parsed[1:], strict=True)
        ]
        try:
            return _label(label), cut[0], cut[1]
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None


def _label(given: str) -> str:
    """A label by its name or its number; empty where there is none."""
    if given in LABELS or given == NO_LABEL:
        return given if given != NO_LABEL else ""
    if given in ("-1", ""):
        return ""
    if given in ("0", "1", "2"):
        return LABELS[int(given)]
    raise ValueError(f"unknown label {given!r}; allowed: {', '.join(LABELS)}, 0, 1, 2, or - for none")


def parse_words(parse: str) -> list[str]:
    """The words of a binary parse.

    >>> parse_words("( ( The dog ) ( sleeps . ) )")
    ['The', 'dog', 'sleeps', '.']
    """
    return parse.replace("( ", "").replace(" )", "").split()


# The data set -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Some pairs: premises, hypotheses, and the number of each pair's label."""

    premises: Sentences
    hypotheses: Sentences
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Pairs:
    """Three parts of labelled pairs over the same types of words."""

    types: tuple[str, ...]
    counts: NDArray[np.int64]  # [types, 3] how often in each part
    train: Part
    valid: Part
    test: Part
    about: dict[str, Any]


def read_folder(folder: Path, progress: Callable[[float], None]) -> Pairs:
    """Read the three files of a data set, named in one of the known ways."""
    paths = find_files(folder, FILES, "without --data pairs of our own making are used", DESCRIBED)
    reading = Reading(paths, progress)
    return _collect(
        [read_pairs(path, reading) for path in paths], source=str(folder), files=[path.name for path in paths]
    )


def read_builtin(pairs: int, seed: int = 1) -> Pairs:
    """Make pairs with :mod:`generator`; what valid and test combine, training does not have."""
    small = max(300, pairs // 6)
    parts = [
        [
            (pair.label, list(pair.premise), list(pair.hypothesis))
            for pair in generator.pairs(count, part=part, seed=seed)
        ]
        for part, count in zip(PARTS, (pairs, small, small), strict=True)
    ]
    return _collect(parts, source="built-in", pairs_made=pairs)


def _collect(parts: Sequence[Iterable[Record]], **about: Any) -> Pairs:
    """Number the words of all pairs that have a label; the others are counted."""
    types: dict[str, int] = {}
    digest = hashlib.sha256()
    found: list[Part] = []
    for name, records in zip(PARTS, parts, strict=True):
        sentences: tuple[list[list[int]], list[list[int]]] = ([], [])
        labels: list[int] = []
        dropped = 0
        for label, *both in records:
            if not label:
                dropped += 1
                continue
            labels.append(LABELS.index(label))
            for rows, words in zip(sentences, both, strict=True):
                rows.append([types.setdefault(word, len(types)) for word in words or [EMPTY]])
            digest.update("\t".join([label, *map(" ".join, both)]).encode() + b"\n")
        if not labels:
            raise ValueError(f"{about['source']}: the {name} part has no pair with a label")
        part = Part(Sentences.of(sentences[0]), Sentences.of(sentences[1]), np.array(labels, np.int64))
        tokens = len(part.premises.tokens) + len(part.hypotheses.tokens)
        about[name] = {"pairs": len(part), "tokens": tokens, "dropped": dropped}
        found.append(part)
    about["fingerprint"] = digest.hexdigest()
    counts = [
        np.bincount(part.premises.tokens, minlength=len(types))
        + np.bincount(part.hypotheses.tokens, minlength=len(types))
        for part in found
    ]
    train, valid, test = found
    return Pairs(tuple(types), np.stack(counts, 1), train, valid, test, about)


# Batches ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context(Batch):
    """What BERT says of a batch's words, in packed order, and of each pair as a whole."""

    premises: Tensor  # [N, F]
    hypotheses: Tensor  # [M, F]
    pairs: Tensor  # [B, F]


@dataclass(frozen=True)
class PairBatch(Batch):
    """B pairs: premises of N words in all, hypotheses of M, both packed one step after the other."""

    tokens: Tokens  # [N + M] premises, then hypotheses
    premises: Packing
    hypotheses: Packing
    memory: Tensor  # [N] places of the packed premises' words, one premise behind the other, in the order in
    # which the hypotheses are packed
    starts: Tensor  # [B + 1] where each premise begins there
    labels: Tensor  # [B], or empty where none is known
    pieces: PieceBatch | None = None  # for a BERT that is trained with the model
    context: Context | None = None  # of a BERT that is not


def encode(
    premises: Sequence[NDArray[np.int32]],
    hypotheses: Sequence[NDArray[np.int32]],
    table: SpellingTable,
    labels: Sequence[int] | NDArray[Any] = (),
) -> PairBatch:
    """Make a batch of pairs, no sentence of them empty; each is given as the numbers of its words' types."""
    first, second = (Packing.of([len(row) for row in rows]) for rows in (premises, hypotheses))
    memory, starts = first.one_by_one(second.order)
    return PairBatch(
        table.tokens(np.concatenate([packed_rows(premises, first), packed_rows(hypotheses, second)])),
        first,
        second,
        memory,
        starts,
        torch.from_numpy(np.asarray(labels, dtype=np.int64)),
    )


def encode_words(
    premises: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]], codes: SpeltWords
) -> PairBatch:
    """Make a batch of pairs that are given as their words."""
    types: dict[str, int] = {}
    rows = [
        [np.array([types.setdefault(word, len(types)) for word in words], np.int32) for words in sentences]
        for sentences in (premises, hypotheses)
    ]
    return encode(rows[0], rows[1], codes.table(types))
