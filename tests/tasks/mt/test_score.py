"""BLEU and chrF against figures worked out by hand and by sacrebleu's own functions."""

import math

import pytest

from lrn.tasks.mt.score import judge

sacrebleu = pytest.importorskip("sacrebleu")

FOUND = ["The cat sat on the mat.", "It is late now."]
RIGHT = ["The cat sat on a mat.", "It is late now."]


def words(lines):
    return [line.replace(".", " .").split() for line in lines]


def test_all_right():
    values = judge(RIGHT, RIGHT, words(RIGHT), words(RIGHT)).values
    assert values == pytest.approx(dict.fromkeys(values, 100.0))


def test_nothing_right():
    values = judge(["x"], ["y z"], [["x"]], [["y", "z"]]).values
    assert values["exact"] == 0
    assert all(value < 1 for value in values.values())


def test_by_hand():
    """12 words; the second pair is right, of the first all but one word, four pairs, and so on."""
    values = judge(FOUND, RIGHT, words(FOUND), words(RIGHT)).values
    precisions = [11 / 12, 8 / 10, 5 / 8, 3 / 6]
    expected = 100 * math.exp(sum(map(math.log, precisions)) / 4)
    assert values["bleu_tok"] == pytest.approx(expected)
    assert values["bleu"] == pytest.approx(sacrebleu.corpus_bleu(FOUND, [RIGHT]).score)
    assert values["chrf"] == pytest.approx(sacrebleu.corpus_chrf(FOUND, [RIGHT]).score)
    assert values["exact"] == 50


def test_case():
    lower = [line.lower() for line in RIGHT]
    figures = judge(lower, RIGHT, words(lower), words(RIGHT))
    assert figures.values["bleu_lc"] == figures.values["bleu_tok_lc"] == pytest.approx(100)
    assert figures.values["bleu"] < 90
    assert figures.values["bleu_tok"] < 90


def test_signatures():
    signatures = judge(FOUND, RIGHT, words(FOUND), words(RIGHT)).signatures
    assert "tok:13a" in signatures["bleu"]
    assert "case:mixed" in signatures["bleu"]
    assert "tok:none" in signatures["bleu_tok"]
    assert "case:lc" in signatures["bleu_tok_lc"]
