"""Pairs of sentences of our own making: does the second follow from the first, or is it ruled out?

Single words give little away. What is said in premise and hypothesis is weighed so that neither alone tells
the label, and mostly put in different words. Where a premise makes two claims, who goes with what decides:
"three boys were singing and two girls were dancing" or "three girls were singing and two boys were dancing".
One arrangement of its words entails the hypothesis, another contradicts it, a third says nothing about it.
Subjects and predicates come two by two, boys with girls and singing with dancing. Validation and test combine
those that training never combines, though it has all the words.

Labels are a matter of logic in this reading. A pair speaks of one occasion, and only the premise is known:
the hypothesis is entailed if it is true wherever the premise is, contradicted if it is nowhere, else neutral.

- quantifiers: "some" is at least one and perhaps all, "most" is more than half, "not all" is all but at least
  one. There is at least one of whatever is spoken of.
- negation: doing one thing does not exclude doing another; "or" does not exclude both; "it was false that"
  negates what follows it.
- hypernyms: every rose is a flower, and there are other flowers.
- numbers: "three" is exactly three.
- time: everything happens once, on a day of the same week.
- roles: what one does to another says nothing of the reverse, nor of anything else they do.
- paraphrase: synonyms mean the same; opposites exclude each other, and there is something in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from typing import Any, TypeVar

LABELS = ("entailment", "neutral", "contradiction")
ENTAILED, NEUTRAL, CONTRADICTED = LABELS

# The group of two subjects or predicates is their place in their list modulo GROUPS; the sum of the groups of
# subjects and predicates, modulo GROUPS again, belongs to one part.
GROUPS = 5
SHARES = {"train": (0, 1, 2), "valid": (3,), "test": (4,)}

CONNECTED = 0.5  # of the pairs about negation are about what one person does, and the others about two
SINGLE = 0.8  # of the premises make one claim
MISMATCHED = 0.5  # of the others are neutral, if they are, because who does what is not what is asked
REWORDED = 0.3  # of the claims that follow another are in other words
DATED = 0.6  # of the pairs about time are about the day, and the others about the order, of what happened
SET = 0.25  # of the pairs say when, in both sentences


def _twos(text: str) -> list[tuple[str, ...]]:
    return [tuple(both.replace("_", " ").split("/")) for both in text.split()]


PEOPLE = _twos("""
anna/bruno clara/david elena/felix greta/hugo irina/jonas karla/leon marta/nils the_king/the_queen
the_baker/the_nurse the_judge/the_thief
""")
CROWDS = _twos("""
boys/girls monks/nuns waiters/guests doctors/patients farmers/shepherds soldiers/sailors teachers/students
buyers/sellers hunters/fishermen painters/dancers
""")
DOING = _twos("""
singing/dancing eating/drinking laughing/sweating talking/listening walking/whistling working/waiting
smiling/nodding coughing/sneezing knitting/humming yawning/limping
""")
HAPPENED = _twos("""
ate/slept sang/danced spoke/wept paid/voted swam/rested fell/shouted resigned/married knelt/prayed waved/bowed
left/returned
""")
DONE = _twos("""
thanked/blamed helped/warned pushed/pulled praised/insulted called/visited followed/watched hugged/kissed
hired/trusted greeted/teased fed/washed
""")
QUALITIES = _twos("""
dirty/old wet/heavy missing/expensive red/dusty rare/beautiful stolen/useful foreign/hidden sold/damaged
warm/tiny popular/imported
""")
CLASSES = _twos("animals/flowers tools/vehicles")
MEMBERS = _twos("""
dogs/roses cats/tulips horses/lilies goats/daisies cows/violets
hammers/cars saws/buses drills/trucks axes/trams spades/bicycles
""")
CLASSED = [tuple(zip(members, CLASSES[place // 5], strict=True)) for place, members in enumerate(MEMBERS)]
SYNONYMS = _twos("""
doctor/physician lawyer/attorney boy/lad woman/lady child/kid author/writer cook/chef guest/visitor
thief/robber policeman/cop father/dad mother/mum sailor/seaman student/pupil tramp/vagabond friend/pal
manager/boss fireman/firefighter teacher/instructor salesman/seller
""")
SAME = list(zip(SYNONYMS[::2], SYNONYMS[1::2], strict=True))
SCALES = _twos("""
rich/wealthy/poor/needy happy/glad/sad/unhappy loud/noisy/quiet/silent clever/smart/stupid/foolish
ill/sick/healthy/fit angry/mad/calm/peaceful thin/slim/fat/stout brave/courageous/timid/cowardly
famous/renowned/unknown/obscure polite/courteous/rude/impolite
""")  # two words for one end, and two for the other
OPPOSITES = list(zip(SCALES[::2], SCALES[1::2], strict=True))
WORDINGS = {
    "all": ("all {} were", "each of the {} was"),
    "most": ("most {} were", "more than half of the {} were"),
    "some": ("some {} were", "at least one of the {} was"),
    "no": ("no {} were", "none of the {} were"),
    "not all": ("not all {} were", "not each of the {} was"),
}
NUMBERS = dict(enumerate("two three four five six".split(), 2))
DAYS = "monday tuesday wednesday thursday friday saturday".split()
WHEN = ("yesterday", "last week", "that summer", "in the morning", "at noon", "at night", "on sunday")
LINKS = ("and", "while", "but")

T = TypeVar("T")
Count = Callable[[int, int], bool]
QUANTIFIERS: dict[str, Count] = {  # k of n
    "all": lambda k, n: k == n,
    "most": lambda k, n: 2 * k > n,
    "some": lambda k, n: k > 0,
    "no": lambda k, n: k == 0,
    "not all": lambda k, n: k < n,
}
COMPARISONS: dict[str, Count] = {
    "": lambda k, n: k == n,
    "at least": lambda k, n: k >= n,
    "at most": lambda k, n: k <= n,
    "more than": lambda k, n: k > n,
    "fewer than": lambda k, n: k < n,
}
RELATIONS: dict[str, Count] = {
    "on": lambda day, n: day == n,
    "before": lambda day, n: day < n,
    "after": lambda day, n: day > n,
}
CONNECTIVES: dict[str, Count] = {  # of the one and the other
    "{0}": lambda one, other: one == 1,
    "not {0}": lambda one, other: one == 0,
    "{0} and {1}": lambda one, other: one + other == 2,
    "{0} or {1}": lambda one, other: one + other > 0,
    "{0} but not {1}": lambda one, other: one > other,
    "neither {0} nor {1}": lambda one, other: one + other == 0,
}

Expression = tuple[str, int]
Both = tuple[Expression, Expression]  # of a premise and of its hypothesis
Claim = tuple[Any, Expression, Any]  # a subject; how many, whether or when; a predicate
Tell = Callable[[Claim, int], str]  # a claim and which wording to put it in


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
    return [_pair(draw, part, *_ORDER[number % len(_ORDER)]) for number in range(count)]


def _pair(draw: random.Random, part: str, kind: str, label: str) -> Pair:
    make, subjects, predicates = MAKERS[kind]
    group = int(draw.random() * GROUPS)
    two_subjects = _pick(draw, subjects[group::GROUPS])
    two_predicates = _pick(draw, predicates[(_pick(draw, SHARES[part]) - group) % GROUPS :: GROUPS])
    premise, hypothesis = make(
        draw, label, _either_way(draw, two_subjects), _either_way(draw, two_predicates)
    )
    if kind != "time" and draw.random() < SET:
        when = _pick(draw, WHEN)
        premise = f"{when} {premise}"
        hypothesis = f"{when} {hypothesis}" if draw.random() < 0.5 else f"{hypothesis} {when}"
    return Pair((*premise.split(), "."), (*hypothesis.split(), "."), label, kind)


class _Scale:
    """Expressions of one scale, and which of them in a premise give one in a hypothesis which label."""

    def __init__(
        self,
        meanings: Mapping[Expression, frozenset[Hashable]],
        *,
        fits: Callable[[Expression, Expression], bool] = lambda known, said: True,
    ) -> None:
        """A meaning is the set of cases in which the expression holds.

        Only what ``fits`` takes may stand in premise and hypothesis.
        """
        self.given: dict[Expression, dict[str, list[Expression]]] = {
            said: {label: [] for label in LABELS} for said in meanings
        }
        for known, said in product(meanings, repeat=2):
            if fits(known, said):
                self.given[said][_relation(meanings[known], meanings[said])].append(known)
        # Expressions that can have either of two labels, and those that can have any
        self.either = {
            (one, other): [said for said, known in self.given.items() if known[one] and known[other]]
            for one, other in product(LABELS, repeat=2)
        }
        self.any = [said for said, known in self.given.items() if all(known.values())]
        self.balanced = {label: _cumulated(cells) for label, cells in self._balance().items()}

    def _balance(self) -> dict[str, dict[Both, float]]:
        """Weigh what premise and hypothesis of one claim say so that neither alone tells the label.

        By proportional fitting an expression gets, as far as logic allows, the same weight with all labels.
        """
        weights = {
            label: {(known, said): 1.0 for said, given in self.given.items() for known in given[label]}
            for label in LABELS
        }
        for _, side in product(range(20), (0, 1)):
            sums = {label: _summed(cells, side) for label, cells in weights.items()}
            for label, cells in weights.items():
                for both in cells:
                    mean = sum(sums[other].get(both[side], 0.0) for other in LABELS) / len(LABELS)
                    cells[both] *= mean / sums[label][both[side]]
        return weights


def _summed(cells: Mapping[Both, float], side: int) -> dict[Expression, float]:
    """Return the sums of normalised weights by what is said on one side."""
    sums: dict[Expression, float] = {}
    total = sum(cells.values())
    for both, weight in cells.items():
        sums[both[side]] = sums.get(both[side], 0.0) + weight / total
    return sums


def _cumulated(cells: Mapping[Both, float]) -> tuple[list[Both], list[float]]:
    return list(cells), list(accumulate(cells.values()))


def _relation(known: frozenset[Hashable], said: frozenset[Hashable]) -> str:
    if known <= said:
        return ENTAILED
    return CONTRADICTED if known.isdisjoint(said) else NEUTRAL


def _claims(
    draw: random.Random,
    label: str,
    subjects: Sequence[Any],
    predicates: Sequence[Any],
    scale: _Scale,
    tell: Tell,
) -> tuple[str, str]:
    """Return a premise of one or two claims, and a hypothesis about the first subject and predicate."""
    if scale.any and draw.random() < SINGLE:
        return _one_claim(draw, label, subjects[0], predicates[0], scale, tell)
    if not scale.any or draw.random() < MISMATCHED:
        # The same words for all labels: what entails and what contradicts go with the one and the other
        first, second = ENTAILED, CONTRADICTED
        does = predicates[::-1] if label == NEUTRAL else predicates
    else:
        first = label
        second = _pick(draw, [other for other in LABELS if other != label])
        does = (predicates[0], _pick(draw, predicates))
    said = _pick(draw, scale.either[first, second])
    known = [_pick(draw, scale.given[said][first]), _pick(draw, scale.given[said][second])]
    if first != label and (label == CONTRADICTED or draw.random() < 0.5):
        known.reverse()
    first_claim, second_claim = _either_way(draw, list(zip(subjects, known, does, strict=True)))
    premise = f"{tell(first_claim, 0)} {_pick(draw, LINKS)} {tell(second_claim, _wording(draw))}"
    return premise, tell((subjects[0], said, predicates[0]), _wording(draw))


def _wording(draw: random.Random) -> int:
    return int(draw.random() < REWORDED)


def _one_claim(
    draw: random.Random, label: str, subject: Any, predicate: Any, scale: _Scale, tell: Tell
) -> tuple[str, str]:
    """Return a premise and a hypothesis of one claim each, in different words."""
    expressions, weights = scale.balanced[label]
    ((known, said),) = draw.choices(expressions, cum_weights=weights)
    wording = int(draw.random() < 0.5)
    return tell((subject, known, predicate), wording), tell((subject, said, predicate), 1 - wording)


def _quantified(claim: Claim, wording: int) -> str:
    subject, (quantifier, _), predicate = claim
    return f"{WORDINGS[quantifier][wording].format(subject)} {predicate}"


def _classed(claim: Claim, wording: int) -> str:
    subject, (quantifier, level), predicate = claim
    return f"{WORDINGS[quantifier][wording].format(subject[level])} {predicate}"


def _counted(claim: Claim, wording: int) -> str:
    subject, (comparison, number), predicate = claim
    return f"{comparison} {NUMBERS[number]} {subject} were {predicate}"


def _dated(claim: Claim, wording: int) -> str:
    subject, (relation, day), predicate = claim
    return f"{subject} {predicate} {relation} {DAYS[day]}"


def _reworded(claim: Claim, wording: int) -> str:
    subject, (negation, end), predicate = claim
    return f"the {subject[wording]} was {negation} {predicate[2 * end + wording]}"


def _connected(claim: Claim, wording: int) -> str:
    subject, (connective, first), predicates = claim
    return f"{subject} was {connective.format(predicates[first], predicates[1 - first])}"


def _negated(claim: Claim, wording: int) -> str:
    """Say whether somebody does something; in wording 1 a second claim would be negated along with it."""
    subject, (negation, _), predicate = claim
    if wording:
        return f"it was false that {subject} was {'' if negation else 'not'} {predicate}"
    return f"{subject} was {negation} {predicate}"


def _negation(
    draw: random.Random, label: str, people: Sequence[str], doing: Sequence[str]
) -> tuple[str, str]:
    if draw.random() < CONNECTED:
        return _one_claim(draw, label, people[0], doing, _CONNECTIVES, _connected)
    return _claims(draw, label, people, doing, _NEGATION, _negated)


def _time(draw: random.Random, label: str, people: Sequence[str], happened: Sequence[str]) -> tuple[str, str]:
    """Return sentences about the day of one or two events, or about the order of two."""
    if draw.random() < DATED:
        return _claims(draw, label, people, happened, _DAYS, _dated)
    connective = _pick(draw, ("before", "after"))
    hypothesis = f"{people[0]} {happened[0]} {connective} {people[1]} {happened[1]}"
    if label == NEUTRAL:  # each of the two did what the other does in the hypothesis
        happened = happened[::-1]
    events = [f"{who} {what}" for who, what in zip(people, happened, strict=True)]  # from early to late
    backward = draw.random() < 0.5 if label == NEUTRAL else (label == ENTAILED) != (connective == "before")
    if backward:
        events.reverse()
    if draw.random() < SINGLE:
        forward = draw.random() < 0.5
        return f" {'before' if forward else 'after'} ".join(events if forward else events[::-1]), hypothesis
    days = sorted(draw.sample(range(len(DAYS)), 2))
    told = [f"{event} on {DAYS[day]}" for event, day in zip(events, days, strict=True)]
    return f" {_pick(draw, LINKS)} ".join(_either_way(draw, told)), hypothesis


def _roles(draw: random.Random, label: str, people: Sequence[str], done: Sequence[str]) -> tuple[str, str]:
    """Return a premise of what one did and did not do to another, and a hypothesis about one of the two."""
    (a, b), (verb, second) = people, done
    negative = draw.random() < 0.5
    if draw.random() < SINGLE:
        who, whom = (b, a) if label == NEUTRAL else (a, b)
        known = draw.random() < 0.5 if label == NEUTRAL else (label == ENTAILED) == negative
        return _done(draw, a, verb, b, known), _done(draw, who, verb, whom, negative)
    premise, true, false = _pick(
        draw,
        (
            (f"{a} {verb} {b} but was not {second} by {b}", (a, verb, b), (b, second, a)),
            (f"{a} {verb} {b} but {b} was not {second} by {a}", (a, verb, b), (a, second, b)),
            (f"{b} was {verb} but not {second} by {a}", (a, verb, b), (a, second, b)),
        ),
    )
    if label == NEUTRAL:
        whom, what, who = _pick(draw, (true, false))
    else:
        who, what, whom = true if (label == ENTAILED) != negative else false
    return premise, _done(draw, who, what, whom, negative)


def _done(draw: random.Random, who: str, what: str, whom: str, negative: bool) -> str:
    if negative:
        return f"{whom} was not {what} by {who}"
    return f"{whom} was {what} by {who}" if draw.random() < 0.5 else f"{who} {what} {whom}"


def _pick(draw: random.Random, items: Sequence[T]) -> T:
    return items[int(draw.random() * len(items))]


def _either_way(draw: random.Random, two: Sequence[T]) -> Sequence[T]:
    return two if draw.random() < 0.5 else two[::-1]


_QUANTIFIERS = _Scale(
    {(name, 0): frozenset(k for k in range(5) if holds(k, 4)) for name, holds in QUANTIFIERS.items()}
)
_NEGATION = _Scale({("", 0): frozenset({True}), ("not", 0): frozenset({False})})
_CONNECTIVES = _Scale(
    {
        (name, first): frozenset(
            does for does in product((0, 1), repeat=2) if holds(does[first], does[1 - first])
        )
        for (name, holds), first in product(CONNECTIVES.items(), (0, 1))
    },
    fits=lambda known, said: "{1}" in known[0] and "{1}" not in said[0],
)
_HYPERNYMS = _Scale(  # i of two roses and j of two other flowers
    {
        (name, level): frozenset(
            (i, j) for i, j in product(range(3), repeat=2) if QUANTIFIERS[name](i + j * level, 2 + 2 * level)
        )
        for name, level in product(("all", "some", "no", "not all"), (0, 1))
    },
    fits=lambda known, said: known[1] != said[1],
)
_NUMBERS = _Scale(
    {
        (name, number): frozenset(k for k in range(max(NUMBERS) + 2) if holds(k, number))
        for (name, holds), number in product(COMPARISONS.items(), NUMBERS)
    }
)
_DAYS = _Scale(  # the seventh is sunday; nothing is before monday
    {
        (name, day): frozenset(k for k in range(7) if holds(k, day))
        for (name, holds), day in product(RELATIONS.items(), range(len(DAYS)))
        if (name, day) != ("before", 0)
    }
)
_ENDS = _Scale(
    {
        ("", 0): frozenset({"one end"}),
        ("", 1): frozenset({"other end"}),
        ("not", 0): frozenset({"between", "other end"}),
        ("not", 1): frozenset({"between", "one end"}),
    }
)
Maker = Callable[[random.Random, str, Sequence[Any], Sequence[Any]], tuple[str, str]]
MAKERS: dict[str, tuple[Maker, Sequence[Any], Sequence[Any]]] = {
    "quantifiers": (partial(_claims, scale=_QUANTIFIERS, tell=_quantified), CROWDS, DOING),
    "negation": (_negation, PEOPLE, DOING),
    "hypernyms": (partial(_claims, scale=_HYPERNYMS, tell=_classed), CLASSED, QUALITIES),
    "numbers": (partial(_claims, scale=_NUMBERS, tell=_counted), CROWDS, DOING),
    "time": (_time, PEOPLE, HAPPENED),
    "roles": (_roles, PEOPLE, DONE),
    "paraphrase": (partial(_claims, scale=_ENDS, tell=_reworded), SAME, OPPOSITES),
}
KINDS = tuple(MAKERS)
_ORDER = tuple(product(KINDS, LABELS))
