"""Text cut into words and punctuation as BERT does it before its word pieces, with case kept."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from itertools import chain
from unicodedata import category

# CJK ideographs in BERT's sense: such text has no blanks, so that each character is a token
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
# all of ASCII that is neither letter, digit nor blank, also what Unicode calls a symbol, like $ and +
ASCII_PUNCTUATION = ((33, 47), (58, 64), (91, 96), (123, 126))


def basic_tokens(text: str) -> list[str]:
    """Split a text at blanks, with every punctuation character and CJK ideograph a token of its own.

    Control and format characters are dropped, as is what stands for a damaged character (U+FFFD).

    >>> basic_tokens("Don't pay $9.50 for 東京!")
    ['Don', "'", 't', 'pay', '$', '9', '.', '50', 'for', '東', '京', '!']
    """
    token, dropped = _patterns()
    if not text.isprintable() or "\ufffd" in text:  # nothing that is dropped is printable but U+FFFD
        text = dropped.sub("", text)
    return token.findall(text)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of a token, and that of what is dropped before."""
    kinds: dict[str, list[int]] = {"blank": [], "alone": [], "dropped": [0xFFFD]}
    for code in range(sys.maxunicode + 1):
        kind = category(chr(code))
        if kind in ("Cc", "Cf") and chr(code) not in "\t\n\r":
            kinds["dropped"].append(code)
        elif chr(code).isspace():
            kinds["blank"].append(code)
        elif kind[0] == "P":
            kinds["alone"].append(code)
    for first, last in chain(IDEOGRAPHS, ASCII_PUNCTUATION):
        kinds["alone"].extend(range(first, last + 1))
    blank, alone, dropped = map(_ranges, kinds.values())
    # Letters and digits of ASCII first: to learn that a character is not in the big set takes long.
    word = f"[^{blank}{alone}]"
    return re.compile(rf"[0-9A-Za-z]+{word}*|{word}+|\S"), re.compile(f"[{dropped}]+")


def _ranges(codes: Iterable[int]) -> str:
    """Write these characters as the inside of a set in a regular expression.

    >>> _ranges([99, 97, 98, 120])
    '\\\\U00000061-\\\\U00000063\\\\U00000078-\\\\U00000078'
    """
    ranges: list[list[int]] = []
    for code in sorted(set(codes)):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
