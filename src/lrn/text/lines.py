"""Lines of text: of data that is read, and as a command is given them, from files or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeVar

from lrn.files import decoded, text_lines

Progress = Callable[[float], None]  # is told the share that is done
STEP = 1 << 17  # bytes between two times that it is
INPUT = "standard input"

Line = TypeVar("Line")


def ignore(share: float) -> None:
    """Progress that nobody wants to hear of."""


class Reading:
    """Files that are read line by line, while ``progress`` is told what share of all their bytes is done.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "my.txt")
    ...     _ = path.write_text("to be")
    ...     list(Reading([path], print).lines(path))
    1.0
    [(1, 'to be')]
    """

    def __init__(self, paths: Sequence[Path] = (), progress: Progress = ignore) -> None:
        self._size = sum(path.stat().st_size for path in paths) or 1
        self._progress = progress
        self._done = 0

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Number and text of each line of one of the files; what is not UTF-8 is an error that says where."""
        with path.open("rb") as file:
            yield from text_lines(self._counted(file), path)
        self._progress(self._done / self._size)

    def _counted(self, file: Iterable[bytes]) -> Iterator[bytes]:
        for line in file:
            before, self._done = self._done, self._done + len(line)
            if before // STEP < self._done // STEP:
                self._progress(self._done / self._size)
            yield line


def each_line(files: Sequence[str | Path] = ()) -> Iterator[str]:
    """Yield every line without its end, as it comes: of ``files`` or, if there are none, of standard input.

    What is not UTF-8 is an error that names the line. Where there is no line this is said, since nothing else
    will be.
    """
    if not files:
        yield from _told(line for _, line in text_lines(sys.stdin.buffer, INPUT))
    for name in files:
        if not Path(name).is_file():
            raise FileNotFoundError(f"there is no file {name}")
    for name in files:
        with Path(name).open("rb") as file:
            yield from _told((line for _, line in text_lines(file, name)), name)


def _told(lines: Iterator[Line], name: object = INPUT) -> Iterator[Line]:
    """The same, and a word on standard error if there is nothing."""
    line = None
    for line in lines:
        yield line
    if line is None:
        print(f"{name} is empty: there is nothing to read", file=sys.stderr, flush=True)


def lines_at_hand(most: int) -> Iterator[list[str]]:
    """Yield the lines of standard input that are there, up to ``most`` at a time, without waiting for more.

    So whoever writes lines one by one over a pipe can have an answer to each before the next, and whoever
    writes many at once has them answered together.
    """
    yield from _told(_groups_at_hand(most))


def _groups_at_hand(most: int) -> Iterator[list[str]]:
    number = 0
    for arrived in _arrivals(sys.stdin.buffer):
        for start in range(0, len(arrived), most):
            some = arrived[start : start + most]
            yield [decoded(line, number + place, INPUT).rstrip("\r\n") for place, line in enumerate(some, 1)]
            number += len(some)


def _arrivals(file: IO[bytes]) -> Iterator[list[bytes]]:
    """The whole lines of each piece that can be read at once, and in the end what is left."""
    begun: list[bytes] = []  # of a line whose end is yet to come
    while piece := file.read1(STEP):  # type: ignore[attr-defined]  # files and pipes have it, IO does not say so
        lines, end, rest = piece.rpartition(b"\n")
        if end:
            yield b"".join([*begun, lines]).split(b"\n")
            begun = []
        begun.append(rest)
    if any(begun):
        yield [b"".join(begun)]
