"""What a task is asked, and which settings change its answers: the same for Python, the page and files.

A request is a text for each of a task's fields: a document, or a premise and a hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lrn.checks import choice, kind
from lrn.training.config import fits

Request = Sequence[str]
Answer = dict[str, Any]
"""What a model says, in plain texts and numbers that JSON has."""


@dataclass(frozen=True)
class Field:
    """A text of a request.

    Args:
        name: what it is called.
        most: characters that a page takes of it; `lrn predict` takes any number.
        lines: how tall its box is on a page.
        blank: whether there is an answer without a word in it.
    """

    name: str
    most: int
    lines: int = 2
    blank: bool = True


@dataclass(frozen=True)
class Slider:
    """The values that a page offers for a number among the settings, and the one to begin with.

    Args:
        label: what the page calls it.
        value: the first value.
        least: the smallest.
        most: the largest.
        step: from one value to the next.
    """

    label: str
    value: float
    least: float
    most: float
    step: float = 1


Settings = Mapping[str, Slider | None]
"""Settings of `lrn predict` that change an answer, by name, and how a page lets them be set, if it does."""


def checked(requests: Any, names: Sequence[Field]) -> list[Request]:
    """Requests as lists of texts, one for each field; a single text stands for a request of one field.

    >>> checked(["one", "two"], [Field("text", 100)])
    [['one'], ['two']]
    """
    wanted = "a text" if len(names) == 1 else " and ".join(f"a {field.name}" for field in names)
    if isinstance(requests, str | bytes) or not isinstance(requests, Sequence):
        given = f"the text {requests[:40]!r}" if isinstance(requests, str) else kind(requests)
        raise TypeError(f"expected a list, {wanted} for each entry, got {given}")
    found: list[Request] = []
    for number, request in enumerate(requests):
        texts = [request] if isinstance(request, str) else request
        good = isinstance(texts, list | tuple) and len(texts) == len(names)
        if not good or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"entry {number}: expected {wanted}, got {request!r:.60}")
        for field, text in zip(names, texts, strict=True):
            _check_text(text, f"entry {number}: the {field.name}")
            if not (field.blank or text.strip()):
                raise ValueError(f"entry {number}: the {field.name} is empty: there is nothing to read")
        found.append(list(texts))
    return found


def _check_text(text: str, what: str) -> None:
    """A half of a surrogate pair is no character, and no tokeniser takes it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} has half a character at {error.start}: {text[error.start]!r}") from None


def chosen(kind: type[Any], known: Settings, given: Mapping[str, Any]) -> Any:
    """The settings of a prediction with the ``given`` ones, which must be ``known`` and fit; ``details``
    is no setting, but allowed beside them."""
    defaults = {field.name: field.default for field in fields(kind)}
    for name, value in given.items():
        choice("option", name, ("details", *known))
        if not fits(value, defaults[name]):
            raise TypeError(f"{name} cannot be {value!r:.40}; it is {defaults[name]!r} by default")
    return kind(**given)
