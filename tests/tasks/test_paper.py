"""The paper's figures are given for the paper's setting and data, and for nothing else."""

import subprocess
import sys

import pytest

from lrn.names import TASKS
from lrn.tasks import load, paper


def test_perplexity():
    assert paper.perplexity("paper-ptb", 929_589)["lrn"] == "61.26"
    assert paper.perplexity("paper-ptb", 929_589)["elrn"] == "169.81"
    assert paper.perplexity("paper-wt2", 2_088_628)["lrn"] == "69.91"
    assert paper.perplexity("paper-wt2", 929_589) == {}
    assert paper.perplexity("small", 929_589) == {}


def test_f1():
    assert paper.f1("paper", 14_041)["lrn"] == "88.56"
    assert paper.f1("paper", 2_000) == {}
    assert paper.f1("quick", 14_041) == {}


@pytest.mark.parametrize(
    ("classes", "documents", "expected"),
    [
        (2, 3_600_000, "4.98"),
        (10, 1_400_000, "25.07"),
        (5, 3_000_000, "38.42"),
        (2, 560_000, "3.98"),
        (2, 25_000, None),
        (10, 560_000, None),
    ],
)
def test_error(classes, documents, expected):
    assert paper.error("paper", classes, documents).get("lrn") == expected
    assert paper.error("quick", classes, documents) == {}


def test_answers():
    assert paper.answers("paper", 87_599)["lrn"] == "78.83"
    assert paper.answers("paper-elmo", 87_599)["gru"] == "83.12"
    assert paper.answers("paper", 9_910) == paper.answers("quick", 87_599) == {}


def test_bleu():
    assert paper.bleu("paper", 4_500_000)["olrn"] == "26.73"
    assert paper.bleu("paper", 29_000) == paper.bleu("small", 4_500_000) == {}


@pytest.mark.parametrize(
    ("task", "preset", "expected"),
    [
        ("lm", "paper-ptb", {"Penn Treebank, 929,589 words": "61.26"}),
        ("lm", "paper-wt2", {"WikiText-2, 2,088,628 words": "69.91"}),
        ("ner", "paper", {"CoNLL-2003, 14,041 sentences": "88.56"}),
        (
            "doc",
            "paper",
            {
                "AmaPolar, 3,600,000 documents": "4.98",
                "Yahoo, 1,400,000 documents": "25.07",
                "AmaFull, 3,000,000 documents": "38.42",
                "YelpPolar, 560,000 documents": "3.98",
            },
        ),
        ("nli", "paper-ln", {"SNLI, 549,367 pairs": "85.06"}),
        ("rc", "paper", {"SQuAD 1.1, 87,599 questions": "78.83"}),
        ("mt", "paper", {"WMT14 English-German, 4.5 million pairs": "26.26"}),
    ],
)
def test_figures_on_the_papers_own_data(task, preset, expected):
    assert {data: found["lrn"] for data, found in paper.on_its_data(task, preset).items()} == expected
    assert paper.on_its_data(task, "quick") == {}


def test_parameters():
    printed = {"ner": "129K", "doc": "151K", "rc": "2.14M"}
    assert {task: paper.parameters(task, "paper")["lrn"] for task in printed} == printed
    assert paper.parameters("lm", "paper-ptb")["lstm"] == "22M"
    assert paper.parameters("lm", "quick") == paper.parameters("none", "paper") == {}


@pytest.mark.parametrize(
    ("task", "preset", "classes", "what", "lrn"),
    [
        ("lm", "quick", 0, "Penn Treebank, 929,589 words", "61.26"),
        ("lm", "paper-wt2", 0, "WikiText-2, 2,088,628 words, paper-wt2", "69.91"),
        ("ner", "quick", 0, "CoNLL-2003, 14,041 sentences", "88.56"),
        ("doc", "quick", 2, "YelpPolar, 560,000 documents", "3.98"),
        ("doc", "quick", 5, "AmaFull, 3,000,000 documents", "38.42"),
        ("doc", "quick", 10, "Yahoo, 1,400,000 documents", "25.07"),
        ("doc", "memory", 7, "YelpPolar, 560,000 documents", "3.98"),
        ("nli", "quick", 0, "SNLI, 549,367 pairs", "84.88"),
        ("nli", "paper-ln", 0, "SNLI, 549,367 pairs, paper-ln", "85.06"),
        ("rc", "quick", 0, "SQuAD 1.1, 87,599 questions", "78.83"),
        ("mt", "small", 0, "WMT14 English-German, 4.5 million pairs", "26.26"),
    ],
)
def test_elsewhere(task, preset, classes, what, lrn):
    """Whatever the data is, the paper's own figures, and what they are of."""
    found, figures = paper.elsewhere(task, preset, classes)
    assert (found, figures["lrn"]) == (what, lrn)


def test_every_task_has_figures_elsewhere():
    for name in TASKS:
        assert load(name).printed_elsewhere({"preset": "quick"}, {"classes": ["a", "b"]})[1]


def test_it_needs_no_torch():
    code = "import lrn.tasks.paper, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
