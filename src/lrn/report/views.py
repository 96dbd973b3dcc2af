"""The parts that a page shows an answer in, as plain data: the page draws them and knows no task.

A view becomes JSON by :func:`to_json`, where ``kind`` says which one it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Weights = Sequence[Sequence[Sequence[float]]]


@dataclass(frozen=True)
class Bar:
    """A name with a bar beside it.

    Args:
        name: what it stands for.
        share: how long the bar is, from 0 to 1.
        shown: the number as it is written.
    """

    name: str
    share: float
    shown: str


@dataclass(frozen=True)
class Bars:
    """Names by how much speaks for each of them, in the order in which they are shown."""

    title: str
    bars: Sequence[Bar]

    @classmethod
    def of(cls, title: str, shares: dict[str, float]) -> Bars:
        """Bars of probabilities.

        >>> Bars.of("label", {"good": 0.75}).bars
        [Bar(name='good', share=0.75, shown='75.0 %')]
        """
        bars = [Bar(name, round(share, 4), f"{100 * share:.1f} %") for name, share in shares.items()]
        return cls(title, bars)


@dataclass(frozen=True)
class Shade:
    """A word, how dark it is from 0 to 1, and what is said of it when it is pointed at."""

    text: str
    share: float
    tip: str = ""


@dataclass(frozen=True)
class Shades:
    """A text whose words are the darker the more they count; the ``note`` says for what."""

    title: str
    words: Sequence[Shade]
    note: str = ""


@dataclass(frozen=True)
class Mark:
    """A part of a text: as it is or, with a ``rank`` from 0, marked in the colour of that rank."""

    text: str
    label: str = ""
    rank: int = -1


@dataclass(frozen=True)
class Marks:
    """A text, some of whose parts are marked; a ``large`` one is what the page is there for."""

    title: str
    parts: Sequence[Mark]
    large: bool = False


@dataclass(frozen=True)
class Attention:
    """How much each word of one text looks at each of another.

    Args:
        title: what it is.
        rows: the words that look.
        columns: the words that are looked at.
        weights: by head, ``weights[head][row][column]``.
        note: how it is to be read.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Weights
    note: str = ""

    @classmethod
    def of(
        cls, title: str, rows: Sequence[str], columns: Sequence[str], by_row: Weights, note: str = ""
    ) -> Attention:
        """The same from weights by row, ``by_row[row][head][column]``; four digits of each are kept."""
        heads = range(len(by_row[0]) if by_row else 0)
        weights = [[[round(weight, 4) for weight in row[head]] for row in by_row] for head in heads]
        return cls(title, list(rows), list(columns), weights, note)


View = Bars | Shades | Marks | Attention


def shares_of(values: Sequence[float]) -> list[float]:
    """Values as shares of the largest, for shades of words.

    >>> shares_of([1.0, 4.0, 0.0]), shares_of([0.0])
    ([0.25, 1.0, 0.0], [0.0])
    """
    most = max(values, default=0.0) or 1.0
    return [round(value / most, 4) for value in values]


def above_even(weights: Sequence[float]) -> list[float]:
    """How far each of the weights, which sum to 1, is above an even share: 0 at or below it, 1 if it is all.

    >>> above_even([0.25, 0.25, 0.5, 0.0]), above_even([1.0])
    ([0.0, 0.0, 0.5, 0.0], [1.0])
    """
    count = len(weights)
    if count == 1:
        return [1.0]
    return [round(math.log(max(weight * count, 1.0)) / math.log(count), 4) for weight in weights]


def to_json(view: View) -> dict[str, Any]:
    """A view as the page gets it.

    >>> to_json(Marks("", [Mark("Linz", "answer", 0)]))["parts"]
    [{'text': 'Linz', 'label': 'answer', 'rank': 0}]
    """
    return {"kind": type(view).__name__.lower(), **asdict(view)}
