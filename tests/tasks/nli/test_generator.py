"""Made pairs: labels that follow from what is said, and that nothing else gives away."""

import re
import zlib
from collections import Counter
from itertools import product

import pytest
import torch
from torch.nn.functional import cross_entropy

from lrn.tasks.nli import generator
from lrn.tasks.nli.generator import KINDS, LABELS, WHEN, pairs

NUMBERS = dict(zip("two three four five six".split(), range(2, 7), strict=True))
WEEK = "monday tuesday wednesday thursday friday saturday sunday".split()
WHO = r"(?:the )?\w+"


@pytest.fixture(scope="module")
def train():
    return pairs(5000, part="train", seed=1)


@pytest.fixture(scope="module")
def test():
    return pairs(3000, part="test", seed=1)


def text(words):
    assert words[-1] == "."
    return " ".join(words[:-1])


def test_a_function_of_the_seed_and_the_part(train):
    assert pairs(50, part="train", seed=1) == train[:50]  # more pairs are the same and some more
    assert pairs(50, part="train", seed=2) != train[:50]
    assert pairs(50, part="valid", seed=1) != pairs(50, part="test", seed=1) != train[:50]
    assert pairs(0, part="train", seed=1) == []


@pytest.mark.parametrize(("count", "part", "named"), [(1, "dev", "'dev'"), (-1, "test", "-1")])
def test_what_it_refuses(count, part, named):
    with pytest.raises(ValueError, match=named):
        pairs(count, part=part, seed=1)


def test_as_many_of_each_label_in_each_kind(train, test):
    for part in (train, test):
        shares = Counter((pair.kind, pair.label) for pair in part)
        assert set(shares) == set(product(KINDS, LABELS))
        assert max(shares.values()) - min(shares.values()) <= 1


def test_sentences(train, test):
    for pair in train + test:
        assert all(4 <= len(words) <= 19 for words in (pair.premise, pair.hypothesis))
        assert all(re.fullmatch("[a-z]+|[.,]", word) for word in pair.premise + pair.hypothesis)
    lengths = sorted(len(words) for pair in train for words in (pair.premise, pair.hypothesis))
    assert lengths[int(0.98 * len(lengths))] <= 16
    assert len({(pair.premise, pair.hypothesis) for pair in train}) > 0.95 * len(train)


def vocabulary(part):
    return {word for pair in part for word in pair.premise + pair.hypothesis}


def test_training_has_every_word(train, test):
    assert 200 < len(vocabulary(train)) < 400
    assert vocabulary(train) >= vocabulary(test) | vocabulary(pairs(3000, part="valid", seed=1))


def flat(words):
    return [flat_word for word in words for flat_word in ([word] if isinstance(word, str) else flat(word))]


def combinations(part):
    """Who or what goes with which predicate anywhere in a pair; classes such as animals are no members."""
    found = set()
    for pair in part:
        _, subjects, predicates = generator.MAKERS[pair.kind]
        if pair.kind == "hypernyms":
            subjects = generator.MEMBERS
        said = f" {text(pair.premise)} {text(pair.hypothesis)} "
        words = [[word for word in flat(words) if f" {word} " in said] for words in (subjects, predicates)]
        found |= {(pair.kind, *both) for both in product(*words)}
    return found


def test_each_part_combines_what_the_others_do_not(train, test):
    valid = pairs(3000, part="valid", seed=1)
    assert len(combinations(train)) > 1000
    assert len(combinations(test)) > 300
    assert not combinations(train) & combinations(test)
    assert not combinations(train) & combinations(valid)
    assert not combinations(valid) & combinations(test)


# What the sentences mean, once more: parsed, and true or false in all small worlds


def follows(worlds, premise, hypothesis):
    """The label, where premise and hypothesis are functions of a world."""
    truths = {hypothesis(world) for world in worlds if premise(world)}
    assert truths  # the premise is possible
    return "neutral" if len(truths) == 2 else "entailment" if truths == {True} else "contradiction"


def clauses(premise):
    return re.split(" (?:and|while|but) ", premise)


def amount(phrase, k, n):
    """Whether so many are k of n."""
    phrase = phrase.removesuffix(" of the")
    quantified = {
        ("all", "each"): k == n,
        ("most", "more than half"): k > n - k,
        ("some", "at least one"): k >= 1,
        ("no", "none"): k == 0,
        ("not all", "not each"): k != n,
    }
    for phrases, true in quantified.items():
        if phrase in phrases:
            return true
    *compared, number = phrase.split()
    number = NUMBERS[number]
    return {
        "": k == number,
        "at least": k >= number,
        "at most": k <= number,
        "more than": k > number,
        "fewer than": k < number,
    }[" ".join(compared)]


def counted(premise, hypothesis):
    """Worlds: how many members and others there are, and how many of each the predicate is true of."""

    def parse(claim):
        return re.fullmatch(r"(.+) (\w+) (?:was|were) (\w+)", claim).groups()

    phrase, noun, predicate = parse(hypothesis)
    said = [parse(claim) for claim in clauses(premise)]
    above = dict(both for two in generator.CLASSED for both in two)
    tops = set(above.values())
    of_it = [(p, n) for p, n, what in said if what == predicate and above.get(n, n) == above.get(noun, noun)]
    largest = 8 if set(phrase.split()) & set(NUMBERS) else 4

    def holds(world, phrase, noun):
        member, members, other, others = world
        return amount(phrase, *((member + other, members + others) if noun in tops else (member, members)))

    worlds = [
        (member, members, other, others)
        for members in range(1, largest + 1)
        for member in range(members + 1)
        for others in (range(1, 4) if noun in above or noun in tops else [0])
        for other in range(others + 1)
    ]
    return follows(
        worlds,
        lambda world: all(holds(world, *claim) for claim in of_it),
        lambda world: holds(world, phrase, noun),
    )


def negated(premise, hypothesis):
    """Worlds: who does what."""

    def parse(claim):
        inner = claim.removeprefix("it was false that ")
        who, said = re.fullmatch(rf"({WHO}) was (.+)", inner).groups()
        for connected, form in (
            (r"neither (\w+) nor (\w+)", lambda a, b: not a and not b),
            (r"(\w+) but not (\w+)", lambda a, b: a and not b),
            (r"(\w+) and (\w+)", lambda a, b: a and b),
            (r"(\w+) or (\w+)", lambda a, b: a or b),
            (r"not (\w+)", lambda a: not a),
            (r"(\w+)", lambda a: a),
        ):
            if found := re.fullmatch(connected, said):
                return [(who, what) for what in found.groups()], form, inner == claim
        raise AssertionError(claim)

    def holds(world, claim):
        about, form, straight = claim
        return form(*(world[fact] for fact in about)) == straight

    whole = premise.count(" was ") - premise.startswith("it was ") == 1
    known, said = [parse(claim) for claim in ([premise] if whole else clauses(premise))], parse(hypothesis)
    facts = sorted({fact for about, _, _ in [*known, said] for fact in about})
    return follows(
        [dict(zip(facts, truths, strict=True)) for truths in product((False, True), repeat=len(facts))],
        lambda world: all(holds(world, claim) for claim in known),
        lambda world: holds(world, said),
    )


def happened(premise, hypothesis):
    """Worlds: the days of all events, no two of which are at once; or that one did not happen."""

    def parse(claim):
        first, link, second = re.fullmatch("(.+) (on|before|after) (.+)", claim).groups()
        return first, link, second

    known, said = [parse(claim) for claim in clauses(premise)], parse(hypothesis)
    events = sorted({e for first, _, second in [*known, said] for e in (first, second) if e not in WEEK})

    def holds(world, claim):
        first, link, second = claim
        one, other = world[first], world.get(second, WEEK.index(second) if second in WEEK else None)
        if one is None or other is None:
            return False
        return {"on": one == other, "before": one < other, "after": one > other}[link]

    week = [*range(7), None]
    worlds = [dict(zip(events, days, strict=True)) for days in product(week, repeat=len(events))]
    return follows(
        [
            world
            for world in worlds
            if said[2] in WEEK or world[said[0]] is None or world[said[0]] != world[said[2]]
        ],
        lambda world: all(holds(world, claim) for claim in known),
        lambda world: holds(world, said),
    )


def acted(premise, hypothesis):
    """Worlds are not needed: a fact is said to be true, said to be false, or not mentioned."""

    def parse(claim):
        if found := re.fullmatch(rf"({WHO}) was (not )?(\w+) by ({WHO})", claim):
            whom, negation, what, who = found.groups()
            return (who, what, whom), negation is None
        return re.fullmatch(rf"({WHO}) (\w+) ({WHO})", claim).groups(), True

    if found := re.fullmatch(rf"({WHO}) was (\w+) but not (\w+) by ({WHO})", premise):
        whom, what, other, who = found.groups()
        claims = [f"{whom} was {what} by {who}", f"{whom} was not {other} by {who}"]
    else:
        claims = premise.split(" but ")
        if claims[-1].startswith("was not"):
            claims[-1] = f"{parse(claims[0])[0][0]} {claims[-1]}"
    known = dict(map(parse, claims))
    about, positive = parse(hypothesis)
    if about not in known:
        return "neutral"
    return "entailment" if known[about] == positive else "contradiction"


def reworded(premise, hypothesis):
    """Worlds: where on the scale of the hypothesis its subject is."""
    same = {word: synonyms for synonyms in generator.SYNONYMS for word in synonyms}
    ends = {
        word: (scale, side)
        for scale, words in enumerate(generator.SCALES)
        for side, word in zip((-1, -1, 1, 1), words, strict=True)
    }

    def parse(claim):
        who, negation, what = re.fullmatch(r"the (\w+) was (not )?(\w+)", claim).groups()
        return same[who], *ends[what], negation is None

    who, scale, end, positive = parse(hypothesis)
    known = [claim[2:] for claim in map(parse, clauses(premise)) if claim[:2] == (who, scale)]
    return follows(
        (-1, 0, 1),
        lambda place: all((place == side) == true for side, true in known),
        lambda place: (place == end) == positive,
    )


MEANINGS = {
    "quantifiers": counted,
    "numbers": counted,
    "hypernyms": counted,
    "negation": negated,
    "time": happened,
    "roles": acted,
    "paraphrase": reworded,
}


def without_when(pair):
    """Premise and hypothesis without when it was, which is the same in both."""
    premise, hypothesis = text(pair.premise), text(pair.hypothesis)
    for when in WHEN:
        if premise.startswith(f"{when} "):
            assert hypothesis.startswith(f"{when} ") != hypothesis.endswith(f" {when}")
            hypothesis = hypothesis.removeprefix(f"{when} ").removesuffix(f" {when}")
            return premise.removeprefix(f"{when} "), hypothesis
    return premise, hypothesis


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_what_the_sentences_mean(train, test, kind):
    of_kind = [pair for pair in train + test if pair.kind == kind]
    assert len(of_kind) > 1000
    for pair in of_kind:
        assert MEANINGS[kind](*without_when(pair)) == pair.label, pair


# What can be guessed without reading: the best linear guess from words and counts

HASHED = 4096


def bags(part, numbers, crossed=False):
    """Counts of the words of either sentence, of both, of one alone; overlap; lengths; maybe word pairs."""
    features = torch.zeros(len(part), 5 * len(numbers) + 4 + HASHED * crossed)
    for row, pair in zip(features, part, strict=True):
        first, second = Counter(pair.premise), Counter(pair.hypothesis)
        for place, counts in enumerate((first, second, first & second, first - second, second - first)):
            for word, count in counts.items():
                row[place * len(numbers) + numbers[word]] = count
        shared = (first & second).total() / len(pair.hypothesis)
        row[5 * len(numbers) :][:4] = torch.tensor(
            [1, shared, len(pair.premise) / 10, len(pair.hypothesis) / 10]
        )
        if crossed:
            for known, said in product(first, second):
                row[5 * len(numbers) + 4 + zlib.crc32(f"{known} {said}".encode()) % HASHED] += 1
    return features


def guessed(train, test, features, l2=1e-3):
    """The share of test pairs whose label logistic regression on training's features guesses."""
    labels = [torch.tensor([LABELS.index(pair.label) for pair in part]) for part in (train, test)]
    known, unknown = features(train), features(test)
    weights = torch.zeros(known.shape[1], len(LABELS), requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=60, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = cross_entropy(known @ weights, labels[0]) + l2 * weights.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert ((known @ weights).argmax(1) == labels[0]).float().mean() > 0.4  # it does learn
    return ((unknown @ weights).argmax(1) == labels[1]).float().mean().item()


@pytest.fixture(scope="module")
def numbers(train):
    return {word: number for number, word in enumerate(sorted(vocabulary(train)))}


def test_words_without_their_order_do_not_give_the_label_away(train, test, numbers):
    assert guessed(train, test, lambda part: bags(part, numbers)) < 0.55


@pytest.mark.slow
def test_words_two_by_two_do_not_give_the_label_away(train, test, numbers):
    """A word of the premise with one of the hypothesis: these associations are what some pairs are about."""
    assert guessed(train, test, lambda part: bags(part, numbers, crossed=True)) < 0.65


def test_the_hypothesis_alone_does_not_give_the_label_away(train, test, numbers):
    of_hypotheses = slice(len(numbers), 2 * len(numbers))
    assert guessed(train, test, lambda part: bags(part, numbers)[:, of_hypotheses]) < 0.45


def test_the_premise_alone_does_not_give_the_label_away(train, test, numbers):
    assert guessed(train, test, lambda part: bags(part, numbers)[:, : len(numbers)]) < 0.45
