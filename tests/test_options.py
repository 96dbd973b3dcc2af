"""The settings of commands that are the same for all tasks: what makes no sense is refused by name."""

import math

import pytest
from helpers import says

from lrn.options import Bench, Doctor, Gradients, Params


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
        (lambda: Params(task="dco"), ("unknown task 'dco'", "did you mean 'doc'")),
    ],
)
def test_wrong_settings(make, says_so):
    with pytest.raises(ValueError, match=says(*says_so)):
        make()


def test_shapes():
    assert Bench(shape=["32,128,300", " 1, 2,3"]).shapes() == ((32, 128, 300), (1, 2, 3))
