"""Exact match and F1 of answers, as SQuAD v1.1's official script defines them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DROPPED = str.maketrans("", "", string.punctuation)

ASKED = ("what", "who", "whose", "whom", "when", "where", "which", "why", "how")
LENGTHS = {1: "1 word", 2: "2 words", 4: "3 to 4 words", 8: "5 to 8 words"}
LONGER = "9 words or more"


def normalise(answer: str) -> str:
    """An answer as it is compared: in lower case, without punctuation, articles and more than one blank.

    >>> normalise("The  U.S. Congress")
    'us congress'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_DROPPED)).split())


def exact(answer: str, gold: str) -> float:
    """1 if two answers are the same, else 0."""
    return float(normalise(answer) == normalise(gold))


def overlap(answer: str, gold: str) -> float:
    """F1 of the words of an answer against those of the right one; words count as often as they occur.

    >>> round(overlap("in late 1887", "late in 1887 or so"), 4)
    0.75
    """
    mine, right = normalise(answer).split(), normalise(gold).split()
    same = sum((Counter(mine) & Counter(right)).values())
    return 2 * same / (len(mine) + len(right)) if same else 0.0


def best(measure: Callable[[str, str], float], answer: str, golds: Iterable[str]) -> float:
    """The measure of an answer against the one of all right answers that it is nearest to."""
    return max((measure(answer, gold) for gold in golds), default=0.0)


@dataclass(frozen=True)
class Scored:
    """A question that was answered, with its measures from 0 to 1; nothing where no answer was given."""

    question: str
    golds: tuple[str, ...]
    exact: float = 0.0
    f1: float = 0.0

    @classmethod
    def of(cls, question: str, golds: tuple[str, ...], answer: str) -> Scored:
        """Measure an answer."""
        return cls(question, golds, best(exact, answer, golds), best(overlap, answer, golds))


def figures(scored: Sequence[Scored]) -> dict[str, float]:
    """Exact match and F1 in percent."""
    count = len(scored) or 1
    return {
        "f1": 100 * sum(one.f1 for one in scored) / count,
        "exact": 100 * sum(one.exact for one in scored) / count,
    }


def by(
    scored: Sequence[Scored], kind: Callable[[Scored], str], order: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The figures of each kind of question, in the order given, with how many there are."""
    kinds: dict[str, list[Scored]] = {}
    for one in scored:
        kinds.setdefault(kind(one), []).append(one)
    return {
        name: {**{what: round(value, 2) for what, value in figures(group).items()}, "questions": len(group)}
        for name in order
        if (group := kinds.get(name))
    }


def question_word(one: Scored) -> str:
    """The first word of a question that says what is asked; "how many" is one of them.

    >>> question_word(Scored("In which year?", ())), question_word(Scored("How many were there?", ()))
    ('which', 'how many')
    """
    words: list[str] = re.findall(r"\w+", one.question.lower())
    for number, word in enumerate(words):
        if word == "how" and words[number + 1 : number + 2] in (["many"], ["much"]):
            return f"how {words[number + 1]}"
        if word in ASKED:
            return word
    return "other"


QUESTION_WORDS = (*ASKED, "how many", "how much", "other")


def answer_length(one: Scored) -> str:
    """How many words the shortest right answer has, in classes."""
    words = min((len(gold.split()) for gold in one.golds), default=0)
    return next((name for most, name in LENGTHS.items() if words <= most), LONGER)


ANSWER_LENGTHS = (*LENGTHS.values(), LONGER)


def details(scored: Sequence[Scored]) -> dict[str, dict[str, float]]:
    """The figures by question word, and by length of the answer."""
    return by(scored, question_word, QUESTION_WORDS) | by(scored, answer_length, ANSWER_LENGTHS)
