"""Folders of BERT models in Hugging Face's format: what must be in them, and what is kept. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lrn.files import read_json
from lrn.text.folders import find_files
from lrn.text.model_files import copy_files, fingerprint_files

# kinds of models that read [CLS] premise [SEP] hypothesis [SEP] in word pieces, at positions counted from 0
KINDS = ("bert", "distilbert", "electra")
# what a model must be for that, where its settings say it
EXPECTED = {"type_vocab_size": 2, "position_embedding_type": "absolute", "is_decoder": False}
CONFIG = "config.json"
SETTINGS = "tokenizer_config.json"  # may be missing
VOCABULARIES = ("tokenizer.json", "vocab.txt")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
HINT = "a folder of a BERT in Hugging Face's format"


def check_folder(folder: str | Path, weights: bool = True) -> None:
    """Raise an error unless the folder holds a model of BERT's family that runs without code of its own.

    Without ``weights`` they need not be there.
    """
    config = read_config(Path(folder), weights)
    path = Path(folder, CONFIG)
    for name, content in ((CONFIG, config), (SETTINGS, read_settings(Path(folder)))):
        if "auto_map" in content:
            raise ValueError(f"{Path(folder, name)} asks for code of its own (auto_map), and none is run")
    if config.get("model_type") not in KINDS:
        given = f"model_type is {config.get('model_type')!r}"
        raise ValueError(f"{path}: {given}; those that read pairs as BERT does: {', '.join(KINDS)}")
    for name, value in EXPECTED.items():
        if config.get(name, value) != value:
            raise ValueError(f"{path}: {name} is {config[name]!r}; only {value!r} works here")
    for name, least in (("max_position_embeddings", 3), ("vocab_size", 3)):
        value = config.get(name, least)
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{path}: {name} is {value!r}; expected a whole number from {least}")


def read_config(folder: Path, weights: bool = False) -> dict[str, Any]:
    """Return what ``config.json`` says, of a folder in which no file is missing."""
    needed_files(folder, weights)
    return _object(folder / CONFIG)


def width(folder: Path) -> int:
    """Return how many numbers the model says of a word."""
    config = read_config(folder)
    found = config.get("dim" if config.get("model_type") == "distilbert" else "hidden_size", 768)
    if not isinstance(found, int) or found < 1:
        raise ValueError(f"{folder / CONFIG}: expected the width of the model, got {found!r}")
    return found


def read_settings(folder: Path) -> dict[str, Any]:
    """Return what ``tokenizer_config.json`` says, nothing if there is none."""
    return _object(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}


def needed_files(folder: Path, weights: bool) -> list[Path]:
    """Return the files of which the model consists: settings, vocabulary and, if they are wanted, weights.

    Of two vocabularies, or two files of weights, the first of ``VOCABULARIES`` and ``WEIGHTS`` counts.
    """
    namings = [
        (CONFIG, vocabulary, *file)
        for file in ([(name,) for name in WEIGHTS] if weights else [()])
        for vocabulary in VOCABULARIES
    ]
    files = find_files(folder, namings, HINT)
    return [*files, folder / SETTINGS] if (folder / SETTINGS).is_file() else files


def fingerprint(folder: Path) -> str:
    """Return the SHA-256 of weights, settings and vocabulary; where the folder is makes no difference."""
    return fingerprint_files(needed_files(folder, weights=True))


def copy_folder(folder: Path, to: Path, weights: bool) -> None:
    """Copy the files that are needed to use the model again, each whole; with or without ``weights``."""
    copy_files(needed_files(folder, weights), to)  # config.json, the first of them, last


def _object(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: expected an object, got a {type(found).__name__}")
    return found
