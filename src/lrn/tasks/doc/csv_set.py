"""The CSV sets of Zhang et al. (2015): read and cut into tokens once, then opened as they lie on the disk."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from lrn.files import decoded, read_json, write_json
from lrn.tasks.doc.config import SETTINGS
from lrn.tasks.doc.documents import ARRAYS, MOST_LABELS, PARTS, Documents, Numbered, Writer, numbered
from lrn.text import cache, workers
from lrn.text.folders import find_files
from lrn.text.lines import Progress, ignore
from lrn.text.tokens import basic_tokens

VERSION = 2  # to be raised when the same files would become other tokens or other arrays
(FILES,) = SETTINGS.files
HINT = "as Zhang et al. (2015) published them; without --data documents of our own making are used"
LONGEST = 10_000_000  # characters of a field, bytes of a line
MOST_LINES = 1_000  # of a row: a document of more is rarer than a quote that was forgotten
BEGINNING = re.compile(r'"?\d{1,3}"?,')  # of a row
SWALLOWS = (
    "a quote is opened in this row and not closed in it, or one inside a text is not doubled: "
    "it would swallow the rows that follow"
)
PIECE_ROWS, PIECE_CHARACTERS = 2_000, 4_000_000  # what a worker is given at a time, at most
SMALL = 8_000_000  # bytes that are read sooner than a worker has started
MOST_WORKERS = 8  # one process reads and writes for all of them, and keeps two to five busy

Labelled = tuple[str, bytes]  # part, labels from 0 of the texts beside it


def read_folder(folder: Path, progress: Progress = ignore, processes: int | None = None) -> Documents:
    """Read the documents of ``train.csv`` and ``test.csv``; ``classes.txt`` may name the classes.

    The first column is the label, counted from 1; the others are the text. What comes of it is kept in
    the cache (``$LRN_CACHE``, else ``~/.cache/lrn``) until a file changes. So many ``processes`` do the
    work, by default one for each processor but at most eight; small files need no more than this one.
    ``progress`` is told the share read.
    """
    folder = Path(folder)
    find_files(folder, [FILES], HINT)

    def load(place: Path) -> Documents:
        about = read_json(place / "about.json")
        try:
            return Documents.of(cache.mapped(place, ARRAYS), {"source": str(folder), **about})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{place} is damaged: {error!r}") from None

    return cache.cached(
        "documents",
        VERSION,
        folder,
        (*FILES, "classes.txt"),
        build=lambda place: _build(_Source(folder, progress), place, processes),
        load=load,
    )


def _build(source: _Source, target: Path, processes: int | None) -> None:
    if source.size < SMALL:
        processes = 1
    elif processes is None:
        processes = min(MOST_WORKERS, os.cpu_count() or 1)
    with ExitStack() as stack:
        writer = Writer(lambda name: stack.enter_context(cache.created(target / name)))
        stack.enter_context(_field_limit())
        pool = stack.enter_context(workers.pool(processes))
        for (part, labels), documents in workers.in_order(
            pool, _tokenise, source.pieces(), ahead=2 * processes
        ):
            with cache.writing():
                writer.add(part, labels, documents)
        with cache.writing():
            about = writer.finish(source.classes) | source.doubts()
    with cache.writing():
        write_json(target / "about.json", about)


@contextmanager
def _field_limit() -> Iterator[None]:
    """Raise the limit that the csv module has for everybody: it is too low for us."""
    before = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _tokenise(texts: list[str]) -> Numbered:
    unescaped = (text.replace('\\"', '"').replace("\\n", " ") for text in workers.while_wanted(texts))
    return numbered(basic_tokens(text) for text in unescaped)


# The files


class _Source:
    """A reader of the two files that knows the names of the classes once the first has been read."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.folder, self.progress = folder, progress
        self.size = sum((folder / file).stat().st_size for file in FILES)
        self.classes: tuple[str, ...] = ()
        self._bytes_read = 0
        self._line = ""  # the latest of the file that is being read
        self._at_end = False  # of it
        self._doubtful: dict[str, list[int]] = {}  # by file, lines on which rows begin that may be several

    def pieces(self) -> Iterator[tuple[Labelled, list[str]]]:
        """Yield labels and texts, as many at a time as a worker is given."""
        for part, file in zip(PARTS, FILES, strict=True):
            rows = self._rows(self.folder / file)
            while True:
                labels, texts = _take(rows)
                if not texts:
                    break
                yield (part, labels), texts
                self.progress(min(1.0, self._bytes_read / self.size))

    def _rows(self, path: Path) -> Iterator[tuple[int, str]]:
        """Yield label and text of each row."""
        seen: set[int] = set()
        for line, columns in self._csv(path):
            try:
                label = self._label(columns)
            except ValueError as error:
                raise ValueError(f"{path}, line {line}: {error}") from None
            seen.add(label)
            yield label, " ".join(columns[1:])
        if not seen:
            raise ValueError(f"{path} is empty: it has no documents")
        if not self.classes:
            self.classes = self._names(path, seen)

    def _label(self, columns: list[str]) -> int:
        if len(columns) < 2:
            raise ValueError(f"expected a label and a text, got one column: {columns[0][:40]!r}")
        text = columns[0].strip()
        label = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if label < 1:
            hint = "if the first line is a header, remove it"
            raise ValueError(f"expected a label, a whole number from 1, got {text[:40]!r}; {hint}")
        if self.classes and label > len(self.classes):
            raise ValueError(f"the label is {label}, but those of train.csv end at {len(self.classes)}")
        if label > MOST_LABELS:
            raise ValueError(f"the label is {label}, but there may be at most {MOST_LABELS}")
        return label

    def _names(self, path: Path, seen: set[int]) -> tuple[str, ...]:
        """Return the names of the classes, given all labels of train.csv."""
        most = max(seen)
        absent = set(range(1, most)) - seen
        if len(seen) == 1:
            raise ValueError(f"{path}: every document has the label {most}; at least two labels are needed")
        if absent:
            raise ValueError(f"{path}: no document has the label {min(absent)}, but some have {most}")
        path = self.folder / "classes.txt"
        if not path.is_file():
            return tuple(str(label) for label in range(1, most + 1))
        names = [name for line in self._lines(path) if (name := line.strip())]
        if len(names) != most:
            raise ValueError(f"{path} names {len(names)} classes, but train.csv has {most} labels")
        if len(set(names)) < most:
            raise ValueError(f"{path} gives two classes the same name: {max(names, key=names.count)!r}")
        return tuple(names)

    def _csv(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        """Yield the columns of each row that is not blank, and the number of the line on which it begins."""
        reader = csv.reader(self._lines(path), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                columns = next(reader, None)
            except csv.Error as error:
                columns = self._forgiven(line == reader.line_num, str(error), f"{path}, line {line}")
            if columns is None:
                return
            lines = reader.line_num - line + 1
            if lines > 1 and (lines > MOST_LINES or _holds_rows(columns)):
                self._doubtful.setdefault(path.name, []).append(line)
            if len(columns) > 1 or "".join(columns).strip():
                yield line, columns

    def _forgiven(self, alone: bool, reason: str, where: str) -> list[str]:
        """Return the columns of a row whose quotes are not as they should be, if it is a line by itself.

        Where it goes on over several lines it has most likely swallowed other rows, which is an error.
        """
        if "larger than field limit" in reason:
            reason = f"a field of more than {LONGEST:,} characters; is there a quote that is not closed?"
        elif self._at_end:
            reason = "a quote is opened and never closed"
        elif "expected after" in reason:
            reader = csv.reader([self._line, ""])  # which forgives a quote that is not doubled
            columns = next(reader)
            if alone and reader.line_num == 1:
                return columns
            reason = SWALLOWS
        raise ValueError(f"{where}: {reason}")

    def doubts(self) -> dict[str, Any]:
        """What about.json says of rows that may have swallowed others; nothing if there is none."""
        found = {name: {"rows": len(lines), "first_line": lines[0]} for name, lines in self._doubtful.items()}
        return {"doubtful": found} if found else {}

    def _lines(self, path: Path) -> Iterator[str]:
        self._at_end = False
        with path.open("rb") as file:
            for number in count(1):
                line = file.readline(LONGEST + 1)
                self._bytes_read += len(line)
                if not line:
                    break
                if len(line) > LONGEST:
                    raise ValueError(f"{path}, line {number}: a line of more than {LONGEST:,} bytes")
                self._line = decoded(line, number, path)
                yield self._line
        self._at_end = True


def _holds_rows(columns: list[str]) -> bool:
    """Whether a line inside a text begins as a row does."""
    return any(BEGINNING.match(line) for text in columns for line in text.split("\n")[1:])


def _take(rows: Iterator[tuple[int, str]]) -> tuple[bytes, list[str]]:
    """Return labels, counted from 0, and texts of the next rows; none at the end."""
    labels, texts, characters = bytearray(), [], 0
    for label, text in rows:
        labels.append(label - 1)
        texts.append(text)
        characters += len(text)
        if len(texts) == PIECE_ROWS or characters > PIECE_CHARACTERS:
            break
    return bytes(labels), texts
