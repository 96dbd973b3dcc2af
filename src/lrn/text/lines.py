"""Lines of text as a command is given them: from files, or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO


def each_line(files: Sequence[str | Path] = ()) -> Iterator[str]:
    """Every line without its end, as it comes; of standard input if there are no ``files``.

    What is not UTF-8 is an error that names the line.
    """
    if not files:
        yield from _decoded(sys.stdin.buffer, "standard input")
    for name in files:
        if not Path(name).is_file():
            raise FileNotFoundError(f"there is no file {name}")
    for name in files:
        with Path(name).open("rb") as file:
            yield from _decoded(file, str(name))


def _decoded(lines: IO[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, line {number}: not UTF-8 text: {error.reason}") from None
