"""Exact match and F1: known values, and torchmetrics' SQuAD on many answers."""

import random

import pytest
from torchmetrics.functional.text import squad

from lrn.tasks.rc.score import (
    ANSWER_LENGTHS,
    QUESTION_WORDS,
    Scored,
    answer_length,
    best,
    by,
    details,
    exact,
    figures,
    normalise,
    overlap,
    question_word,
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The Beatles", "beatles"),
        ("a  cat,\tan owl and the-dog", "cat owl and thedog"),
        ("theatre another", "theatre another"),
        ("U.S.A.", "usa"),
        ("«Ünïcode» – £5", "«ünïcode» – £5"),
        ("the a an", ""),
        ("", ""),
    ],
)
def test_normalise(answer, expected):
    assert normalise(answer) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        ("in 1066", "1066", 2 / 3),
        ("the year 1066", "year 1066", 1),
        ("x", "y", 0),
        ("x x b b", "b b b", 2 * 2 / 7),
        ("the", "the", 0),  # nothing is left of either: equal, but without a common word
    ],
)
def test_overlap(answer, gold, f1):
    assert overlap(answer, gold) == pytest.approx(f1, abs=1e-15)


def test_exact():
    assert exact("The U.S.", "us") == 1
    assert exact("the", "an") == 1
    assert exact("us too", "us") == 0


def test_the_nearest_of_all_answers():
    assert best(overlap, "late 1066", ["1066", "in late 1066", "Oslo"]) == pytest.approx(0.8)
    assert best(exact, "x", []) == 0


def test_as_torchmetrics_has_it():
    draw = random.Random(1)
    words = "the a an Oslo, 1066 (king) U.S. théâtre 'quoted' – of and In in it".split()

    def text():
        """Never articles alone: of nothing against nothing torchmetrics has SQuAD 2.0's F1, which is 1."""
        return " ".join([*draw.choices(words, k=draw.randint(0, 5)), draw.choice(words[3:])])

    scored, answers, golds = [], [], []
    for number in range(300):
        right = tuple(text() for _ in range(draw.randint(1, 4)))
        answer = draw.choice(right) if draw.random() < 0.3 else text()
        scored.append(Scored.of("Who?", right, answer))
        answers.append({"prediction_text": answer, "id": str(number)})
        golds.append({"answers": {"text": list(right), "answer_start": [0] * len(right)}, "id": str(number)})
    theirs = squad(answers, golds)
    found = figures(scored)
    assert found["exact"] == pytest.approx(theirs["exact_match"].item(), abs=1e-4)
    assert found["f1"] == pytest.approx(theirs["f1"].item(), abs=1e-4)
    assert 20 < found["exact"] < found["f1"] < 80  # or this would show nothing


def test_a_question_without_an_answer_counts():
    assert figures([Scored.of("", ("x",), "x"), Scored("", ("x",))]) == {"f1": 50, "exact": 50}
    assert figures([]) == {"f1": 0, "exact": 0}


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What is it?", "what"),
        ("In which year did they ask who won?", "which"),
        ("How MANY were there?", "how many"),
        ("How much is it?", "how much"),
        ("How?", "how"),
        ("Somehow whatever", "other"),
        ("", "other"),
    ],
)
def test_question_words(question, word):
    assert question_word(Scored(question, ())) == word
    assert word in QUESTION_WORDS


@pytest.mark.parametrize(
    ("golds", "length"),
    [
        (("one", "two words"), "1 word"),
        (("two words",), "2 words"),
        (("one two three four",), "3 to 4 words"),
        (("1 2 3 4 5 6 7 8",), "5 to 8 words"),
        (("1 2 3 4 5 6 7 8 9",), "9 words or more"),
    ],
)
def test_answer_lengths(golds, length):
    assert answer_length(Scored("", golds)) == length
    assert length in ANSWER_LENGTHS


def test_by_kind():
    scored = [Scored("Who?", ("x",), 1, 1), Scored("When?", ("x y",), 0, 0.5), Scored("Who?", ("x",), 0, 0)]
    assert by(scored, question_word, QUESTION_WORDS) == {
        "who": {"f1": 50, "exact": 50, "questions": 2},
        "when": {"f1": 50, "exact": 0, "questions": 1},
    }
    found = details(scored)
    assert {name: kind["questions"] for name, kind in found.items()} == {
        "who": 2,
        "when": 1,
        "1 word": 2,
        "2 words": 1,
    }
