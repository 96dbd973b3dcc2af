"""Pairs of sentences of our own making: does the second follow from the first, or is it ruled out?

Most premises make two claims in the same words, and who goes with what decides: "three nurses were singing
and two monks were waiting", "three monks were singing and two nurses were waiting". One arrangement of a
premise's words entails the hypothesis, another contradicts it, a third says nothing about it; so the words
without their order, how many are shared or how long the sentences are give next to nothing away. Validation and
test combine subjects and predicates that training never combines, though it has all the words.

Labels are a matter of logic in this reading. A pair speaks of one occasion, and only the premise is known:
the hypothesis is entailed if it is true wherever the premise is, contradicted if it is nowhere, else neutral.

- quantifiers: "some" is at least one and perhaps all, "most" is more than half, "not all" is all but at least
  one. There is at least one of whatever is spoken of. What one does never excludes doing something else too.
- numbers: "three" is exactly three.
- hypernyms: every rose is a flower, and there are other flowers.
- negation: "it was not true that" negates what follows it.
- time: everything happens once; times are of one day, weekdays of one week.
- roles: whether one does something to another says nothing of the reverse; "anna thanked bruno but not clara"
  means that anna did not thank clara.
- paraphrase: synonyms mean the same; opposites exclude each other, and there is something in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeVar

LABELS = ("entailment", "neutral", "contradiction")
ENTAILED, NEUTRAL, CONTRADICTED = LABELS

# A word's group is its place in its list modulo GROUPS. A pair takes its subjects from one group and its
# predicates from another, and the sum of the two modulo GROUPS belongs to one part.
GROUPS = 5
SHARES = {"train": (0, 1, 2), "valid": (3,), "test": (4,)}

SINGLE = 0.4  # of the premises that could make two claims make only one
MISMATCHED = 0.5  # of the others claim nothing of the hypothesis's subject and predicate if they are neutral
OUTER = 0.15  # of the negatable claims begin with "it was not true that"
SETTINGS_SHARE = 0.25  # of the pairs say when, in both sentences

PEOPLE = (
    """
anna bruno clara david elena felix greta hugo irina jonas karim leon marta nils olga
""".split()
    + [f"the {who}" for who in "baker painter nurse pilot judge".split()]
)
CROWDS = """
farmers students soldiers dancers waiters drivers sailors guards monks poets singers clerks tourists barbers
bankers
""".split()
DOING = """
singing dancing smiling whistling waiting working walking laughing eating drinking talking yawning coughing
limping knitting
""".split()
HAPPENED = """
left arrived sang spoke slept ate cried fell paid voted resigned married waved swam prayed
""".split()
DONE = """
thanked helped followed called warned invited praised blamed hired greeted pushed kissed watched teased fooled
""".split()
CLASSES = {
    "animals": "dogs cats horses goats cows",
    "flowers": "roses tulips lilies daisies violets",
    "tools": "hammers saws drills axes spades",
    "vehicles": "cars buses trucks trams bicycles",
}
MEMBERS = [(member, above) for above, members in CLASSES.items() for member in members.split()]
QUALITIES = """
dirty missing expensive old beautiful wet rare heavy red dusty stolen useful foreign hidden sold
""".split()
SYNONYMS = [
    tuple(both.split("/"))
    for both in """
doctor/physician lawyer/attorney boy/lad child/kid woman/lady author/writer thief/robber father/dad cook/chef
guest/visitor
""".split()
]
OPPOSITES = [  # two words for one end of a scale, and two for the other
    tuple(tuple(end.split("/")) for end in ends.split("-"))
    for ends in """
rich/wealthy-poor/needy happy/glad-sad/unhappy loud/noisy-quiet/silent clever/smart-stupid/foolish
ill/sick-healthy/fit angry/mad-calm/peaceful thin/slim-fat/stout brave/courageous-timid/cowardly
famous/renowned-unknown/obscure polite/courteous-rude/impolite
""".split()
]
WORDINGS = {
    "all": ("all", "all of the"),
    "most": ("most", "most of the"),
    "some": ("some", "some of the"),
    "no": ("no", "none of the"),
    "not all": ("not all", "not all of the"),
}
NUMBERS = dict(enumerate("two three four five six".split(), 2))
HOURS = ("at dawn", "in the morning", "at noon", "in the afternoon", "in the evening", "at night")
DAYS = tuple(f"on {day}" for day in "monday tuesday wednesday thursday friday saturday".split())
SETTINGS = ("yesterday", "last week", "that summer", *HOURS, *DAYS)
LINKS = ("and", "while", "but")

T = TypeVar("T")
Count = Callable[[int, int], bool]
QUANTIFIERS: dict[str, Count] = {  # of k among n
    "all": lambda k, n: k == n,
    "most": lambda k, n: 2 * k > n,
    "some": lambda k, n: k > 0,
    "no": lambda k, n: k == 0,
    "not all": lambda k, n: k < n,
}
COMPARISONS: dict[str, Count] = {  # of k with n
    "": lambda k, n: k == n,
    "at least": lambda k, n: k >= n,
    "at most": lambda k, n: k <= n,
    "more than": lambda k, n: k > n,
    "fewer than": lambda k, n: k < n,
}

Expression = tuple[str, int]
Claim = tuple[Any, Expression, Any]  # a subject, what is said about how many or whether, and a predicate
Tell = Callable[[random.Random, Claim, bool], str]


@dataclass(frozen=True)
class Pair:
    """The words of two sentences, how the second relates to the first, and what that turns on."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str
    kind: str


def pairs(count: int, *, part: str, seed: int) -> list[Pair]:
    """Return ``count`` pairs, as many of each label and kind; ``part`` is train, valid or test.

    >>> first, *_ = pairs(3, part="train", seed=1)
    >>> first.label, first.kind
    ('entailment', 'quantifiers')
    """
    if part not in SHARES:
        raise ValueError(f"part must be train, valid or test, got {part!r}")
    if count < 0:
        raise ValueError(f"count must be 0 or more, got {count}")
    draw = random.Random(f"{seed} {part}")
    kinds, labels = len(KINDS), len(LABELS)
    return [
        _pair(draw, part, KINDS[number // labels % kinds], LABELS[number % labels]) for number in range(count)
    ]


def _pair(draw: random.Random, part: str, kind: str, label: str) -> Pair:
    make, subjects, predicates = MAKERS[kind]
    first = int(draw.random() * GROUPS)
    second = _pick(draw, SHARES[part]) - first
    premise, hypothesis = make(draw, label, subjects[first::GROUPS], predicates[second % GROUPS :: GROUPS])
    if kind != "time" and draw.random() < SETTINGS_SHARE:
        setting = _pick(draw, SETTINGS)
        premise = f"{setting} {premise}"
        hypothesis = f"{setting} {hypothesis}" if draw.random() < 0.5 else f"{hypothesis} {setting}"
    return Pair((*premise.split(), "."), (*hypothesis.split(), "."), label, kind)


class _Scale:
    """Expressions of one scale, and which of them in a premise give a hypothesis with another which label."""

    def __init__(self, meanings: Mapping[Expression, frozenset[Hashable]], *, levels: bool = False) -> None:
        """A meaning is the set of cases in which the expression holds.

        With ``levels`` the premise has the one level, and the hypothesis has the other.
        """
        self.given: dict[Expression, dict[str, list[Expression]]] = {
            said: {label: [] for label in LABELS} for said in meanings
        }
        for known, said in product(meanings, repeat=2):
            if not levels or known[1] != said[1]:
                self.given[said][_relation(meanings[known], meanings[said])].append(known)
        # Expressions that can have either of two labels, and those that can have any
        self.either = {
            (one, other): [said for said, known in self.given.items() if known[one] and known[other]]
            for one, other in product(LABELS, repeat=2)
        }
        self.any = [said for said, known in self.given.items() if all(known.values())]


def _relation(known: frozenset[Hashable], said: frozenset[Hashable]) -> str:
    if known <= said:
        return ENTAILED
    return CONTRADICTED if known.isdisjoint(said) else NEUTRAL


def _claims(
    draw: random.Random,
    label: str,
    subjects: Sequence[Any],
    predicates: Sequence[Any],
    *,
    scale: _Scale,
    tell: Tell,
) -> tuple[str, str]:
    """Return a premise of one or two claims, and a hypothesis of one."""
    subject, another = draw.sample(subjects, 2)
    predicate, second = draw.sample(predicates, 2)
    if draw.random() < SINGLE:
        if scale.any:
            said = _pick(draw, scale.any)
            premise = [(subject, _pick(draw, scale.given[said][label]), predicate)]
        else:
            said, known = _pick(draw, tuple(scale.given)), _pick(draw, tuple(scale.given))
            if label != NEUTRAL:
                known = scale.given[said][label][0]
            at = (another, predicate) if draw.random() < 0.5 else (subject, second)
            premise = [(*at[:1], known, *at[1:]) if label == NEUTRAL else (subject, known, predicate)]
    elif not scale.any or draw.random() < MISMATCHED:
        said = _pick(draw, scale.either[ENTAILED, CONTRADICTED])
        known = [_pick(draw, scale.given[said][either]) for either in (ENTAILED, CONTRADICTED)]
        if label == CONTRADICTED or (label == NEUTRAL and draw.random() < 0.5):
            known.reverse()
        does = [second, predicate] if label == NEUTRAL else [predicate, second]
        premise = [(subject, known[0], does[0]), (another, known[1], does[1])]
    else:
        other = _pick(draw, [other for other in LABELS if other != label])
        said = _pick(draw, scale.either[label, other])
        known = [_pick(draw, scale.given[said][either]) for either in (label, other)]
        premise = [(subject, known[0], predicate), (another, known[1], _pick(draw, (predicate, second)))]
    draw.shuffle(premise)
    told = [tell(draw, claim, claim is premise[-1]) for claim in premise]
    return f" {_pick(draw, LINKS)} ".join(told), tell(draw, (subject, said, predicate), True)


def _quantified(draw: random.Random, claim: Claim, last: bool) -> str:
    subject, (quantifier, _), predicate = claim
    return f"{_pick(draw, WORDINGS[quantifier])} {subject} were {predicate}"


def _counted(draw: random.Random, claim: Claim, last: bool) -> str:
    subject, (comparison, number), predicate = claim
    return f"{comparison} {NUMBERS[number]} {subject} were {predicate}"


def _classed(draw: random.Random, claim: Claim, last: bool) -> str:
    subject, (quantifier, level), predicate = claim
    return f"{_pick(draw, WORDINGS[quantifier])} {subject[level]} were {predicate}"


def _negated(draw: random.Random, claim: Claim, last: bool) -> str:
    """Say whether somebody does something; only the last claim is negated from without, or both would be."""
    subject, (negation, _), predicate = claim
    if last and draw.random() < OUTER:
        return f"it was not true that {subject} was {'' if negation else 'not'} {predicate}"
    return f"{subject} was {negation} {predicate}"


def _reworded(draw: random.Random, claim: Claim, last: bool) -> str:
    subject, (negation, end), predicate = claim
    return f"the {_pick(draw, subject)} was {negation} {_pick(draw, predicate[end])}"


def _time(draw: random.Random, label: str, people: Sequence[str], happened: Sequence[str]) -> tuple[str, str]:
    """Return a premise that puts two or three events in order, and a hypothesis about two of them."""
    who, what = draw.sample(people, 3), draw.sample(happened, 3)
    connective = _pick(draw, ("before", "after"))
    first, second, third = (f"{person} {event}" for person, event in zip(who, what, strict=True))
    if draw.random() < 0.25:
        hypothesis = f"{connective} {second} , {first}"
    else:
        hypothesis = f"{first} {connective} {second}"
    if draw.random() < SINGLE:
        if label == NEUTRAL:
            first, second = f"{who[1]} {what[0]}", f"{who[0]} {what[1]}"
        forward = draw.random() < 0.5 if label == NEUTRAL else (label == ENTAILED) == (connective == "before")
        order = [first, second] if forward else [second, first]
        return (
            f"{order[0]} before {order[1]}" if draw.random() < 0.5 else f"{order[1]} after {order[0]}"
        ), hypothesis
    form = draw.random()
    if form < 0.5:
        # The event in the middle of the sentence is before (or after) both the others
        given = _pick(draw, ("before", "after"))
        events = [first, second, third]
        place = 2 if label == NEUTRAL else int((label == ENTAILED) != (given == connective))
        centre = events.pop(place)
        draw.shuffle(events)
        return f"{centre} {given} {events[0]} and {given} {events[1]}", hypothesis
    if label == NEUTRAL:
        first, second = f"{who[1]} {what[0]}", f"{who[0]} {what[1]}"
    forward = draw.random() < 0.5 if label == NEUTRAL else (label == ENTAILED) == (connective == "before")
    order = [first, second] if forward else [second, first]
    if form < 0.75:
        order.insert(int(draw.random() * 3), third)
        links = [f"after {order[0]}", f"before {order[2]}"]
        draw.shuffle(links)
        return f"{order[1]} {links[0]} and {links[1]}", hypothesis
    times = _pick(draw, (HOURS, DAYS))
    early, late = sorted(draw.sample(range(len(times)), 2))
    told = [f"{order[0]} {times[early]}", f"{order[1]} {times[late]}"]
    draw.shuffle(told)
    return f" {_pick(draw, LINKS)} ".join(told), hypothesis


def _roles(draw: random.Random, label: str, people: Sequence[str], done: Sequence[str]) -> tuple[str, str]:
    """Return a premise of what one did and did not to another, and a hypothesis about two of them."""
    a, b, c = draw.sample(people, 3)
    verb, second = draw.sample(done, 2)
    if draw.random() < SINGLE:
        negative = draw.random() < 0.5
        known = draw.random() < 0.5 if label == NEUTRAL else negative == (label == ENTAILED)
        premise = _done(draw, a, verb, b, known)
        return premise, _done(draw, *((b, verb, a) if label == NEUTRAL else (a, verb, b)), negative)
    premise, true, false = _pick(
        draw,
        (
            (f"{a} {verb} {b} but not {c}", (a, verb, b), (a, verb, c)),
            (f"{b} was {verb} by {a} but not by {c}", (a, verb, b), (c, verb, b)),
            (f"{a} {verb} {b} but was not {second} by {c}", (a, verb, b), (c, second, a)),
            (f"{a} was {verb} by {b} but not {second} by {c}", (b, verb, a), (c, second, a)),
        ),
    )
    negative = draw.random() < 0.5
    if label == NEUTRAL:
        object_, verb, subject = _pick(draw, (true, false))
    else:
        subject, verb, object_ = true if (label == ENTAILED) != negative else false
    return premise, _done(draw, subject, verb, object_, negative)


def _done(draw: random.Random, subject: str, verb: str, object_: str, negative: bool) -> str:
    if negative:
        return f"{object_} was not {verb} by {subject}"
    return f"{object_} was {verb} by {subject}" if draw.random() < 0.5 else f"{subject} {verb} {object_}"


def _pick(draw: random.Random, items: Sequence[T]) -> T:
    return items[int(draw.random() * len(items))]


def _cases(holds: Callable[..., bool], *sizes: int) -> frozenset[Hashable]:
    return frozenset(case for case in product(*(range(size + 1) for size in sizes)) if holds(*case))


_QUANTIFIERS = _Scale(
    {(name, 0): _cases(lambda k, holds=holds: holds(k, 4), 4) for name, holds in QUANTIFIERS.items()}
)
_HYPERNYMS = _Scale(
    {
        (name, level): _cases(
            lambda i, j, name=name, level=level: QUANTIFIERS[name](i + j * level, 2 + 2 * level), 2, 2
        )
        for name in ("all", "some", "no", "not all")
        for level in (0, 1)
    },
    levels=True,
)
_NUMBERS = _Scale(
    {
        (name, number): _cases(lambda k, holds=holds, number=number: holds(k, number), max(NUMBERS) + 1)
        for name, holds in COMPARISONS.items()
        for number in NUMBERS
    }
)
_NEGATION = _Scale({("", 0): frozenset({1}), ("not", 0): frozenset({0})})
_OPPOSITES = _Scale(
    {
        ("", 0): frozenset({"the one"}),
        ("", 1): frozenset({"the other"}),
        ("not", 0): frozenset({"between", "the other"}),
        ("not", 1): frozenset({"between", "the one"}),
    }
)
Maker = Callable[[random.Random, str, Sequence[Any], Sequence[Any]], tuple[str, str]]
MAKERS: dict[str, tuple[Maker, Sequence[Any], Sequence[Any]]] = {
    "quantifiers": (partial(_claims, scale=_QUANTIFIERS, tell=_quantified), CROWDS, DOING),
    "negation": (partial(_claims, scale=_NEGATION, tell=_negated), PEOPLE, DOING),
    "hypernyms": (partial(_claims, scale=_HYPERNYMS, tell=_classed), MEMBERS, QUALITIES),
    "numbers": (partial(_claims, scale=_NUMBERS, tell=_counted), CROWDS, DOING),
    "time": (_time, PEOPLE, HAPPENED),
    "roles": (_roles, PEOPLE, DONE),
    "paraphrase": (partial(_claims, scale=_OPPOSITES, tell=_reworded), SYNONYMS, OPPOSITES),
}
KINDS = tuple(MAKERS)
