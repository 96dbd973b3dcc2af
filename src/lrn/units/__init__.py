"""Parameters and maths of each recurrent unit."""

from __future__ import annotations

from typing import Any, TypeGuard

from lrn import own
from lrn.checks import kind
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


def unit_class(unit: str | type[Unit]) -> type[Unit]:
    """The class of a unit: itself, one of ours by its name in any case, or a user's own by its module and
    name, ``my_module:MyUnit``.

    >>> unit_class("lrn")
    <class 'lrn.units.lrn.LRN'>
    """
    if _is_unit(unit):
        return unit
    if not isinstance(unit, str):
        raise TypeError(f"unit must be a name ({', '.join(UNITS)}) or the class of a unit, got {kind(unit)}")
    if not own.is_own(unit):
        return CLASSES[own.check("unit", unit.lower() if unit.lower() in UNITS else unit)]
    found = own.find(unit)
    if not _is_unit(found):
        raise ValueError(f"unit {unit}: it must be a class that inherits lrn.CustomUnit, got {found!r}")
    return found


def _is_unit(unit: object) -> TypeGuard[type[Unit]]:
    """Whether it is the class of a unit that can be made."""
    return isinstance(unit, type) and issubclass(unit, Unit) and hasattr(unit, "gates")


def make_unit(name: str | type[Unit], input_size: int, hidden_size: int, *args: Any, **kwargs: Any) -> Unit:
    """A unit by its name or its class, one of your own too; the other arguments are the unit's own.

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
