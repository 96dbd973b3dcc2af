"""The files of a data set or a model, which is distributed under one set of names or another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def find_files(folder: Path, namings: Sequence[Sequence[str]], hint: str, described: str = "") -> list[Path]:
    """Find the files in ``folder`` that one of ``namings`` names; returns them in its order.

    A name may be several, of which one is enough, with ``|`` between them, and have ``*`` in it; after a
    ``+`` all files of that name are meant, of which there must be one. What is missing is an error that says
    what was expected, in the words of ``described`` if there are any, followed by ``hint``; it goes by the
    naming of which there is most.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("train.txt", "test.tsv"):
    ...         Path(folder, name).touch()
    ...     namings = [("eng.train", "eng.testb"), ("train.txt", "test.txt|test.tsv")]
    ...     files = find_files(Path(folder), namings, "")
    >>> [file.name for file in files]
    ['train.txt', 'test.tsv']
    """
    named = " or ".join(", ".join(map(plain_name, names)) for names in namings)
    expected = f"expected {described or named}"
    if folder.is_file():
        raise ValueError(f"{folder} is a file, not the folder that holds it; {expected}; {hint}")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; {expected}; {hint}")
    found = [[_find(folder, name) for name in names] for names in namings]
    number = max(range(len(found)), key=lambda n: (all(found[n]), sum(map(bool, found[n]))))
    missing = [plain_name(name) for name, at in zip(namings[number], found[number], strict=True) if not at]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {' and '.join(missing)}; {expected}; {hint}")
    paths = [path for at in found[number] for path in at]
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path} is not a file")
    return paths


def _find(folder: Path, name: str) -> list[Path]:
    """The first file of those that a name allows, or all of them after a ``+``; empty if there is none."""
    if name.startswith("+"):
        return sorted(folder.glob(name[1:]))
    for form in name.split("|"):
        paths = sorted(folder.glob(form)) if "*" in form else [folder / form]
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise ValueError(f"{folder} has several files {form}: {names}; leave the one you mean")
        if paths and paths[0].exists():
            return [paths[0]]
    return []


def plain_name(name: str) -> str:
    """The first of the names that a name allows, as an error says it.

    >>> plain_name("train*.jsonl|train.txt")
    'train.jsonl'
    """
    return name.split("|")[0].removeprefix("+").replace("*", "")
