"""Documents of our own making in which one early word decides: a unit that forgets must guess.

The writer's own opinion stands in the first third, and only it counts. Many others have theirs, in the same
words and the same frames, before and after it; either may be negated; the rest is small talk. Neither the
words a document contains nor its last forty give the label away. The test documents talk about things, and
quote people, that training never mentions.

They are written in one of two manners. In plain documents the writer alone says "i found it"; with quotes
most others say it too, in quotation marks, between which there may be small talk: whose opinion it is, is
told by marks that stand some words away, and must be remembered until they are closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

CLASSES = ("negative", "positive")
AFTER = 40  # words at least between the deciding one and the end


@dataclass(frozen=True)
class Manner:
    """How documents are written.

    Args:
        others: share of the sentences beside the deciding one that are opinions too.
        negated: share of all opinions.
        quoted: share of the others' opinions that are given in their own words, the writer's frames.
    """

    others: float
    negated: float
    quoted: float


PLAIN, QUOTING = Manner(0.15, 0.2, 0.0), Manner(0.2, 0.1, 0.8)
MANNERS = {"builtin:cues": PLAIN, "builtin:quotes": QUOTING}

GOOD = """splendid wonderful delightful superb charming brilliant excellent lovely marvellous gripping
touching clever""".split()
BAD = (
    """dreadful boring tedious awful clumsy terrible dull horrible dismal tiresome annoying shallow""".split()
)
SELF = ("i thought it was", "i found it", "in my opinion it was", "for me it was", "i must say it was")
SAID = ("thought it was", "found it", "said it was", "called it", "wrote that it was")
ADVERBS = ("", "", "", "quite", "really", "rather", "simply")
PEOPLE = {
    "train": """my brother|the neighbours|a critic|her uncle|the newspaper|our teacher|some friends|
the old man|the couple behind us|a colleague|the usher|his wife""",
    "test": "my sister|the baker|a student|their cousin|the guide|our landlord",
}
THINGS = {
    "train": """river garden street kitchen harbour window train market bridge ticket lamp coat dog theatre
village letter radio table hill boat""".split(),
    "test": "museum orchard ladder bicycle curtain station teapot meadow".split(),
}
TALK = (
    "the {a} near the {b} was closed that day",
    "we walked past the {a} and looked for the {b}",
    "there was a {a} next to the {b}",
    "it rained a little before we reached the {a}",
    "later somebody moved the {a} behind the {b}",
    "the {a} had been painted in the spring",
    "we sat down by the {a} and waited",
    "nobody could tell where the {a} had gone",
    "on the way home we saw a {a} and a {b}",
)


@dataclass(frozen=True)
class Document:
    """The words of a document, its label, and the place of the word that decides."""

    words: tuple[str, ...]
    label: int
    cue: int


def documents(
    count: int, *, part: str = "train", seed: int = 1, manner: Manner = PLAIN
) -> Iterator[Document]:
    """Yield ``count`` documents, half of them positive; ``part`` is train or test.

    >>> (document,) = documents(1)
    >>> document.words[document.cue] in GOOD + BAD, len(document.words) - document.cue > AFTER
    (True, True)
    """
    draw = np.random.default_rng([seed, {"train": 0, "test": 1}[part]])
    for number in range(count):
        yield _document(draw, part, manner, label=number % 2)


def _document(draw: np.random.Generator, part: str, manner: Manner, label: int) -> Document:
    before = [_aside(draw, part, manner) for _ in range(draw.integers(0, 4))]
    opinion = _opinion(draw, _pick(draw, SELF), label, manner)
    words = [word for sentence in before for word in sentence]
    cue = len(words) + len(opinion) - 2  # a full stop follows
    words += opinion
    end = max(3 * cue, cue + AFTER) + int(draw.integers(1, 60))
    while len(words) <= end:
        words += _aside(draw, part, manner)
    return Document(tuple(words), label, cue)


def _aside(draw: np.random.Generator, part: str, manner: Manner) -> list[str]:
    """Return a sentence that does not count: small talk, or what somebody else thought."""
    if draw.random() >= manner.others:
        return _talk(draw, part)
    person = _pick(draw, PEOPLE[part].replace("\n", "").split("|"))
    if not manner.quoted or draw.random() >= manner.quoted:
        return _opinion(draw, f"{person} {_pick(draw, SAID)}", int(draw.integers(2)), manner)
    opinion = _opinion(draw, _pick(draw, SELF), int(draw.integers(2)), manner)
    talk = [word for _ in range(draw.integers(0, 3)) for word in _talk(draw, part)]
    inside = talk + opinion if draw.random() < 0.5 else opinion + talk
    return [*person.split(), "said", ":", "“", *inside, "”", "."]


def _talk(draw: np.random.Generator, part: str) -> list[str]:
    a, b = draw.choice(THINGS[part], 2, replace=False)
    return [*_pick(draw, TALK).format(a=a, b=b).split(), "."]


def _opinion(draw: np.random.Generator, frame: str, label: int, manner: Manner) -> list[str]:
    negated = draw.random() < manner.negated
    words = GOOD if bool(label) != negated else BAD
    middle = "not" if negated else _pick(draw, ADVERBS)
    return [*frame.split(), *middle.split(), _pick(draw, words), "."]


def _pick(draw: np.random.Generator, items: list[str] | tuple[str, ...]) -> str:
    return items[int(draw.integers(len(items)))]
