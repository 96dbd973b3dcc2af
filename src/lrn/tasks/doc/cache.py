"""The CSV sets of Zhang et al. (2015): read and cut into tokens once, then opened as they lie on the disk."""

from __future__ import annotations

import csv
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lrn.files import decoded, read_json, write_json
from lrn.tasks.doc.documents import ARRAYS, MOST_LABELS, PARTS, Documents, Numbered, Writer, numbered
from lrn.text.tokens import basic_tokens

VERSION = 1  # to be raised when the same files would become other tokens or other arrays
LONGEST = 10_000_000  # characters of a field, bytes of a line
BATCH_ROWS, BATCH_CHARACTERS = 2_000, 4_000_000
SMALL = 8_000_000  # bytes that are read sooner than a worker has started
MOST_WORKERS = 8  # one process reads and writes for all of them, and keeps two to five busy
DAY = 24 * 60 * 60

Progress = Callable[[float], None]
Rows = tuple[str, bytes, list[str]]  # part, labels from 0, texts


def read_folder(folder: Path, progress: Progress | None = None, workers: int | None = None) -> Documents:
    """The documents of ``train.csv`` and ``test.csv``, with the names in ``classes.txt`` if there is one.

    The first column is the label, counted from 1; the others are the text. What comes of it is kept in
    the cache (``$LRN_CACHE``, else ``~/.cache/lrn``) until a file changes. ``workers`` processes do the
    work, by default one for each processor but at most eight; small files need none. ``progress`` is told
    the share read.
    """
    folder = Path(folder)
    place, before = _place(folder), _state(folder)
    try:
        return _open(place, folder)
    except (OSError, ValueError):
        pass
    source = _Source(folder, progress)
    if source.size < SMALL:
        workers = 1
    elif workers is None:
        workers = min(MOST_WORKERS, os.cpu_count() or 1)
    with _writing():
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _build(source, temporary, workers)
        if _state(folder) != before:
            raise ValueError(f"the files in {folder} changed while they were read; try again")
        with _writing():
            _move(temporary, place, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _remove_older(place)
    return _open(place, folder)


def _state(folder: Path) -> list[Any]:
    """What changes when the files do. They must be there."""
    hint = "without --data documents of our own making are used"
    names = [f"{part}.csv" for part in PARTS]
    expected = f"expected {' and '.join(names)} as Zhang et al. (2015) published them"
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; {expected}; {hint}")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {' and '.join(missing)}; {expected}; {hint}")
    paths = [folder / name for name in (*names, "classes.txt")]
    stats = [path.stat() if path.is_file() else None for path in paths]
    return [VERSION, *((stat.st_size, stat.st_mtime_ns) if stat else None for stat in stats)]


# The cache


def _cache() -> Path:
    if os.environ.get("LRN_CACHE"):
        return Path(os.environ["LRN_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lrn"


def _place(folder: Path) -> Path:
    """Where the documents of these very files are or will be."""
    of_folder, of_files = os.fsencode(folder.resolve()), repr(_state(folder)).encode()
    name = "-".join(sha256(part).hexdigest()[:16] for part in (of_folder, of_files))
    return _cache() / "documents" / name


def _open(place: Path, folder: Path) -> Documents:
    """An OSError or a ValueError if they are not there, or not whole."""
    about = read_json(place / "about.json")
    try:
        arrays = {name: _mapped(place / name, kind) for name, kind in ARRAYS.items()}
        return Documents.of(arrays, {"source": str(folder), **about})
    except (KeyError, TypeError) as error:
        raise ValueError(f"{place} is damaged: {error!r}") from None


def _mapped(path: Path, kind: type[np.generic]) -> NDArray[Any]:
    # A view without memmap's own class, whose slices are slow. A file is never empty: neither is a document.
    return np.asarray(np.memmap(path, kind, mode="r"))


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"cannot write to the cache folder {_cache()}: {reason}; LRN_CACHE sets another"
        ) from error


def _move(temporary: Path, place: Path, folder: Path) -> None:
    """Put what was built in its place, unless another process meanwhile did."""
    for last_try in (False, True):
        try:
            _open(place, folder)
            return
        except (OSError, ValueError):
            shutil.rmtree(place, ignore_errors=True)
        try:
            os.rename(temporary, place)
            return
        except OSError:
            if last_try:
                raise


def _remove_older(place: Path) -> None:
    """What the same folder's files were before, and what a killed process left."""
    of_folder = place.name.split("-")[0]
    for other in place.parent.glob(f"{of_folder}-*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    for other in place.parent.glob(f".{of_folder}-*"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > DAY:
                shutil.rmtree(other)


# From the files to the cache


def _build(source: _Source, target: Path, workers: int) -> None:
    with ExitStack() as stack:
        writer = Writer(lambda name: stack.enter_context(_created(target / name)))
        stack.enter_context(_field_limit())
        pool = stack.enter_context(_pool(workers))
        for part, labels, batch in _in_order(source.batches(), pool, ahead=2 * workers):
            with _writing():
                writer.add(part, labels, batch)
        with _writing():
            about = writer.finish(source.classes)
            for file in writer.files.values():
                file.flush()
                os.fsync(file.fileno())
            write_json(target / "about.json", about)


@contextmanager
def _created(path: Path) -> Iterator[IO[bytes]]:
    with _writing():
        file = path.open("wb")
    try:
        yield file
    finally:
        with _writing():  # on a full disk this fails once more
            file.close()


@contextmanager
def _field_limit() -> Iterator[None]:
    """The csv module has one limit for everybody, and it is too low for us."""
    before = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


@contextmanager
def _pool(workers: int) -> Iterator[Executor | None]:
    """Processes that are gone afterwards, whatever happens; None if this one is enough."""
    if workers <= 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    far_end, line = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(far_end,))
    try:
        yield pool
    except BrokenProcessPool:
        raise ValueError(
            "a process that cut documents into tokens died: was there too little memory? "
            "(A script that reads documents must do so under `if __name__ == '__main__':`)"
        ) from None
    finally:
        line.close()
        pool.shutdown(cancel_futures=True)
        far_end.close()


_hung_up = threading.Event()  # in a worker: nobody waits for its work any more


def _start_worker(line: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one sees to it
    threading.Thread(target=_follow_parent, args=(line,), daemon=True).start()


def _follow_parent(line: Connection) -> None:
    """Stop when the first process hangs up, and end with it also when it was killed and could tell nobody.

    A worker is not ended in the midst of its work: a result that is half sent would be waited for for ever.
    """
    line.poll(None)
    _hung_up.set()
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
    os._exit(1)


def _submit(pool: Executor, texts: list[str]) -> Future[Numbered]:
    try:
        return pool.submit(_tokenise, texts)
    except OSError as error:  # a pool that is breaking down may still try to start another process
        raise BrokenProcessPool(str(error)) from error


def _in_order(
    batches: Iterable[Rows], pool: Executor | None, ahead: int
) -> Iterator[tuple[str, bytes, Numbered]]:
    """Part, labels and tokens of each; with a pool, ``ahead`` of them are under way at a time."""
    if pool is None:
        for part, labels, texts in batches:
            yield part, labels, _tokenise(texts)
        return
    waiting: deque[tuple[str, bytes, Future[Numbered]]] = deque()
    for part, labels, texts in batches:
        waiting.append((part, labels, _submit(pool, texts)))
        if len(waiting) > ahead:
            part, labels, future = waiting.popleft()
            yield part, labels, future.result()
    while waiting:
        part, labels, future = waiting.popleft()
        yield part, labels, future.result()


def _tokenise(texts: list[str]) -> Numbered:
    wanted = (text.replace('\\"', '"').replace("\\n", " ") for text in texts if not _hung_up.is_set())
    return numbered(basic_tokens(text) for text in wanted)


# The files


class _Source:
    """Reads the two files, and knows the names of the classes once the first has been read."""

    def __init__(self, folder: Path, progress: Progress | None) -> None:
        self.folder, self.progress = folder, progress
        self.size = sum((folder / f"{part}.csv").stat().st_size for part in PARTS)
        self.classes: tuple[str, ...] = ()
        self._bytes_read = 0
        self._at_end = False  # of the file that is being read

    def batches(self) -> Iterator[Rows]:
        for part in PARTS:
            rows = self._rows(self.folder / f"{part}.csv")
            while True:
                labels, texts = _take(rows)
                if not texts:
                    break
                yield part, labels, texts
                if self.progress:
                    self.progress(min(1.0, self._bytes_read / self.size))

    def _rows(self, path: Path) -> Iterator[tuple[int, str]]:
        """Label and text of each row."""
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
        """The names of the classes, given all labels of train.csv."""
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
        """The columns of each row that is not blank, and the number of the line on which it begins."""
        reader = csv.reader(self._lines(path))
        while True:
            line = reader.line_num + 1
            try:
                columns = next(reader, None)
            except csv.Error as error:
                reason = str(error)
                if "larger than field limit" in reason:
                    reason = (
                        f"a field of more than {LONGEST:,} characters; is there a quote that is not closed?"
                    )
                raise ValueError(f"{path}, line {line}: {reason}") from None
            if columns is None:
                return
            if self._at_end:  # the reader asked for one more line before it gave us this row
                raise ValueError(f"{path}, line {line}: a quote is opened and never closed")
            if len(columns) > 1 or "".join(columns).strip():
                yield line, columns

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
                yield decoded(line, number, path)
        self._at_end = True


def _take(rows: Iterator[tuple[int, str]]) -> tuple[bytes, list[str]]:
    """Labels from 0 and texts, of the next rows; none at the end."""
    labels, texts, characters = bytearray(), [], 0
    for label, text in rows:
        labels.append(label - 1)
        texts.append(text)
        characters += len(text)
        if len(texts) == BATCH_ROWS or characters > BATCH_CHARACTERS:
            break
    return bytes(labels), texts
