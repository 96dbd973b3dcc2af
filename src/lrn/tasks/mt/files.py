"""The files of parallel text: a pair of them for each part, a line a sentence. Needs no torch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from lrn.text.moses import ISO_639_3

Files = tuple[Path, Path]

ROLES = {
    "train": ("train",),
    "valid": ("valid", "val", "dev", "validation"),
    "test": ("test", "newstest"),
}
"""The parts that a training needs, and how their files' names begin, the best first."""


def find_parts(folder: Path, source: str, target: str) -> dict[str, Files]:
    """All pairs of files in a folder by the name they share, and by the part that they serve as.

    ``train.en`` and ``train.de`` are a pair; three letters for a language, ``train.eng``, do as well. The
    part is the pair of that very name, else the first whose name begins so: ``test_2016_flickr`` is the test
    part where there is no ``test``.
    """
    if folder.is_file():
        raise ValueError(f"{folder} is a file, not the folder that holds it")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; without --data built-in sentences are used")
    found: dict[str, Files] = {}
    for path in sorted(folder.iterdir()):
        for end in _ends(source):
            name = path.name.removesuffix(end)
            others = [folder / f"{name}{other}" for other in _ends(target)]
            there = next((other for other in others if other.is_file()), None)
            if name and path.name.endswith(end) and path.is_file() and there is not None:
                found.setdefault(name, (path, there))
    serving = {role: _serving(role, found) for role in ROLES}
    return found | {role: found[name] for role, name in serving.items() if name is not None}


def _ends(language: str) -> list[str]:
    """How the names of a language's files may end."""
    codes = [language, ISO_639_3.get(language, "")]
    codes += [two for two, three in ISO_639_3.items() if three == language]
    return [f".{code}" for code in codes if code]


def _serving(role: str, names: Iterable[str]) -> str | None:
    known = sorted(names)
    for beginning in ROLES[role]:
        if beginning in known:
            return beginning
    for beginning in ROLES[role]:
        others = [name for name in known if name.startswith(beginning)]
        if others:
            return others[0]
    return None


def need(
    parts: Collection[str],
    folder: str | Path,
    source: str,
    target: str,
    names: Iterable[str],
    hint: str = "",
) -> None:
    """Raise a FileNotFoundError that says what is missing if one of the parts is, and ends with ``hint``."""
    missing = [name for name in names if name not in parts]
    if not missing:
        return
    lacks = " and ".join(f"{name}.{language}" for name in missing for language in (source, target))
    here = ", ".join(sorted(set(parts) - set(ROLES))) or "none"
    raise FileNotFoundError(
        f"{folder} lacks {lacks}; expected pairs of files like train.{source} and train.{target}; other "
        f"pairs there: {here}; the languages are --source {source} and --target {target}{hint}"
    )
