"""Text cut into words as the Penn Treebank does it, which is how SNLI's own words are cut."""

from __future__ import annotations

import re

_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_TOGETHER = {  # words that are written as one and are two
    "cannot": 3,
    "gonna": 3,
    "gotta": 3,
    "wanna": 3,
    "lemme": 3,
    "gimme": 3,
}
_ABBREVIATIONS = frozenset(
    "mr. mrs. ms. dr. prof. st. jr. sr. vs. etc. inc. ltd. co. corp. no. "
    "jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec. "
    "mt. ft. gen. sgt. capt. lt. rev. gov. sen.".split()
)
_TOKEN = re.compile(
    r"""
    \.{2,} | …                                      # dots in a row
  | -{2,}                                           # a dash
  | (?:[A-Za-z]\.){2,}                              # U.S.
  | \d[\d,.:/]*\d(?![\w-])                          # numbers, 9:30 and 1/2 among them
  | [^\W_](?:[\w&’'.@/-]*[\w@])?                    # words, with hyphens, slashes and apostrophes inside
  | \S                                              # whatever else, each by itself
    """,
    re.VERBOSE,
)
_CLITIC = re.compile(r"(?i)(n['’]t|['’](?:s|re|ve|ll|d|m))$")


def treebank_tokens(text: str) -> list[str]:
    """Split a text as the Penn Treebank does: clitics and punctuation apart, brackets and quotes by name.

    >>> treebank_tokens('The dog (it\\'s "Rex") can\\'t run.')
    ['The', 'dog', '-LRB-', 'it', "'s", '``', 'Rex', "''", '-RRB-', 'ca', "n't", 'run', '.']
    """
    tokens: list[str] = []
    open_quote = False
    pieces = _TOKEN.findall(text)
    for place, piece in enumerate(pieces):
        if piece in '"“”':
            open_quote = not open_quote if piece == '"' else piece == "“"
            tokens.append("``" if open_quote else "''")
        elif piece in _BRACKETS:
            tokens.append(_BRACKETS[piece])
        elif piece == "." and tokens and place + 1 < len(pieces) and _is_abbreviation(tokens[-1]):
            tokens[-1] += "."
        else:
            tokens += _word(piece)
    return tokens


def _is_abbreviation(word: str) -> bool:
    return f"{word.lower()}." in _ABBREVIATIONS or (len(word) == 1 and word.isupper())


def _word(word: str) -> list[str]:
    """The parts of a word: what is before a clitic, and the clitic."""
    cut = _TOGETHER.get(word.lower())
    if cut:
        return [word[:cut], word[cut:]]
    clitic = _CLITIC.search(word)
    if clitic and clitic.start():
        return [*_word(word[: clitic.start()]), clitic[0]]
    return [word]
