"""Short articles of our own making, with questions that a few words of them answer.

An article tells the same kinds of facts of two or three people, contests, landmarks or firms: where, when,
who, how many. Whoever looks for the words of a question in the text is led astray:

- What is asked was said in other words, and each fact can be said and asked in several ways.
- A full name stands where its bearer comes up first, and facts follow it: of Becker, of her, of the latter.
- Facts of the same kind stand side by side, and others speak of a biographer, an archive or a rival in the
  very words of the questions. Some are said to be mistaken.
- A question may be about a name, or name its subject by another fact: "the poet who died in 1873".

Each question has one right answer. Validation and test combine what training never combines, though it has
all the words: first names with last names, and ways of saying a fact with ways of asking for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lrn.checks import choice
from lrn.tasks.rc.wordings import (
    BY_NAMES,
    BY_WHOM,
    CONTRASTS,
    CORRECTIONS,
    FIRMS,
    LAST,
    LISTS,
    MEN,
    MONTHS,
    ORDINALS,
    PLACES,
    TOPICS,
    WOMEN,
    Relation,
    Topic,
)
from lrn.training.config import PARTS

WORDS = (40, 90)  # of a paragraph, at least and at most
QUESTIONS = (3, 5)

# The sum of the places of two words, or of two wordings, in their lists, modulo GROUPS, belongs to one part.
GROUPS = 5
SHARES = {"train": (0, 1, 2), "valid": (3,), "test": (4,)}

BY_NAME = 0.25  # of the questions ask for a subject
BY_FACT = 0.2  # of the others name their subject by another fact
SHORT = 0.3  # of the questions name their subject by one word alone, as by the last name
MISTAKEN = 0.3  # of the facts that are told alone are followed by a wrong one
FILLED = 0.7  # of the articles end with a sentence on something else, and as many begin with one
LISTED = 0.6  # of the articles begin by naming their subjects
BESIDE = 0.5  # of the articles tell a fact of all subjects before they come to the next

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A question, the words that answer it, and the character of the paragraph at which they begin."""

    text: str
    answer: str
    start: int


@dataclass(frozen=True)
class Paragraph:
    """A text and questions about it."""

    text: str
    questions: tuple[Question, ...]


def paragraphs(count: int, *, part: str, seed: int) -> Iterator[Paragraph]:
    """Yield ``count`` paragraphs, each with three to five questions; ``part`` is train, valid or test.

    >>> paragraph = next(paragraphs(1, part="train", seed=1))
    >>> question = paragraph.questions[0]
    >>> paragraph.text[question.start :].startswith(question.answer)
    True
    """
    choice("part", part, PARTS)
    if count < 0:
        raise ValueError(f"count must be 0 or more, got {count}")
    draw = random.Random(f"{seed} {part}")
    return (_paragraph(draw, part) for _ in range(count))


def _paragraph(draw: random.Random, part: str) -> Paragraph:
    while True:
        article = _Article(draw, part)
        text = article.text
        if WORDS[0] <= len(text.split()) <= WORDS[1]:
            return Paragraph(text, article.questions())


def _pick(draw: random.Random, values: Sequence[T]) -> T:
    return values[draw.randrange(len(values))]


@dataclass(frozen=True)
class _Subject:
    """Whom or what facts are told of."""

    name: str  # without an article
    article: str
    short: str  # the name under which it comes up again
    pronouns: tuple[str, str, str]  # nominative, possessive, objective
    year: int = 0  # between those of a person's fame and death

    @property
    def full(self) -> str:
        return self.article + self.name


@dataclass(frozen=True)
class _Fact:
    """A fact, the wording in which it was told, and where it and its subject's name stand."""

    subject: _Subject
    relation: Relation
    wording: int
    value: str
    start: int
    named: int


class _Values:
    """Names, places, dates and numbers for an article, none of which comes up twice."""

    def __init__(self, draw: random.Random, part: str) -> None:
        self._draw, self._part = draw, part
        self._used: set[str] = set()

    def subject(self, topic: Topic) -> _Subject:
        if not topic.words:
            return self._person()
        name = self._two(*topic.words)
        if topic.words[1] is FIRMS:
            return _Subject(name, "", name.split()[0], ("it", "its", "it"))
        return _Subject(name, "the ", f"the {name.split()[1]}", ("it", "its", "it"))

    def value(self, kind: str, subject: _Subject | None = None) -> str:
        """A new value of a kind; of the early and the late years of a subject."""
        while True:
            value = self._value(kind, subject.year if subject else 0)
            if value not in self._used:
                self._used.add(value)
                return value

    def _value(self, kind: str, year: int) -> str:
        draw = self._draw
        if kind in ("early", "late"):
            return str(year + draw.randrange(20) * (1 if kind == "late" else -1))
        if kind == "place":
            return _pick(draw, PLACES)
        if kind == "year":
            return str(draw.randrange(1650, 1990))
        if kind == "date":
            return f"{draw.randrange(1, 29)} {_pick(draw, MONTHS)}"
        if kind == "height":
            return f"{draw.randrange(12, 300)} metres"
        if kind == "count":
            # none is a day of a month
            return f"{draw.randrange(32, 100) * 10 ** draw.randrange(3):,}"
        return self._person().full

    def _person(self) -> _Subject:
        woman = self._draw.random() < 0.5
        name = self._two(WOMEN if woman else MEN, LAST)
        pronouns = ("she", "her", "her") if woman else ("he", "his", "him")
        return _Subject(name, "", name.split()[1], pronouns, self._draw.randrange(1670, 1970))

    def _two(self, first: Sequence[str], second: Sequence[str]) -> str:
        """A name of two words which this part combines, neither of them in another name."""
        while True:
            one, other = self._draw.randrange(len(first)), self._draw.randrange(len(second))
            words = {first[one], second[other]}
            if (one + other) % GROUPS in SHARES[self._part] and not words & self._used:
                self._used |= words
                return f"{first[one]} {second[other]}"


class _Article:
    """An article that is being written."""

    def __init__(self, draw: random.Random, part: str) -> None:
        self._draw, self._part = draw, part
        self._pieces: list[str] = []
        self._length = 0
        self._begins = True  # whether a sentence does
        self._latest: dict[str, str] = {}  # who or what a pronoun stands for
        self._named: dict[str, int] = {}  # where a subject's full name stood last
        self.facts: list[_Fact] = []
        self.topic = _pick(draw, TOPICS)
        self.noun = _pick(draw, self.topic.nouns)
        self.values = _Values(draw, part)
        self._write()

    @property
    def text(self) -> str:
        return "".join(self._pieces).strip()

    # Writing

    def _write(self) -> None:
        draw = self._draw
        subjects = [self.values.subject(self.topic) for _ in range(2 + (draw.random() < 0.4))]
        relations = draw.sample(
            self.topic.relations, 2 + (draw.random() < (0.6 if len(subjects) < 3 else 0.2))
        )
        if draw.random() < FILLED:
            self._filler(self.topic.first)
        if draw.random() < LISTED:
            self._list(subjects)
        if draw.random() < BESIDE:
            self._side_by_side(subjects, relations)
        else:
            self._in_turn(subjects, relations)
        if draw.random() < FILLED:
            self._filler(self.topic.last)

    def _list(self, subjects: Sequence[_Subject]) -> None:
        before, behind = _pick(self._draw, LISTS).split("{}")
        self._put(before)
        for place, subject in enumerate(subjects):
            self._put("" if not place else " and " if place == len(subjects) - 1 else ", ")
            self._mention(subject, 0, subject.full)
        self._put(behind + " ")
        self._latest.clear()

    def _in_turn(self, subjects: Sequence[_Subject], relations: Sequence[Relation]) -> None:
        for subject in subjects:
            for relation in self._draw.sample(relations, len(relations)):
                self._tell(subject, relation)
                self._put(". ")
                if self._draw.random() < MISTAKEN:
                    wrong = self.values.value(relation.kind, subject)
                    self._put(_pick(self._draw, CORRECTIONS).format(wrong) + " ")
                    self._latest.clear()  # it may have been a person

    def _side_by_side(self, subjects: Sequence[_Subject], relations: Sequence[Relation]) -> None:
        """Tell a fact of all subjects in one sentence; two are the former and the latter from then on."""
        before: list[_Subject] = []
        for relation in relations:
            order = self._draw.sample(subjects, len(subjects))
            link = _pick(self._draw, CONTRASTS) if len(order) == 2 else ("", "; ")
            ordinals = dict(zip((who.name for who in before), ORDINALS, strict=True)) if before else {}
            for place, subject in enumerate(order):
                self._put(link[bool(place)])
                short = subject.name in self._named and self._draw.random() < 0.5
                name = subject.short if short else subject.full
                self._tell(subject, relation, ordinals.get(subject.name, name))
            self._put(". ")
            before = [] if before or len(order) > 2 or relation.kind == "person" else order

    def _tell(self, subject: _Subject, relation: Relation, name: str = "") -> None:
        """Write a clause; the name, if one is given, is used for the subject."""
        wording = self._draw.randrange(len(relation.clauses))
        value, start = self.values.value(relation.kind, subject), -1
        for piece in re.split(r"(\{.\})", relation.clauses[wording]):
            if piece == "{a}":
                start = self._length
                self._put(value)
            elif piece in ("{s}", "{p}", "{o}"):
                self._mention(subject, "spo".index(piece[1]), name)
                name = ""
            else:
                self._put(piece)
        if relation.kind == "person":
            self._latest.clear()
        fact = _Fact(subject, relation, wording, value, start, self._named[subject.name])
        self.facts.append(fact)

    def _mention(self, subject: _Subject, case: int, name: str) -> None:
        pronoun = subject.pronouns[case]
        if not name and self._latest.get(subject.pronouns[0]) == subject.name:
            self._put(pronoun)
            return
        name = name or (subject.short if subject.name in self._named else subject.full)
        if name.endswith(subject.name):
            self._named[subject.name] = self._length + len(name) - len(subject.name)
        self._latest[subject.pronouns[0]] = subject.name
        possessive = "" if case != 1 else "'" if name.endswith("s") else "'s"
        self._put(name + possessive)

    def _filler(self, sentences: Sequence[str]) -> None:
        sentence = _pick(self._draw, sentences)
        self._put(re.sub(r"\{(\w+)\}", lambda found: self.values.value(found[1]), sentence) + " ")
        self._latest.clear()

    def _put(self, piece: str) -> None:
        if not piece:
            return
        if self._begins:
            piece = piece[0].upper() + piece[1:]
        self._begins = piece.endswith(". ")
        self._pieces.append(piece)
        self._length += len(piece)

    # Asking

    def questions(self) -> tuple[Question, ...]:
        """Ask for some of the facts, each at most once."""
        count = min(self._draw.randint(*QUESTIONS), len(self.facts))
        return tuple(map(self._question, self._draw.sample(self.facts, count)))

    def _question(self, fact: _Fact) -> Question:
        draw, subject = self._draw, fact.subject
        if draw.random() < BY_NAME:
            forms = BY_NAMES if self.topic.words else BY_WHOM
            said = self._wording(fact, fact.relation.predicates).replace("{a}", fact.value)
            words = (self.noun, said) if self.topic.words else (said, self.noun)
            return Question(_pick(draw, forms).format(*words), subject.name, fact.named)
        known = [other for other in self.facts if other.subject == subject and other is not fact]
        if draw.random() < BY_FACT:
            other = _pick(draw, known)
            said = self._wording(other, other.relation.predicates).replace("{a}", other.value)
            name = f"the {self.noun} {'that' if self.topic.words else 'who'} {said}"
        else:
            name = subject.short if draw.random() < SHORT else subject.full
        asked = self._wording(fact, fact.relation.questions).replace("{s}", name)
        return Question(asked, fact.value, fact.start)

    def _wording(self, fact: _Fact, wordings: Sequence[str]) -> str:
        """One of the wordings that this part combines with that in which the fact was told."""
        return wordings[(_pick(self._draw, SHARES[self._part]) - fact.wording) % GROUPS]
