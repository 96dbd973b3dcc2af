"""Parallel text: reading it, numbering its pieces, and cutting it into batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.mt import generator
from lrn.tasks.mt.codes import END_NUMBER, Codes
from lrn.tasks.mt.files import Files, find_parts, need
from lrn.text.batches import Batch, Packing
from lrn.text.lines import Reading
from lrn.text.sentences import Sentences, packed_rows
from lrn.text.subwords import is_cut
from lrn.training.config import PARTS

Progress = Callable[[float], None]
LOOKED_AT = 1_000  # lines that tell whether a text is cut into pieces already


@dataclass(frozen=True)
class Part:
    """Sentences and their translations, a line each, as they were read."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class Corpus:
    """Parts of parallel text by name, each read when it is first asked for.

    Args:
        where: what it is called: a folder, or built-in.
        languages: of sources and targets.
        files: a pair of files for each part.
        made: parts that are in no file.
    """

    where: str
    languages: tuple[str, str]
    files: dict[str, Files] = field(default_factory=dict)
    made: dict[str, Part] = field(default_factory=dict)
    progress: Progress = field(default=lambda share: None, repr=False, compare=False)

    def part(self, name: str) -> Part:
        """A part; a FileNotFoundError that lists all if there is none of that name."""
        if name not in self.made:
            need({*self.files, *self.made}, self.where, *self.languages, [name])
            self.made[name] = read_part(*self.files[name], self.progress)
        return self.made[name]

    @cached_property
    def about(self) -> dict[str, Any]:
        """Where it comes from, and how large the parts are that a training reads."""
        digest = hashlib.sha256()
        about: dict[str, Any] = {"source": self.where, "languages": list(self.languages)}
        for name in PARTS:
            if name not in self.made and name not in self.files:
                continue
            part = self.part(name)
            for lines in (part.sources, part.targets):
                digest.update("\n".join([name, *lines]).encode() + b"\n")
            about[name] = {"pairs": len(part)}
            if name in self.files:
                about[name]["files"] = [path.name for path in self.files[name]]
        return about | {"fingerprint": digest.hexdigest()}

    def text(self, asked: str) -> str:
        """What text this is: what is asked for or, if that is auto, what the training part looks like."""
        if asked != "auto":
            return asked
        part = self.part("train")
        looks = is_cut(part.sources[:LOOKED_AT]) or is_cut(part.targets[:LOOKED_AT])
        return "segmented" if looks else "raw"


def read_part(source: Path, target: Path, progress: Progress = lambda share: None) -> Part:
    """Read a pair of files, which must have equally many lines."""
    reading = Reading([source, target], progress)
    sides = [tuple(line for _, line in reading.lines(path)) for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{source} has {len(sides[0]):,} lines and {target} {len(sides[1]):,}; "
            "expected as many, a sentence and its translation"
        )
    if not sides[0]:
        raise ValueError(f"{source} and {target} are empty")
    return Part(*sides)


def read_folder(folder: Path, source: str, target: str, progress: Progress) -> Corpus:
    """Find the files of a folder; their lines are read when they are needed."""
    files = find_parts(folder, source, target)
    if not files:
        need(files, folder, source, target, PARTS[:1])
    return Corpus(str(folder), (source, target), files, progress=progress)


def read_builtin(pairs: int, seed: int = 1) -> Corpus:
    """Make sentences with :mod:`generator`; those of valid and test, training does not have."""
    small = max(30, pairs // 20)
    made = {}
    for part, count in zip(PARTS, (pairs, small, small), strict=True):
        found = generator.pairs(count, part=part, seed=seed)
        made[part] = Part(tuple(pair[0] for pair in found), tuple(pair[1] for pair in found))
    return Corpus("built-in", ("en", "de"), made=made)


# Numbers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbered:
    """A part as numbers of pieces, without ends; ``dropped`` pairs of it, by the reason, are not there."""

    sources: Sentences
    targets: Sentences
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Pieces of sources and targets ``[2, pairs]``, each with its end."""
        return np.stack([self.sources.lengths, self.targets.lengths]) + 1


def number(part: Part, codes: Codes, progress: Progress = lambda share: None) -> Numbered:
    """Number the pieces of a part."""
    rows: list[list[list[int]]] = [[], []]
    for side, lines, found in zip(
        (codes.source, codes.target), (part.sources, part.targets), rows, strict=True
    ):
        for line in lines:
            found.append(side.encode(line))
            if len(found) % 1000 == 0:
                progress((len(rows[0]) + len(rows[1])) / 2 / len(part))
    return Numbered(Sentences.of(rows[0]), Sentences.of(rows[1]))


def without_broken(part: Numbered, longest: int, ratio: float) -> Numbered:
    """A part without pairs that nothing is to be learnt from: empty, too long, or of too different lengths.

    ``longest`` pieces a side, and one side at most ``ratio`` times as long as the other; 0 is no limit.
    """
    lengths = part.lengths - 1
    least, most = lengths.min(0), lengths.max(0)
    empty = least == 0
    long = ~empty & (most > longest) if longest else np.zeros_like(empty)
    unlike = ~empty & ~long & (most > ratio * least) if ratio else np.zeros_like(empty)
    good = ~(empty | long | unlike)
    reasons = {"empty": int(empty.sum()), "too long": int(long.sum()), "ratio": int(unlike.sum())}
    return Numbered(
        part.sources.where(good),
        part.targets.where(good),
        {reason: count for reason, count in reasons.items() if count},
    )


# Batches ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceBatch(Batch):
    """B sentences to translate, of N pieces in all with their ends, packed one step after the other."""

    tokens: Tensor  # [N]
    packing: Packing
    backwards: Tensor  # [N] places of the packed pieces when sentences are read from their ends
    memory: Tensor  # [N] places of the packed pieces, one sentence behind the other
    starts: Tensor  # [B + 1] where each sentence begins there

    @property
    def longest(self) -> int:
        return len(self.packing.batch_sizes)


@dataclass(frozen=True)
class PairBatch(Batch):
    """B sentences and their translations, of M pieces in all with their ends; the sources' memory is in the
    order in which the translations are packed."""

    source: SourceBatch
    target: Packing
    inputs: Tensor  # [M - B] what the decoder reads at all steps but the first, packed
    labels: Tensor  # [M] what it should say, packed
    lengths: Tensor  # [M] of each piece's sentence


Rows = Sequence[NDArray[np.int32]]


def source_batch(sources: Rows, order: Tensor | None = None) -> SourceBatch:
    """Make a batch of sentences, given as numbers of their pieces; the memory in the ``order`` given."""
    rows = [np.append(row, np.int32(END_NUMBER)) for row in sources]
    packing = Packing.of([len(row) for row in rows])
    tokens = torch.from_numpy(packed_rows(rows, packing).astype(np.int64))
    return SourceBatch(tokens, packing, packing.backwards(), *packing.one_by_one(order))


def pair_batch(sources: Rows, targets: Rows) -> PairBatch:
    """Make a batch of sentences and their translations."""
    rows = [np.append(row, np.int32(END_NUMBER)) for row in targets]
    packing = Packing.of([len(row) for row in rows])
    sizes = packing.batch_sizes.numpy()
    labels = packed_rows(rows, packing).astype(np.int64)
    # At every step but the first the decoder reads what it should have said one step before.
    before = np.cumsum([0, *sizes[:-2]]) if len(sizes) > 1 else np.zeros(0, np.int64)
    inputs = [labels[start : start + size] for start, size in zip(before, sizes[1:], strict=True)]
    lengths = packing.lengths.numpy()[packing.order.numpy()]
    steps = [lengths[:size] for size in sizes]
    return PairBatch(
        source_batch(sources, packing.order),
        packing,
        torch.from_numpy(np.concatenate([*inputs, np.zeros(0, np.int64)])),
        torch.from_numpy(labels),
        torch.from_numpy(np.concatenate(steps)),
    )
