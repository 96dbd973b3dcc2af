"""Lines of text as a command is given them: from files, or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lrn.files import text_lines


def each_line(files: Sequence[str | Path] = ()) -> Iterator[str]:
    """Yield every line without its end, as it comes: of ``files`` or, if there are none, of standard input.

    What is not UTF-8 is an error that names the line.
    """
    if not files:
        yield from (line for _, line in text_lines(sys.stdin.buffer, "standard input"))
    for name in files:
        if not Path(name).is_file():
            raise FileNotFoundError(f"there is no file {name}")
    for name in files:
        with Path(name).open("rb") as file:
            yield from (line for _, line in text_lines(file, name))
