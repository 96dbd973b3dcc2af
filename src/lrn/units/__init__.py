"""Parameters and maths of each recurrent unit."""

from __future__ import annotations

from typing import Any

from lrn import own
from lrn.names import UNITS
from lrn.units.atr import ATR
from lrn.units.custom import CustomUnit
from lrn.units.gru import GRU
from lrn.units.lrn import ELRN, GLRN, LRN, OLRN
from lrn.units.lstm import LSTM
from lrn.units.sru import SRU
from lrn.units.unit import Unit, hidden, map_state

CLASSES: dict[str, type[Unit]] = {
    cls.__name__.lower(): cls for cls in (LRN, OLRN, GLRN, ELRN, ATR, SRU, LSTM, GRU)
}
"""The class of every unit by its name."""


def unit_class(name: str) -> type[Unit]:
    """The class of a unit: one of ours, or a user's own by its module and name, ``my_module:MyUnit``.

    >>> unit_class("lrn")
    <class 'lrn.units.lrn.LRN'>
    """
    if not own.is_own(name):
        return CLASSES[own.check("unit", name)]
    found = own.find(name)
    if not isinstance(found, type) or not issubclass(found, Unit) or not hasattr(found, "gates"):
        raise ValueError(f"unit {name}: it must be a class that inherits lrn.CustomUnit, got {found!r}")
    return found


def make_unit(name: str, input_size: int, hidden_size: int, *args: Any, **kwargs: Any) -> Unit:
    """A unit by name, or by that of a class of your own; the other arguments are the unit's own.

    >>> import lrn
    >>> lrn.make_unit("olrn", 3, 4, bidirectional=True)
    OLRN(3, 4, bidirectional=True)
    >>> lrn.make_unit("lsrn", 3, 4)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: unknown unit 'lsrn'; allowed: lrn, olrn, ...; did you mean 'lrn'?
    """
    return unit_class(name)(input_size, hidden_size, *args, **kwargs)


__all__ = [
    "ATR",
    "CLASSES",
    "ELRN",
    "GLRN",
    "GRU",
    "LRN",
    "LSTM",
    "OLRN",
    "SRU",
    "UNITS",
    "CustomUnit",
    "Unit",
    "hidden",
    "make_unit",
    "map_state",
    "unit_class",
]
