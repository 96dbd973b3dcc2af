"""The files of a data set, which is distributed under one set of names or another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def find_files(folder: Path, namings: Sequence[Sequence[str]], hint: str) -> list[Path]:
    """Find the files in ``folder`` that one of ``namings`` names; returns them in its order.

    What is missing is an error that says what was expected, followed by ``hint``; it goes by the naming of
    which there is most.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("train.txt", "test.txt"):
    ...         Path(folder, name).touch()
    ...     files = find_files(Path(folder), [("eng.train", "eng.testb"), ("train.txt", "test.txt")], "")
    >>> [file.name for file in files]
    ['train.txt', 'test.txt']
    """
    expected = "expected " + " or ".join(", ".join(names) for names in namings)
    if folder.is_file():
        raise ValueError(f"{folder} is a file, not a folder; {expected}; {hint}")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; {expected}; {hint}")
    named = [[folder / name for name in names] for names in namings]
    paths = max(named, key=lambda paths: sum(path.exists() for path in paths))
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {' and '.join(missing)}; {expected}; {hint}")
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path} is not a file")
    return paths
