"""Word vectors in GloVe's text form: a word and its numbers a line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrn.files import not_utf8


def read_vectors(
    path: str | Path, wanted: set[str] | None = None, progress: Callable[[float], None] | None = None
) -> dict[str, NDArray[np.float32]]:
    """Read words and their vectors, float32; only words in ``wanted`` unless it is None.

    The file may be packed (.gz, .xz, .bz2, or .zip with one file in it) and is read line by line: what is not
    wanted is never kept. A line that does not hold as many numbers as the first is an error with its number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tiny.txt")
    ...     _ = file.write_text("the 0.5 1\\ncat -1 2e-1\\n")
    ...     vectors = read_vectors(file, {"cat"})
    >>> {word: vector.tolist() for word, vector in vectors.items()}
    {'cat': [-1.0, 0.20000000298023224]}
    """
    found: dict[str, NDArray[np.float32]] = {}
    for word, vector in each_vector(path, wanted, progress):
        found.setdefault(word, vector)
    return found


def each_vector(
    path: str | Path, wanted: set[str] | None = None, progress: Callable[[float], None] | None = None
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield words and vectors as :func:`read_vectors` reads them, for tables too large to be held twice."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}; GloVe's vectors come as glove.6B.zip or a text file"
        )
    size = path.stat().st_size
    width = 0
    with path.open("rb") as raw, _unpacked(path, raw) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if number == 1 and _is_header(line):  # word2vec's text form begins with its size
                continue
            word, numbers = _split(line, width, path, number)
            if not width:
                width = len(numbers)
            if wanted is None or word in wanted:
                yield word, _numbers(numbers, path, number)
            if progress and number % 10_000 == 0:
                progress(raw.tell() / size)
    if not width:
        raise ValueError(f"{path} is empty: it has no vectors")


def read_table(
    path: str | Path, wanted: set[str], progress: Callable[[float], None] | None = None
) -> tuple[list[str], NDArray[np.float32]]:
    """Read the vectors of ``wanted``; returns the words that have one, in the file's order, and a table.

    Of a word that the file has twice the first counts. A file without any of the words is an error.
    """
    found: dict[str, None] = {}
    numbers = array("f")  # grows in place: the table may be most of the memory there is
    for word, vector in each_vector(path, wanted, progress):
        if word not in found:
            found[word] = None
            numbers.frombytes(vector.tobytes())
    if not found:
        raise ValueError(f"{path} has no vector for any word of the data")
    return list(found), np.frombuffer(numbers, np.float32).reshape(len(found), -1)


def load_table(path: Path, words: int) -> NDArray[np.float32]:
    """Open the vectors of so many words that ``np.save`` wrote; what is changed in them is not written."""
    try:
        vectors: NDArray[np.float32] = np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if vectors.ndim != 2 or len(vectors) != words or vectors.dtype != np.float32:
        raise ValueError(f"{path} is damaged: it does not hold the vectors of {words:,} words")
    return vectors


def coverage(known: ArrayLike, counts: ArrayLike) -> float:
    """Return the share of tokens that have a vector, to four places.

    Args:
        known: of each type of word, whether it has a vector.
        counts: how often it occurs.

    >>> coverage([True, False, True], [5, 1, 2])
    0.875
    """
    counts = np.asarray(counts)
    return round(float(counts[np.asarray(known, dtype=bool)].sum() / counts.sum()), 4)


@contextmanager
def _unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    openers: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}  # type: ignore[dict-item]
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(raw) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                if len(names) != 1:
                    raise ValueError(
                        f"{path} holds {len(names)} files ({', '.join(names[:5])}); unpack the one you want"
                    )
                with archive.open(names[0]) as file:
                    yield file
        elif path.suffix in openers:
            with openers[path.suffix](raw) as file:
                yield file
        else:
            yield raw
    except (EOFError, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _is_header(line: bytes) -> bool:
    parts = line.split()
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def _split(line: bytes, width: int, path: Path, number: int) -> tuple[str, list[bytes]]:
    parts = line.rstrip().split(b" ")
    if len(parts) < 2:
        parts = line.rstrip().split()
    if width:  # a few words of GloVe's have blanks in them
        word, numbers = b" ".join(parts[:-width]), parts[-width:]
    else:
        word, numbers = parts[0], parts[1:]
    if not word or not numbers or (b" " in word and _is_number(word.rpartition(b" ")[2])):
        given = line.decode(errors="replace").strip()
        shown = given if len(given) <= 40 else f"{given[:39]}…"
        raise ValueError(
            f"{path}, line {number}: expected a word and {width or 'its'} numbers, got {shown!r}"
        )
    try:
        return word.decode(), numbers
    except UnicodeDecodeError as error:
        raise not_utf8(f"{path}, line {number}", error) from None


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(numbers: list[bytes], path: Path, number: int) -> NDArray[np.float32]:
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError:
        raise ValueError(f"{path}, line {number}: not all of its {len(numbers)} values are numbers") from None
    if not np.isfinite(vector).all():
        raise ValueError(f"{path}, line {number}: a value is not finite")
    return vector
