"""Made documents: only the early word decides, and nothing else gives the label away."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from lrn.tasks.doc import generator
from lrn.tasks.doc.generator import AFTER, BAD, CLASSES, GOOD, MANNERS, PEOPLE, QUOTING, SELF, THINGS

OPINION = dict.fromkeys(GOOD, 1) | dict.fromkeys(BAD, -1)


@pytest.fixture(scope="module", params=MANNERS.values(), ids=MANNERS)
def manner(request):
    return request.param


@pytest.fixture(scope="module")
def train(manner):
    return list(generator.documents(3000, manner=manner))


@pytest.fixture(scope="module")
def test(manner):
    return list(generator.documents(600, part="test", manner=manner))


def unquoted(words):
    """What the writer says, without what is in quotation marks."""
    return re.sub("“[^“”]*”", "“”", " ".join(words))


def test_a_function_of_the_seed_and_the_part():
    def some(**options):
        return list(generator.documents(20, **options))

    assert some() == some(part="train", seed=1)
    assert some() != some(seed=2)
    assert some() != some(part="test")
    assert some() == list(generator.documents(50))[:20]  # more documents are the same and some more


def test_half_of_them_are_positive(train, test):
    assert CLASSES == ("negative", "positive")
    for part in (train, test):
        assert Counter(document.label for document in part) == {0: len(part) // 2, 1: len(part) // 2}


def test_the_deciding_word(train, test):
    """It is an opinion of the writer's, early, and far from the end."""
    for document in train + test:
        assert document.words[document.cue] in OPINION
        assert document.words[document.cue + 1] == "."
        assert len(document.words) - 1 - document.cue > AFTER
        assert 3 * document.cue < len(document.words)
        assert document.words[: document.cue].count("“") == document.words[: document.cue].count("”")
        sentence = " ".join(document.words[: document.cue]).rpartition(". ")[2]
        assert sentence.startswith(SELF)


def test_the_writer_says_it_once(train):
    for document in train:
        text = unquoted(document.words)
        assert sum(text.count(f"{frame} ") for frame in SELF) == 1


def test_others_say_it_in_quotation_marks():
    documents = list(generator.documents(500, manner=QUOTING))
    quotes = [quote for d in documents for quote in re.findall("said : “ ([^“”]*) ” \\.", " ".join(d.words))]
    assert len(quotes) > len(documents)
    for quote in quotes:
        assert sum(quote.count(f"{frame} ") for frame in SELF) == 1
    assert sum(not quote.startswith(SELF) for quote in quotes) > len(quotes) / 5, "small talk comes first"
    assert not any("“" in d.words for d in generator.documents(100))


def test_negation_turns_it_round(train, manner):
    turned = [document.words[document.cue - 1] == "not" for document in train]
    for document, negated in zip(train, turned, strict=True):
        praise = OPINION[document.words[document.cue]] > 0
        assert document.label == (praise != negated)
    assert np.mean(turned) == pytest.approx(manner.negated, abs=0.03)


def test_test_documents_are_about_others(train, test):
    known = {word for document in train for word in document.words}
    assert known >= set(THINGS["train"])
    assert not known & set(THINGS["test"])
    unseen = {word for document in test for word in document.words}
    assert unseen >= set(THINGS["test"])
    assert not unseen & set(THINGS["train"])
    texts = "\n".join(" ".join(document.words) for document in train)
    unseen_texts = "\n".join(" ".join(document.words) for document in test)
    for part, with_them, without in (("train", texts, unseen_texts), ("test", unseen_texts, texts)):
        for person in PEOPLE[part].replace("\n", "").split("|"):
            assert f" {person} " in with_them
            assert f" {person} " not in without


def agreement(train, votes):
    """How often the sign of the votes is the label, where there is one; and how often there is one."""
    signs = np.sign(votes)
    labels = np.array([2 * document.label - 1 for document in train])
    return (signs == labels)[signs != 0].mean(), (signs != 0).mean()


def voted(words, negation):
    """Opinions for less those against; each turned round by a negation before it."""
    return sum(
        OPINION.get(word, 0) * (-1 if negation and before == "not" else 1)
        for before, word in pairwise(["", *words])
    )


@pytest.mark.parametrize("negation", [False, True])
def test_the_end_says_nothing(train, negation):
    """Within five standard deviations of a guess; and often there is something that could mislead."""
    share, decided = agreement(train, [voted(document.words[-AFTER:], negation) for document in train])
    assert abs(share - 0.5) < 5 * 0.5 / (decided * len(train)) ** 0.5
    assert 0.45 < share < 0.55
    assert decided > 0.3


def test_the_words_without_their_order_are_not_enough(train):
    """The best linear guess from the counts of all words."""
    types = {word: number for number, word in enumerate({w: 0 for d in train for w in d.words})}
    counts = np.ones((len(train), len(types) + 1))
    for row, document in zip(counts, train, strict=True):
        row[:-1] = np.bincount([types[word] for word in document.words], minlength=len(types))
    labels = np.array([2.0 * document.label - 1 for document in train])
    seen, unseen = slice(0, 2000), slice(2000, None)
    gram = counts[seen].T @ counts[seen] + np.eye(counts.shape[1])
    guess = counts[unseen] @ np.linalg.solve(gram, counts[seen].T @ labels[seen])
    assert 0.55 < (np.sign(guess) == labels[unseen]).mean() < 0.75


def test_others_contradict(train):
    """All opinions by majority are not enough either; that of one word in the middle of them is needed."""
    share, decided = agreement(train, [voted(document.words, negation=True) for document in train])
    assert share * decided + 0.5 * (1 - decided) < 0.85
    against = [
        any(
            OPINION.get(word, 0) * OPINION[document.words[document.cue]] < 0
            for word in document.words[document.cue + 1 :]
        )
        for document in train
    ]
    assert np.mean(against) > 0.3
