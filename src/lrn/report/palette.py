"""One palette for all pictures: a unit has the same colour in every one of them.

Six of the colours are Okabe and Ito's. All can be told apart by eyes that lack one of the three kinds of
cones, and are seen on the light page and on the dark one.
"""

from __future__ import annotations

import re

COLOURS = {
    "lrn": "#d55e00",  # vermilion
    "olrn": "#e69f00",  # orange
    "glrn": "#885533",  # brown
    "elrn": "#bb1180",  # magenta
    "atr": "#cc79a7",  # pink
    "sru": "#009e73",  # green
    "lstm": "#0072b2",  # blue
    "gru": "#56b4e9",  # sky
}
OTHER = "#505050"  # of what is none of the units
FAINT = "#9a9a9a"  # of what stands behind: lines to compare with, curves that are not named
ACCENT = COLOURS["lrn"]  # of what is pointed at

# Of pages, light and dark: writing, paper, what is less important, lines, and what is marked.
SCHEMES = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --soft: #666; --line: #ddd; --mark: #fdf0e6 }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e8e6e3; --paper: #17181a; --soft: #a5a29d; --line: #3a3b3e; --mark: #33251b }
}
"""

# Lines have patterns too, for print without colour: solid for LRN and its kin, dashed for gates with a matrix
# inside, dotted for what is none of the units.
_DASHES = {"lstm": "--", "gru": "--", "atr": "-.", "sru": "-."}

# For what is no unit but comes by rank, like the words of a text.
RANKS = tuple(COLOURS[unit] for unit in ("lrn", "lstm", "sru", "atr", "olrn"))


def unit_of(name: str) -> str:
    """The unit that a layer is, whoever made it, by how it is called.

    >>> [unit_of(name) for name in ("sru", "sru 2.6.0", "nn.LSTM", "lrn, Python loop")]
    ['sru', 'sru', 'lstm', 'lrn']
    """
    found = re.match(r"(?:nn\.)?(\w+)", name)
    return found[1].lower() if found else name


def colour(name: str) -> str:
    """The colour of a unit, or of any layer by its unit."""
    return COLOURS.get(unit_of(name), OTHER)


def dashes(name: str) -> str:
    """The pattern of a unit's line, as matplotlib writes it."""
    unit = unit_of(name)
    return _DASHES.get(unit, "-") if unit in COLOURS else ":"
