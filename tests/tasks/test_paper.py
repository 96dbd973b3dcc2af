"""The paper's figures are given for the paper's setting and data, and for nothing else."""

import subprocess
import sys

import pytest

from lrn.tasks import paper


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


def test_parameters():
    printed = {"ner": "129K", "doc": "151K", "rc": "2.14M"}
    assert {task: paper.parameters(task, "paper")["lrn"] for task in printed} == printed
    assert paper.parameters("lm", "paper-ptb")["lstm"] == "22M"
    assert paper.parameters("lm", "quick") == paper.parameters("none", "paper") == {}


def test_it_needs_no_torch():
    code = "import lrn.tasks.paper, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
