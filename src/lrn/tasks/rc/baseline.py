"""Answers by overlap of words alone: what a reader must at least beat.

The sliding window of Richardson et al. (2013), as Rajpurkar et al. (2016) used it for SQuAD: an answer stands
in the sentence that has most words and pairs of words of the question; of what stands there, it is what has
most of the question's words around it, rare words counting more than frequent ones, and these near it.
Candidates were constituents of a parse there. Here they are what such constituents mostly are: names, numbers
with what they count, and runs of words between function words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

LONGEST = 5  # words of a candidate
STOP = frozenset(
    """
a an the this that these those some any each every no all both such his her its their our your my
he she it they we you i him them us me who whom whose which what when where why how
of in on at by for from to with without about into onto over under after before between during through against
until since as than like near within and or but nor so yet if because while whereas although though not
is are was were be been being am do does did done doing has have had having will would shall should can could
may might must 's ' there here also only just very more most much many other same
""".split()
)
QUESTION = frozenset("who whom whose which what when where why how many much".split())
NUMERIC = frozenset("when year years date day number percentage percent".split())
AMOUNTS = frozenset("many much large long high tall far old big".split())
NAMED = frozenset("who whom whose where which place city town country name".split())
ENDS = (".", "!", "?", ";")


def find_answer(paragraph: Sequence[str], question: Sequence[str], *, typed: bool = False) -> tuple[int, int]:
    """Return the places of the first and the last token of what overlap of words takes for the answer.

    With ``typed`` it does not go by overlap alone: names and numbers are preferred where they are asked for.

    >>> find_answer("The cat is from Rome . The dog is from Oslo .".split(), "Whence is the dog ?".split())
    (10, 10)
    """
    if not paragraph:
        raise ValueError("a paragraph has at least one word")
    words = [stem(token) for token in paragraph]
    asked = [stem(token) for token in question if is_word(token)]
    wanted = {word for word in asked if word not in QUESTION}
    content = {word for word in wanted if word not in STOP} or wanted
    counts = Counter(words)
    weights = [math.log(1 + 1 / counts[word]) if word in wanted else 0.0 for word in words]
    anchors = [place for place, word in enumerate(words) if word in content]
    kind = expected_kind(question) if typed else ""
    found = [
        (
            _kind(paragraph[first], content) == kind,
            overlap,
            _around(weights, first, last, len(asked)) - _distance(anchors, first, last, len(words)),
            -first,
            last,
        )
        for begin, end in sentences(paragraph)
        for overlap in [_overlap(words[begin:end], asked, wanted)]
        for first, last in candidates(paragraph[begin:end], content, begin)
    ]
    if not found:
        return 0, 0
    *_, first, last = max(found)
    return -first, last


def answer_text(
    text: str,
    spans: Sequence[tuple[int, int]],
    paragraph: Sequence[str],
    question: Sequence[str],
    *,
    typed: bool = False,
) -> str:
    """Return the answer as a piece of the text; ``spans`` says where each token begins and ends in it."""
    first, last = find_answer(paragraph, question, typed=typed)
    return text[spans[first][0] : spans[last][1]]


def expected_kind(question: Sequence[str]) -> str:
    """Return what a question asks for by its words: a name, a number, or nothing where they do not say.

    >>> expected_kind("In which year did it end ?".split()), expected_kind("Who was it ?".split())
    ('number', 'name')
    """
    words = {token.casefold() for token in question}
    if words & NUMERIC or ("how" in words and words & AMOUNTS):
        return "number"
    return "name" if words & NAMED else ""


def sentences(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins, and where the next does."""
    begin = 0
    for place, token in enumerate(tokens, 1):
        if token in ENDS or place == len(tokens):
            yield begin, place
            begin = place


def candidates(tokens: Sequence[str], content: set[str], offset: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each run of words which might be an answer.

    Runs end at function words, punctuation and words of the question; a name or a number in a longer run is
    a candidate of its own.
    """
    kinds = [_kind(token, content) for token in tokens]
    begin = 0
    for end in range(1, len(tokens) + 1):
        if end < len(tokens) and (kinds[end] == "") == (kinds[end - 1] == ""):
            continue
        if kinds[begin]:
            runs = {(begin, end)}
            cuts = [begin, *(n for n in range(begin + 1, end) if kinds[n] != kinds[n - 1]), end]
            runs.update((one, other) for one, other in pairwise(cuts) if kinds[one] != "word")
            # a number and what it counts
            runs.update((one, two + 1) for one, two in pairwise(cuts) if kinds[one] == "number" and two < end)
            for one, other in sorted(runs):
                if other - one <= LONGEST:
                    yield offset + one, offset + other - 1
        begin = end


def is_word(token: str) -> bool:
    return any(map(str.isalnum, token))


def stem(token: str) -> str:
    """Return a word without case and its commonest endings, so that forms of a word are one.

    >>> stem("Founded"), stem("founders"), stem("cities"), stem("is")
    ('found', 'founder', 'city', 'is')
    """
    word = token.casefold()
    if word in STOP or not word.isalpha():
        return word
    for ending, instead, least in (
        ("ies", "y", 5),
        ("ing", "", 6),
        ("ed", "", 5),
        ("es", "e", 5),
        ("s", "", 4),
    ):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word.removesuffix(ending) + instead
    return word


def _kind(token: str, content: set[str]) -> str:
    """Name, number or word; nothing for what no candidate has."""
    word = stem(token)
    if not is_word(token) or word in STOP or word in content:
        return ""
    if re.match(r"[\d$€£]", token):
        return "number"
    return "name" if token[0].isupper() else "word"


def _overlap(sentence: Sequence[str], asked: Sequence[str], wanted: set[str]) -> int:
    """Count the words, and the pairs of neighbours, that a sentence has in common with the question."""
    return len(wanted & set(sentence)) + len(set(pairwise(asked)) & set(pairwise(sentence)))


def _around(weights: Sequence[float], first: int, last: int, width: int) -> float:
    """Return the greatest sum of weights in a window with the candidate and as many words as the question."""
    size = width + last - first + 1
    begins = range(max(0, last - size + 1), first + 1)
    return max(sum(weights[begin : begin + size]) for begin in begins)


def _distance(anchors: Sequence[int], first: int, last: int, length: int) -> float:
    """Return how far the nearest word of the question is, as a share of the paragraph's length."""
    gaps = (first - place if place < first else place - last for place in anchors)
    return min(gaps, default=length) / length
