"""The settings of commands that are the same for all tasks: what makes no sense is refused by name."""

import math

import pytest
from helpers import says

from lrn.options import Bench, Doctor, Gradients, Paper, Params, Results


@pytest.mark.parametrize(
    ("make", "says_so"),
    [
        (lambda: Bench(seconds=0.0), ("--seconds must be positive", "0.0")),
        (lambda: Bench(seconds=math.nan), ("--seconds must be positive", "nan")),
        (lambda: Bench(shape=["1,2,3", "4"]), ("--shape", "T,B,H", "'4'")),
        (lambda: Bench(threads=9999), ("threads must be from 0 to", "9,999")),
        (lambda: Doctor(threads=9999), ("threads must be from 0 to", "9,999")),
        (lambda: Gradients(threads=-1), ("threads must be from 0 to", "-1")),
        (lambda: Gradients(steps=0), ("steps must be at least 1", "0")),
        (lambda: Gradients(steps=10**7), ("steps must be at most 1,000,000", "10,000,000")),
        (lambda: Gradients(hidden=0), ("hidden must be at least 1", "0")),
        (lambda: Gradients(hidden=10**9), ("hidden must be at most 65,536", "1,000,000,000")),
        (lambda: Gradients(seed=-1), ("seed must be at least 0", "-1")),
        (lambda: Gradients(seed=2**80), ("seed must be at most", "1,208,925")),
        (lambda: Gradients(out="a.gif"), ("--out a.gif: the name must end in .png or .svg",)),
        (lambda: Results(), ("name a run folder", "lrn results RUN…")),
        (lambda: Results(["a"], format="markdown"), ("unknown format 'markdown'", "md, csv, json")),
        (lambda: Results(["a"], validation="bets"), ("unknown validation 'bets'", "did you mean 'best'")),
        (lambda: Paper("9"), ("unknown table 'table-9'", "table-1, table-2", "figure-1")),
        (lambda: Paper(format="md"), ("unknown format 'md'", "text, json")),
        (lambda: Params(task="dco"), ("unknown task 'dco'", "did you mean 'doc'")),
    ],
)
def test_wrong_settings(make, says_so):
    with pytest.raises(ValueError, match=says(*says_so)):
        make()


def test_names_of_tables():
    assert [Paper(name).table for name in ("5", "Table-5", "figure-1", None)] == [
        *("table-5", "table-5", "figure-1", None),
    ]


def test_names_of_figures():
    assert Results(["a"], test=" f1,exact, ").tests() == ["f1", "exact"]
    assert Results(["a"]).tests() == []


def test_shapes():
    assert Bench(shape=["32,128,300", " 1, 2,3"]).shapes() == ((32, 128, 300), (1, 2, 3))
