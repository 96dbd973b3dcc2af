"""Text cut into words as Moses does it, and words put back into text; by sacremoses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

ISO_639_3 = {
    "bg": "bul",
    "cs": "ces",
    "da": "dan",
    "de": "deu",
    "el": "ell",
    "en": "eng",
    "es": "spa",
    "et": "est",
    "fi": "fin",
    "fr": "fra",
    "hu": "hun",
    "it": "ita",
    "lt": "lit",
    "lv": "lav",
    "nl": "nld",
    "pl": "pol",
    "pt": "por",
    "ro": "ron",
    "ru": "rus",
    "sk": "slk",
    "sl": "slv",
    "sv": "swe",
    "tr": "tur",
}
"""Languages by their two letters, and the three letters by which some files go."""

_TWO_LETTERS = {three: two for two, three in ISO_639_3.items()}
HYPHENS = (" ##AT##-##AT## ", " @-@ ")  # between parts of a word that was cut at its hyphen


class Moses:
    """The words of a language.

    Args:
        language: its code; of one that Moses has no rules for, English abbreviations are taken to be its own.

    >>> moses = Moses("en")
    >>> moses.words("It's 5.30 p.m., isn't it?")
    ['It', "'s", '5.30', 'p.m.', ',', 'isn', "'t", 'it', '?']
    >>> moses.text(moses.words("It's late, isn't it?"))
    "It's late, isn't it?"
    """

    def __init__(self, language: str) -> None:
        self.language = _TWO_LETTERS.get(language, language)

    @cached_property
    def _tokenizer(self) -> Any:
        from sacremoses import MosesTokenizer

        return MosesTokenizer(self.language)

    @cached_property
    def _detokenizer(self) -> Any:
        from sacremoses import MosesDetokenizer

        return MosesDetokenizer(self.language)

    def words(self, text: str) -> list[str]:
        """Cut a text into words and marks."""
        found: list[str] = self._tokenizer.tokenize(text, escape=False)
        return found

    def text(self, words: Sequence[str], escaped: bool = False) -> str:
        """Put words back into text; with ``escaped`` some characters may be written as ``&apos;`` and so on.

        >>> Moses("de").text("Das &quot; E @-@ Book &quot; .".split(), escaped=True)
        'Das "E-Book".'
        """
        joined = " ".join(words)
        for hyphen in HYPHENS:
            joined = joined.replace(hyphen, "-")
        found: str = self._detokenizer.detokenize(joined.split(), unescape=escaped)
        return found
