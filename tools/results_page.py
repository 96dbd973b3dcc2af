"""Write the tables of a page of results from run folders, so that no figure in them is typed by hand.

    python tools/results_page.py docs/results.md --runs FOLDER

A table stands in the page between two comments, the first of which says where it comes from: a command with
run folders, or a table that ``lrn compare`` has written, both below FOLDER.

    <!-- lrn results runs/imdb-lstm runs/imdb-lrn -->
    <!-- table comparisons/doc-quick -->
    <!-- end -->

A table whose runs are not all there is left as it is, and named. With ``--check`` nothing is written; it ends
with 1 if a table would change.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

from lrn.files import write_text

BLOCK = re.compile(r"<!-- (?P<source>(?:lrn results|table) [^\n]+?) -->\n(?P<table>.*?)<!-- end -->", re.S)
OPENING = re.compile(r"<!-- (?:lrn results|table) ")


def table_of(source: str, folder: Path) -> str | None:
    """The table that a comment asks for; None where its runs are not all there.

    Raises:
        ValueError: the runs are there, and the table cannot be made.
    """
    words = shlex.split(source)
    if words[0] == "table":
        path = folder / words[1] / "table.md"
        return path.read_text(encoding="utf-8").partition("\n\n")[0] + "\n" if path.exists() else None
    if not all((folder / word).is_dir() for word in _runs(words[2:])):
        return None
    done = subprocess.run(
        [sys.executable, "-m", "lrn", *words[1:]], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise ValueError(f"{source}: {done.stderr.strip()}")
    return done.stdout


def _runs(words: list[str]) -> list[str]:
    """The folders among the words of `lrn results`: those before the first flag."""
    flags = (place for place, word in enumerate(words) if word.startswith("--"))
    return words[: next(flags, len(words))]


def renewed(text: str, folder: Path) -> tuple[str, list[str]]:
    """The page with all tables that can be made anew, and where those come from that cannot.

    Raises:
        ValueError: a table has no end, or cannot be made from its runs.
    """
    if len(OPENING.findall(text)) != len(BLOCK.findall(text)):
        raise ValueError("a table has no <!-- end -->")
    kept: list[str] = []

    def one(found: re.Match[str]) -> str:
        table = table_of(found["source"], folder)
        if table is None:
            kept.append(found["source"])
        return f"<!-- {found['source']} -->\n{found['table'] if table is None else table}<!-- end -->"

    return BLOCK.sub(one, text), kept


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--runs", type=Path, required=True, help="the folder that the page's paths begin in")
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if a table changed")
    options = parser.parse_args(words)
    try:
        before = options.page.read_text(encoding="utf-8")
        after, kept = renewed(before, options.runs)
    except (OSError, ValueError) as error:
        print(f"{options.page}: {error}", file=sys.stderr)
        return 2
    for source in kept:
        print(f"kept as it is, for lack of its runs: {source}")
    if not options.check:
        write_text(options.page, after)
    return int(options.check and after != before)


if __name__ == "__main__":
    sys.exit(main())
