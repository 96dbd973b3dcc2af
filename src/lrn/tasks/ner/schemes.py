"""Ways to mark entities on words: IOB1, IOB2 (BIO) and IOBES, and the entities they mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SCHEMES = ("iob1", "iob2", "iobes")


class Entity(NamedTuple):
    """An entity: its type, and that it is the words ``start`` to before ``end``."""

    type: str
    start: int
    end: int


def split(tag: str) -> tuple[str, str]:
    """Split a tag into its prefix and its type; ``O`` has no type.

    >>> split("B-PER"), split("O")
    (('B', 'PER'), ('O', ''))
    """
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def check(tag: str) -> str:
    """Return the tag if it is one, else raise a ``ValueError``."""
    prefix, kind = split(tag)
    if tag != "O" and (prefix not in tuple("BIES") or not kind):
        raise ValueError(f"{tag!r} is not a tag; expected O, or B-, I-, E- or S- and a type, like B-PER")
    return tag


def entities(tags: Sequence[str]) -> list[Entity]:
    """Return the entities that tags of any scheme mark, by the rules of conlleval.

    An entity begins at B or S, at an I or E that follows O or another type, and after an E or S; it ends
    before whatever does not go on with it.

    >>> entities(["B-PER", "I-PER", "O", "I-LOC"])
    [Entity(type='PER', start=0, end=2), Entity(type='LOC', start=3, end=4)]
    """
    found = []
    start, kind, closed = 0, "", True
    for place, tag in enumerate([*tags, "O"]):
        prefix, this = split(tag)
        goes_on = prefix in ("I", "E") and this == kind and not closed
        if kind and not goes_on:
            found.append(Entity(kind, start, place))
        if this and not goes_on:
            start = place
        kind = this
        closed = prefix in ("E", "S") or not this
    return found


def mark(length: int, spans: Sequence[Entity], scheme: str = "iob2") -> list[str]:
    """Return the tags of a scheme for entities that do not overlap.

    >>> mark(4, [Entity("PER", 0, 2), Entity("LOC", 3, 4)], "iobes")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; allowed: {', '.join(SCHEMES)}")
    tags = ["O"] * length
    before: Entity | None = None
    for span in spans:
        for place in range(span.start, span.end):
            tags[place] = f"I-{span.type}"
        touches = before is not None and before.end == span.start and before.type == span.type
        if scheme != "iob1" or touches:
            tags[span.start] = f"B-{span.type}"
        if scheme == "iobes":
            last = span.end - 1
            tags[last] = f"{'S' if last == span.start else 'E'}-{span.type}"
        before = span
    return tags


def allowed_transitions(tags: Sequence[str]) -> list[list[bool]]:
    """Return which IOB2 tag may follow which: an I only a B or I of its type.

    The last row is the sentence's beginning, the last column its end.

    >>> allowed_transitions(["O", "B-X", "I-X"])[0]
    [True, True, False, True]
    """
    rows = []
    for before in [*tags, "O"]:
        kind = split(before)[1]
        row = [not tag.startswith("I-") or split(tag)[1] == kind for tag in tags]
        rows.append([*row, True])
    return rows
