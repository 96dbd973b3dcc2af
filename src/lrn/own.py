"""A user's own unit, by the name of its class: ``my_module:MyUnit``. Nothing here needs torch.

A name that the user types is imported. One that stands in a run folder or in a file of weights is not, unless
the user says so: whoever made that file must not choose what code runs here.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any

from lrn.checks import choice
from lrn.names import UNITS

TRUSTED = "LRN_UNITS"
"""The variable of the environment that names, with commas, the modules whose units may be imported."""

_SPELLING = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_own(name: str) -> bool:
    """Whether a unit is none of ours.

    >>> is_own("my_module:MyUnit"), is_own("lrn")
    (True, False)
    """
    return ":" in name


def check(what: str, name: str) -> str:
    """The name of a unit: one of ours, or one that is spelt like the class of a module.

    >>> check("unit", "my_module:My-Unit")
    Traceback (most recent call last):
    ValueError: unit 'my_module:My-Unit' is none of ours; a unit of your own is written my_module:MyUnit
    """
    if not isinstance(name, str) or not is_own(name):
        return choice(what, name, UNITS)
    if not _SPELLING.fullmatch(name):
        raise ValueError(f"{what} {name!r} is none of ours; a unit of your own is written my_module:MyUnit")
    return name


def folder_name(name: str) -> str:
    """A unit's name as it can stand in that of a folder, on every system.

    >>> folder_name("my_module:MyUnit")
    'my_module-MyUnit'
    """
    return name.replace(":", "-")


def trust(name: str) -> None:
    """Let the unit be imported, here and in processes that are started from here: the user has typed it."""
    module = name.partition(":")[0]
    if is_own(name) and module not in _trusted():
        os.environ[TRUSTED] = ",".join([*_trusted(), module])


def find(name: str) -> Any:
    """What the name stands for, imported from the current folder or from what is installed.

    Raises:
        ValueError: there is no such thing, or the user has not said that its module may be imported.
    """
    module, _, kind = check("unit", name).partition(":")
    if module not in sys.modules and module not in _trusted():
        raise ValueError(
            f"the unit {name} is not one of lrn's, and its module is imported only if you say so: "
            f"{TRUSTED}={module} before the command, or `import {module}` in Python"
        )
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that nothing in it takes another module's place
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise ValueError(
            f"unit {name}: there is no module {error.name}, neither in {here} nor among those installed"
        ) from None
    if not hasattr(found, kind):
        raise ValueError(f"unit {name}: {found.__name__} has no {kind}")
    return getattr(found, kind)


def _trusted() -> list[str]:
    return [module for module in os.environ.get(TRUSTED, "").split(",") if module]
