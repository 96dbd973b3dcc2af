"""Named vocabularies that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

from lrn.text.store import Store
from lrn.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of a model: each field of a subclass is one, kept as a JSON file of that name.

    >>> import tempfile
    >>> from lrn.text.store import Folder
    >>> @dataclass(frozen=True)
    ... class Codes(Vocabularies):
    ...     words: Vocabulary
    ...     tags: Vocabulary
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Codes(Vocabulary(["Anna", "ran"]), Vocabulary(["O", "B-PER"])).save(Path(place))
    ...     sorted(path.name for path in Path(place).iterdir()), Codes.load(Folder(Path(place))).tags.words
    (['tags.json', 'words.json'], ('O', 'B-PER'))
    """

    first: ClassVar[Mapping[str, Sequence[str]]] = {}  # what some of them begin with

    def save(self, folder: Path) -> None:
        """Write all of them into ``folder``."""
        for field in fields(self):
            getattr(self, field.name).save(folder / f"{field.name}.json")

    @classmethod
    def load(cls, store: Store) -> Self:
        """Read what :meth:`save` wrote; an error names the file that is missing or damaged."""
        names = [f"{field.name}.json" for field in fields(cls)]
        texts = [store.text(name) for name in names]
        found = cls(
            *(Vocabulary.read(text, store.place(name)) for text, name in zip(texts, names, strict=True))
        )
        for name, first in cls.first.items():
            if getattr(found, name).words[: len(first)] != tuple(first):
                raise ValueError(f"{store.place(f'{name}.json')} does not begin with {', '.join(first)}")
        return found
