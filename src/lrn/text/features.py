"""Contextual features of a whole data set, computed once: mapped from the disk, a row a word.

Of 100,000 pairs of sentences with 22 words in all and features of 384 numbers, float16 takes 1.7 GB and
float32 3.4 GB, so float16 is the default. It rounds a number by at most one part in 2,048.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrn.files import read_json, write_json
from lrn.text import cache

VERSION = 1  # to be raised when the files would become others
WORDS = 4_096  # of a batch at the most, padding and all
KINDS: dict[str, type[np.generic]] = {"float16": np.float16, "float32": np.float32}

Numbers = NDArray[Any]  # float16 or float32
Compute = Callable[[list[int]], tuple[Sequence[Numbers], Numbers | None]]


@dataclass(frozen=True)
class Features:
    """Features of sequences, N words in all: a row of F numbers a word, and perhaps one a sequence.

    What :meth:`open` returns lies on the disk, and only what is read comes into memory.
    """

    table: Numbers  # [N, F]
    offsets: NDArray[np.int64]  # [sequences + 1] where the rows of each begin
    whole: Numbers | None  # [sequences, F] one row for a sequence as a whole

    @classmethod
    def open(cls, path: Path) -> Features:
        """Map what :func:`cached` wrote; a ``ValueError`` or an ``OSError`` says that it is not all there."""
        about = read_json(path / "about.json")
        try:
            words, count, width = (int(about[name]) for name in ("words", "sequences", "width"))
            kind, pooled = KINDS[about["numbers"]], bool(about["pooled"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None
        kinds = {"rows": kind, "offsets": np.int64, **({"pooled": kind} if pooled else {})}
        arrays = cache.mapped(path, kinds)
        sizes = {"rows": words * width, "offsets": count + 1, **({"pooled": count * width} if pooled else {})}
        if {name: array.size for name, array in arrays.items()} != sizes or arrays["offsets"][-1] != words:
            raise ValueError(f"{path} is damaged: its files are not as long as they should be")
        whole = arrays["pooled"].reshape(count, width) if pooled else None
        return cls(arrays["rows"].reshape(words, width), arrays["offsets"], whole)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return int(self.table.shape[1])

    def rows(self, number: int) -> Numbers:
        """Return the features of the words of a sequence, ``[length, F]``."""
        self._check(number)
        return self.table[self.offsets[number] : self.offsets[number + 1]]

    def pooled(self, number: int) -> Numbers:
        """Return the features of a sequence as a whole, ``[F]``."""
        self._check(number)
        if self.whole is None:
            raise ValueError("these are features of words alone, not of sequences as a whole")
        found: Numbers = self.whole[number]
        return found

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise IndexError(f"sequences are numbered from 0 to {len(self) - 1}, got {number}")


def cached(
    source: str | Path,
    key: str,
    lengths: ArrayLike,
    width: int,
    compute: Compute,
    progress: Callable[[float], None] | None = None,
    *,
    numbers: str = "float16",
    order: Sequence[Sequence[int]] = (),
) -> Features:
    """Open the features that an earlier call kept or, if there are none, compute and keep them.

    They are kept in the cache (``$LRN_CACHE``, else ``~/.cache/lrn``) as a folder that is whole or not there:
    what an interrupted call leaves is never read. Sequences are computed in batches of nearly equal length,
    longest first, so that what does not fit into memory shows at once.

    Args:
        source: what the features are of, a data set's folder and part for example; of the same source only
            the features computed last are kept.
        key: tells these features from others of the same source: fingerprints of the data and of the model.
        lengths: words of each sequence.
        width: F, how many numbers a word's features have.
        compute: returns the features of the words of each of some sequences, ``[length, F]`` each, and those
            of the sequences as a whole, ``[sequences, F]``, or None.
        progress: is told the share that is done.
        numbers: "float16" or "float32", in which they are kept.
        order: batches of sequences in the order in which they are to be computed, each sequence once, for a
            model that goes on where it ended the batch before; ``key`` then must say so.
    """
    if numbers not in KINDS:
        raise ValueError(f"features are kept in {' or '.join(KINDS)}, got {numbers!r}")
    sizes = np.asarray(lengths, dtype=np.int64)
    if not sizes.size or sizes.min() < 0 or not sizes.any():
        raise ValueError("features are of at least one word")
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if order and sorted(chain.from_iterable(order)) != [*range(len(sizes))]:
        raise ValueError(f"the order of batches must have each of {len(sizes):,} sequences once")

    def load(place: Path) -> Features:
        found = Features.open(place)
        if found.width != width or not np.array_equal(found.offsets, offsets):
            raise ValueError(f"{place} holds features of other sequences")
        return found

    return cache.kept(
        "features",
        str(source).encode(),
        repr((VERSION, key, width, numbers)).encode(),
        build=lambda place: _build(place, offsets, width, compute, progress, numbers, order),
        load=load,
    )


def batches(lengths: NDArray[np.int64], words: int = WORDS) -> list[list[int]]:
    """Cut sequences into batches of nearly equal length, longest first; none has more than ``words`` words.

    Padding counts; a sequence that is longer has a batch of its own.

    >>> batches(np.array([2, 9, 3, 2]), words=6)
    [[1], [2, 0], [3]]
    """
    cut: list[list[int]] = []
    longest = 0
    for number in np.argsort(-lengths, kind="stable").tolist():
        if not cut or (len(cut[-1]) + 1) * longest > words:
            cut.append([])
            longest = int(lengths[number])
        cut[-1].append(number)
    return cut


def _build(
    place: Path,
    offsets: NDArray[np.int64],
    width: int,
    compute: Compute,
    progress: Callable[[float], None] | None,
    numbers: str,
    order: Sequence[Sequence[int]],
) -> None:
    writer = _Writer(offsets, width, KINDS[numbers])
    done, total = 0, int(offsets[-1])
    with ExitStack() as stack:
        files = {name: stack.enter_context(cache.created(place / name)) for name in ("rows", "offsets")}
        with cache.writing():
            files["offsets"].write(offsets.data)
        for batch in map(list, order or batches(np.diff(offsets))):
            found, pooled = compute(batch)
            if pooled is not None and "pooled" not in files:
                files["pooled"] = stack.enter_context(cache.created(place / "pooled"))
            writer.add(files, batch, found, pooled)
            done += sum(map(len, found))
            if progress:
                progress(done / total)
    about = {
        "words": total,
        "sequences": len(offsets) - 1,
        "width": width,
        "numbers": numbers,
        "pooled": "pooled" in files,
    }
    with cache.writing():
        write_json(place / "about.json", about)


class _Writer:
    """A writer that puts the features of sequences where they belong, in whatever order they come."""

    def __init__(self, offsets: NDArray[np.int64], width: int, kind: type[np.generic]) -> None:
        self.offsets, self.width, self.kind = offsets, width, kind

    def add(
        self, files: dict[str, IO[bytes]], batch: list[int], rows: Sequence[Numbers], pooled: Numbers | None
    ) -> None:
        """Write the features of a batch."""
        for number, found in zip(batch, rows, strict=True):
            first, last = int(self.offsets[number]), int(self.offsets[number + 1])
            self._write(files["rows"], first, found, (last - first, self.width))
        if pooled is None:
            return
        for number, found in zip(batch, pooled, strict=True):
            self._write(files["pooled"], number, found[None], (1, self.width))

    def _write(self, file: IO[bytes], row: int, found: Numbers, shape: tuple[int, int]) -> None:
        if found.shape != shape:
            raise ValueError(f"expected features of shape {shape}, got {found.shape}")
        with np.errstate(over="ignore"):
            small = np.ascontiguousarray(found, dtype=self.kind)
        if not np.isfinite(small).all():
            raise ValueError(f"a feature is not finite, or too large for {np.dtype(self.kind).name}")
        with cache.writing():
            file.seek(row * self.width * small.itemsize)
            file.write(small.data)
