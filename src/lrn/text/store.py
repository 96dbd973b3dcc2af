"""Where the things are read from that a model needs beside its weights: vocabularies, word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Store(Protocol):
    """Texts, tables and folders by name. A run folder is one, and so is a file that was exported from it."""

    def text(self, name: str) -> str:
        """The content of a text file; one that is missing is an error."""
        ...

    def table(self, name: str, rows: int) -> Tensor:
        """A table of so many rows of float32; a missing one, or another kind of table, is an error."""
        ...

    def folder(self, name: str) -> Path:
        """The place of a folder with files of others, such as a BERT's."""
        ...

    def place(self, name: str) -> str:
        """What errors call the thing of that name."""
        ...


class Folder:
    """The store that a folder is: each thing is a file of its name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "words.json").write_text("[]")
    ...     Folder(Path(place)).text("words.json")
    '[]'
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self, name: str) -> str:
        content = self._file(name).read_bytes()
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.place(name)} is damaged: not UTF-8 text ({error.reason})") from None

    def table(self, name: str, rows: int) -> Tensor:
        import torch  # here, since vocabularies are read without it

        from lrn.text.vectors import load_table

        return torch.from_numpy(load_table(self._file(name), rows))

    def folder(self, name: str) -> Path:
        return self.path / name

    def place(self, name: str) -> str:
        return str(self.path / name)

    def _file(self, name: str) -> Path:
        path = self.path / name
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} cannot be used: its {name} is missing")
        return path
