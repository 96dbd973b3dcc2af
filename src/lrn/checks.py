"""Checks without torch, and the hint at what was meant. An error names what was given and what is allowed."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from typing import Any, TypeVar

Name = TypeVar("Name", bound="str | None")

FILE, FOLDER, RUN = {"names": "file"}, {"names": "folder"}, {"names": "run"}
"""What a text among the settings names, a file to read for example: the metadata of a dataclass's field.
With "otherwise", what to do where there is no such file."""

DISTRIBUTION = "lrn-torch"
"""What pip knows us as; ``lrn`` is a stranger's there."""


EXTRAS = {
    "rich": "train",
    "lightning": "train",
    "numpy": "train",
    "yaml": "train",
    "safetensors": "train",
    "matplotlib": "plot",
    "transformers": "bert",
    "h5py": "elmo",
    "spacy": "rc",
    "sacrebleu": "mt",
    "sacremoses": "mt",
    "tokenizers": "mt",
    "onnx": "onnx",
    "onnx_ir": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
}
"""Which of our extras brings a package, by the name it is imported by."""


def choice(what: str, given: Name, allowed: Sequence[str | None]) -> Name:
    """``given`` if it is allowed; else an error that lists what is.

    >>> choice("unit", "lstn", ("lrn", "lstm"))
    Traceback (most recent call last):
    ValueError: unknown unit 'lstn'; allowed: lrn, lstm; did you mean 'lstm'?
    """
    if given in allowed:
        return given
    names = [name for name in allowed if name is not None]
    raise ValueError(
        f"unknown {what} {given!r}; allowed: {', '.join(map(str, allowed))}{nearest(given, names)}"
    )


def nearest(value: object, allowed: Sequence[str], before: str = "") -> str:
    """The end of an error that hints at the most similar of ``allowed``; nothing if none is similar.

    >>> nearest("hiden", ("layers", "hidden"), "--")
    "; did you mean '--hidden'?"
    """
    typed = str(value).lower()[:100]
    likeness = {name: 1 - _distance(typed, name.lower()) / max(len(typed), len(name), 1) for name in allowed}
    best = max(likeness, key=likeness.__getitem__, default="")
    return f"; did you mean '{before}{best}'?" if best and likeness[best] >= 0.5 else ""


def kind(value: object) -> str:
    """What kind of thing an error was given, in two words.

    >>> kind("lrn"), kind(3), kind(int)
    ('a str', 'an int', 'the class int')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    spoken = "AEFHILMNORSX" if name.isupper() else "aeioAEIO"  # letter by letter, or as a word
    return f"{'an' if name[0] in spoken or name == 'ndarray' else 'a'} {name}"


def install(extra: str) -> str:
    """The command that brings the packages of one of our extras.

    It works wherever lrn itself was installed from: pip finds it in its place, and adds the packages alone.

    >>> install("plot")
    "pip install 'lrn-torch[plot]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _distance(a: str, b: str) -> int:
    """How many letters to add, drop, change, or let change places with the next, to make ``b`` of ``a``."""
    earlier: list[int] = []
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        earlier, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and (x, a[i - 2]) == (b[j - 2], y):
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1]


def count(what: str, given: Any) -> int:
    """``given``, which may be one of numpy's; an error unless it is a positive whole number."""
    whole = hasattr(given, "__index__") and not isinstance(given, bool)
    if not whole or (number := operator.index(given)) < 1:
        raise ValueError(f"{what} must be a positive whole number, got {given!r}")
    return number


def flag(what: str, given: Any) -> bool:
    """``given`` as a bool; an error if it is a text, for example, which would be true whatever it says."""
    if given not in (True, False):
        raise TypeError(f"{what} must be True or False, got {given!r}")
    return bool(given)


def share(what: str, given: Any) -> float:
    """``given``; an error unless it is a probability, 1 included."""
    number = hasattr(given, "__float__") and not isinstance(given, bool)
    if not (number and 0 <= given <= 1):
        raise ValueError(f"{what} must be a probability from 0 to 1, got {given!r}")
    return float(given)


# Settings: the attributes of a dataclass --------------------------------------------------------


def at_least(config: Any, name: str, least: float) -> None:
    """An error if the setting is smaller, or no number."""
    value = getattr(config, name)
    if not value >= least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def at_most(config: Any, name: str, most: float) -> None:
    """An error if the setting is larger, or no number."""
    value = getattr(config, name)
    if not value <= most:
        raise ValueError(f"{name} must be at most {most:,}, got {value:,}")


def finite(config: Any, name: str) -> None:
    """An error if the setting is infinite, or no number."""
    value = getattr(config, name)
    try:
        good = math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        good = False
    if not good:
        raise ValueError(f"{name} must be a finite number, got {value}")


def probability(config: Any, *names: str) -> None:
    """An error unless each setting is a probability below 1."""
    for name in names:
        value = getattr(config, name)
        if not 0 <= value < 1:
            raise ValueError(f"{name} must be a probability from 0 to below 1, got {value}")


def threads(number: int) -> None:
    """An error if this machine has fewer cores; 0 leaves the number to torch."""
    cores = os.cpu_count() or 1
    if not 0 <= number <= cores:
        raise ValueError(f"threads must be from 0 to {cores}, the cores of this machine, got {number:,}")


def files(config: Any) -> None:
    """An error if a setting names a file, or several, to read that is not there."""
    from dataclasses import fields  # here, since they take half the time of `lrn --help`

    for setting in fields(config):
        value = getattr(config, setting.name)
        if setting.metadata.get("names") != "file" or value is None:
            continue
        otherwise = setting.metadata.get("otherwise")
        for path in value if isinstance(value, list) else [value]:
            if os.path.isdir(path):
                raise ValueError(f"--{setting.name}: {path} is a folder; expected a file")
            if not os.path.exists(path):  # which says so too of a text that is too long for a name
                hint = f"; {otherwise}" if otherwise else ""
                raise FileNotFoundError(f"--{setting.name}: there is no file {path}{hint}")
