"""Dataclasses as plain data for JSON, and back with every value checked.

A file that is read back may have been edited, cut short or mixed up with another, so whatever does not fit is
a ``ValueError`` of one line that names the place. Fields that a class works out itself
(``field(init=False)``) are written for other readers, and not read; names that a class does not have are
passed over. JSON has no number that is not finite: such a one is written as null, and read as NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from lrn.files import read_json

Kind = TypeVar("Kind")
NAMES: dict[type[object], str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def to_json(value: object) -> Any:
    """Plain data: a dataclass as an object, a tuple as a list, and null for a number that is not finite.

    >>> from dataclasses import make_dataclass
    >>> to_json({"a": make_dataclass("Pair", ["x", "y"])(1, (2, 3))})
    {'a': {'x': 1, 'y': [2, 3]}}
    """
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(kind: type[Kind], path: Path) -> Kind:
    """The content of a JSON file as ``kind``."""
    return from_json(kind, read_json(path), path)


def from_json(kind: type[Kind], data: object, source: object) -> Kind:
    """Plain data as ``kind``: a dataclass, or ``dict`` and ``tuple`` of what JSON has.

    ``source`` is named in errors.

    >>> from_json(dict[str, float], {"a": "b"}, "my.json")
    Traceback (most recent call last):
    ValueError: my.json is damaged, or another file: a must be a number, got 'b'
    """
    try:
        made: Kind = _made(kind, data, "")
    except ValueError as error:
        raise ValueError(f"{source} is damaged, or another file: {error}") from None
    return made


def _made(kind: Any, data: Any, place: str) -> Any:
    if kind is object:
        return data
    if is_dataclass(kind):
        return _record(kind, _checked(dict, data, place), place)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # something or None
        return None if data is None else _made(inner[0], data, place)
    if origin is dict:
        content = _checked(dict, data, place)
        return {key: _made(inner[1], value, _join(place, key)) for key, value in content.items()}
    if origin is tuple:
        return _tuple(inner, _checked(list, data, place), place)
    return _checked(kind, data, place)


def _record(kind: Any, data: dict[str, object], place: str) -> Any:
    hints, values = get_type_hints(kind), {}
    for field in fields(kind):
        if field.init and field.name in data:
            values[field.name] = _made(hints[field.name], data[field.name], _join(place, field.name))
        elif field.init and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{_join(place, field.name)} is missing")
    return kind(**values)


def _tuple(kinds: tuple[Any, ...], data: list[object], place: str) -> tuple[Any, ...]:
    if kinds[1:] == (...,):
        kinds = kinds[:1] * len(data)
    if len(kinds) != len(data):
        raise ValueError(f"{place or 'it'} must have {len(kinds)} parts, got {len(data)}")
    places = [_join(place, n) for n in range(len(data))]
    return tuple(map(_made, kinds, data, places))


def _checked(kind: type[Any], data: object, place: str) -> Any:
    if kind is float and data is None:
        return math.nan
    allowed = (int, float) if kind is float else (kind,)
    if type(data) in allowed:  # and not isinstance, for which true is a number
        return data
    shown = repr(data) if len(repr(data)) < 40 else f"{repr(data)[:39]}…"
    raise ValueError(f"{place or 'it'} must be {NAMES[kind]}, got {shown}")


def _join(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)
