"""Named vocabularies that belong together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from lrn.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of a model: each field of a subclass is one, kept as a JSON file of that name.

    >>> import tempfile
    >>> @dataclass(frozen=True)
    ... class Codes(Vocabularies):
    ...     words: Vocabulary
    ...     tags: Vocabulary
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Codes(Vocabulary(["Anna", "ran"]), Vocabulary(["O", "B-PER"])).save(Path(folder))
    ...     sorted(path.name for path in Path(folder).iterdir()), Codes.load(Path(folder)).tags.words
    (['tags.json', 'words.json'], ('O', 'B-PER'))
    """

    def save(self, folder: Path) -> None:
        """Write all of them into ``folder``."""
        for field in fields(self):
            getattr(self, field.name).save(_file(folder, field.name))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote; an error names the file that is missing or damaged."""
        paths = [_file(folder, field.name) for field in fields(cls)]
        for path in paths:
            if not path.is_file():
                raise FileNotFoundError(f"{folder} cannot be used: its {path.name} is missing")
        return cls(*map(Vocabulary.load, paths))


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
