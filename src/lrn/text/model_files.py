"""The files of a model: what tells them from others, and copies of them. No torch."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path

from lrn.files import write_whole


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files and their names; which folder they are in makes no difference."""
    whole = sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            whole.update(f"{path.name} {file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def copy_files(paths: Sequence[Path], to: Path) -> None:
    """Copy files to a folder, each whole and the first one last: without it the folder is none."""
    to.mkdir(parents=True, exist_ok=True)
    for path in reversed(paths):
        with path.open("rb") as file:
            write_whole(to / path.name, partial(shutil.copyfileobj, file))
