"""Marking entities in all schemes, and finding them again, as conlleval and seqeval do."""

import random

import pytest

from lrn.tasks.ner.schemes import SCHEMES, Entity, allowed_transitions, check, entities, mark
from lrn.tasks.ner.score import score

SPANS = [Entity("PER", 0, 2), Entity("PER", 2, 3), Entity("LOC", 3, 4), Entity("ORG", 5, 8)]
MARKED = {
    "iob1": "I-PER I-PER B-PER I-LOC O I-ORG I-ORG I-ORG O",
    "iob2": "B-PER I-PER B-PER B-LOC O B-ORG I-ORG I-ORG O",
    "iobes": "B-PER E-PER S-PER S-LOC O B-ORG I-ORG E-ORG O",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_known_marks(scheme):
    assert mark(9, SPANS, scheme) == MARKED[scheme].split()
    assert entities(MARKED[scheme].split()) == SPANS


@pytest.mark.parametrize("scheme", SCHEMES)
def test_there_and_back(scheme):
    draw = random.Random(1)
    for _ in range(300):
        spans, place = [], 0
        while place < 12:
            end = min(12, place + draw.randint(1, 3))
            if draw.random() < 0.6:
                spans.append(Entity(draw.choice(["PER", "LOC"]), place, end))
            place = end
        assert entities(mark(12, spans, scheme)) == spans


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("I-PER O", [("PER", 0, 1)]),  # an I may begin an entity
        ("B-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),  # another type begins another
        ("B-PER B-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("E-PER E-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("S-PER I-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("O O", []),
        ("", []),
    ],
)
def test_rules_of_conlleval(tags, found):
    assert [tuple(entity) for entity in entities(tags.split())] == found


def test_f1_is_that_of_seqeval():
    metrics = pytest.importorskip("seqeval.metrics")
    draw = random.Random(2)
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    truth = [[draw.choice(tags) for _ in range(draw.randint(1, 9))] for _ in range(200)]
    predicted = [[tag if draw.random() < 0.7 else draw.choice(tags) for tag in row] for row in truth]
    found = score(truth, predicted)
    assert found["all"].f1 == pytest.approx(100 * metrics.f1_score(truth, predicted))
    assert found["all"].precision == pytest.approx(100 * metrics.precision_score(truth, predicted))
    assert found["all"].recall == pytest.approx(100 * metrics.recall_score(truth, predicted))
    report = metrics.classification_report(truth, predicted, output_dict=True)
    for kind in ("PER", "LOC"):
        assert found[kind].f1 == pytest.approx(100 * report[kind]["f1-score"])


def test_known_score():
    truth = ["B-PER I-PER O B-LOC".split(), "B-ORG O".split()]
    predicted = ["B-PER O O B-LOC".split(), "B-ORG B-ORG".split()]
    found = score(truth, predicted)
    assert (found["all"].right, found["all"].predicted, found["all"].there) == (2, 4, 3)
    assert found["all"].f1 == pytest.approx(100 * 4 / 7)
    assert (found["PER"].f1, found["LOC"].f1) == (0.0, 100.0)


def test_lengths_that_differ():
    with pytest.raises(ValueError, match="sentences"):
        score([["O"]], [])
    with pytest.raises(ValueError, match="sentence 0 has 1 words, but 2"):
        score([["O"]], [["O", "O"]])


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-PER", "b-per", "PER"])
def test_no_tags(tag):
    with pytest.raises(ValueError, match="not a tag"):
        check(tag)


def test_unknown_scheme():
    with pytest.raises(ValueError, match="iob3"):
        mark(1, [], "iob3")


def test_allowed_transitions():
    tags = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    allowed = allowed_transitions(tags)
    for before, row in zip([*tags, "start"], allowed, strict=True):
        for after, may in zip(tags, row, strict=False):
            assert may == (not after.startswith("I-") or before[2:] == after[2:]), (before, after)
        assert row[-1]
