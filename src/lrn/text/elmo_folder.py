"""Folders of ELMo models in the official format: what must be in them, and what is kept. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrn.files import read_json
from lrn.text.folders import find_files
from lrn.text.model_files import copy_files, fingerprint_files

# The official files have long names, as elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5; of several files of
# a kind the one that says what it is counts.
NAMES = ("options.json|*options*.json|*.json", "weights.hdf5|*weights*.hdf5|*.hdf5")
HINT = "the options.json and weights.hdf5 of an ELMo, as they are distributed"
ACTIVATIONS = ("relu", "tanh")
CHARACTERS = 261  # the 256 bytes, and five marks; some options count the padding of sentences besides


@dataclass(frozen=True)
class Options:
    """The sizes of an ELMo, and what it does besides."""

    layers: int  # of LSTMs in each direction
    cells: int
    projection: int  # what an LSTM gives, and what it reads
    cell_clip: float | None
    projection_clip: float | None
    residual: bool  # whether an LSTM's input is added to its output, from the second layer on
    character_width: int
    characters: int  # of a word with the marks of its begin and end; the rest of a longer one is left out
    filters: tuple[tuple[int, int], ...]  # (how many characters it reads, how many of its kind)
    highways: int
    activation: str

    @property
    def width(self) -> int:
        """How many numbers a layer says of a word."""
        return 2 * self.projection

    @property
    def kept_layers(self) -> int:
        """How many layers say something of a word: that of single words, and those of LSTMs."""
        return self.layers + 1


def needed_files(folder: Path) -> list[Path]:
    """Return the files of which the model consists: options and weights."""
    return find_files(folder, [NAMES], HINT)


def check_folder(folder: str | Path) -> None:
    """Raise an error unless the folder has the files of an ELMo, and options that can be meant."""
    read_options(Path(folder))


def read_options(folder: Path) -> Options:
    """Return what the options say, of a folder in which no file is missing."""
    path = needed_files(folder)[0]
    found = read_json(path)
    if not isinstance(found, dict) or not {"lstm", "char_cnn"} <= set(found):
        raise ValueError(f"{path} is not the options of an ELMo that reads characters: no lstm and char_cnn")
    read = _Reader(path, found)
    if found.get("bidirectional", True) is not True:
        raise ValueError(f"{path}: bidirectional is {found['bidirectional']!r}; an ELMo has two directions")
    if read.count("char_cnn", "n_characters") not in (CHARACTERS, CHARACTERS + 1):
        given = read.value("char_cnn", "n_characters")
        raise ValueError(f"{path}: char_cnn.n_characters is {given}; expected {CHARACTERS + 1}")
    filters = read.filters()
    characters = read.count("char_cnn", "max_characters_per_token", least=3)
    widest = max(width for width, _ in filters)
    if widest > characters:
        raise ValueError(f"{path}: a filter reads {widest} characters, but a word has at most {characters}")
    return Options(
        layers=read.count("lstm", "n_layers"),
        cells=read.count("lstm", "dim"),
        projection=read.count("lstm", "projection_dim"),
        cell_clip=read.clip("lstm", "cell_clip"),
        projection_clip=read.clip("lstm", "proj_clip"),
        residual=bool(found["lstm"].get("use_skip_connections", False)),
        character_width=read.count("char_cnn", "embedding", "dim"),
        characters=characters,
        filters=filters,
        highways=read.count("char_cnn", "n_highway", least=0, default=0),
        activation=read.activation(),
    )


def fingerprint(folder: Path) -> str:
    """Return the SHA-256 of options and weights; where the folder is makes no difference."""
    return fingerprint_files(needed_files(folder))


def copy_folder(folder: Path, to: Path) -> None:
    """Copy the files that are needed to use the model again, each whole."""
    copy_files(needed_files(folder), to)


class _Reader:
    """A reader of options, which says which of them is wrong."""

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self.path, self.options = path, options

    def value(self, *names: str, default: Any = None) -> Any:
        """The value under some names, one inside the other."""
        found: Any = self.options
        for number, name in enumerate(names, 1):
            if not isinstance(found, Mapping) or found.get(name) is None:
                if default is None or number < len(names):
                    raise ValueError(f"{self.path} is not the options of an ELMo: no {'.'.join(names)}")
                return default
            found = found[name]
        return found

    def count(self, *names: str, least: int = 1, default: int | None = None) -> int:
        found = self.value(*names, default=default)
        if not isinstance(found, int) or isinstance(found, bool) or found < least:
            name = ".".join(names)
            raise ValueError(f"{self.path}: {name} is {found!r}; expected a whole number from {least}")
        return found

    def clip(self, *names: str) -> float | None:
        found = self.value(*names, default=False)
        if found is False:
            return None
        if not isinstance(found, int | float) or not found > 0:
            raise ValueError(f"{self.path}: {'.'.join(names)} is {found!r}; expected a positive number")
        return float(found)

    def filters(self) -> tuple[tuple[int, int], ...]:
        found = self.value("char_cnn", "filters")
        try:
            filters = tuple((width, count) for width, count in found)
            if not filters or not all(type(n) is int and n > 0 for both in filters for n in both):
                raise ValueError
        except (TypeError, ValueError):
            given = repr(found)[:60]
            raise ValueError(
                f"{self.path}: char_cnn.filters is {given}; expected pairs of a width and a count"
            ) from None
        return filters

    def activation(self) -> str:
        found = self.value("char_cnn", "activation")
        if found not in ACTIVATIONS:
            raise ValueError(
                f"{self.path}: char_cnn.activation is {found!r}; allowed: {', '.join(ACTIVATIONS)}"
            )
        return str(found)
