"""English text cut into words and punctuation by spaCy's rules, which need no trained model."""

from __future__ import annotations

from functools import cache
from typing import Any

from lrn.checks import install


def english_tokens(text: str) -> list[tuple[str, int]]:
    """Return the tokens of a text, each with the place of its first character.

    Blanks beyond the one between two words are tokens too, as spaCy has them.

    >>> english_tokens("It's  5 km.")
    [('It', 0), ("'s", 2), (' ', 5), ('5', 6), ('km', 8), ('.', 10)]
    """
    return [(token.text, token.idx) for token in _tokenizer()(text)]


@cache
def _tokenizer() -> Any:
    try:
        from spacy.lang.en import English
    except ModuleNotFoundError as error:
        package = (error.name or "spacy").partition(".")[0]
        raise ModuleNotFoundError(f"cutting texts needs {package}: {install('rc')}", name=package) from None
    return English().tokenizer
