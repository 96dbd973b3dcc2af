"""What is wrong with the arguments of a constructor, in the name of the class that was called."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, ParamSpec

from lrn.checks import nearest

P = ParamSpec("P")


def named(init: Callable[P, None]) -> Callable[P, None]:
    """An ``__init__`` whose errors about its own arguments name the class of what is made, not that in which
    it stands, and say what is allowed.

    >>> class Base:
    ...     @named
    ...     def __init__(self, size): ...
    >>> class Below(Base): ...
    >>> Below(sise=3)
    Traceback (most recent call last):
    TypeError: Below has no argument 'sise'; allowed: size; did you mean 'size'?
    """

    @functools.wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            init(*args, **kwargs)
        except TypeError:
            _check(type(args[0]).__name__, init, args, kwargs)
            raise

    return checked


def _check(name: str, init: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    signature = inspect.signature(init)
    allowed = [*signature.parameters][1:]
    unknown = [given for given in kwargs if given not in allowed]
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    if unknown and not any_name:
        hint = nearest(unknown[0], allowed)
        said = f"{name} has no argument {unknown[0]!r}; allowed: {', '.join(allowed)}{hint}"
        raise TypeError(said) from None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def outside() -> int:
    """The ``stacklevel`` that lets a warning of the function which asks point at whoever called lrn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lrn."):
        frame, level = frame.f_back, level + 1
    return level
