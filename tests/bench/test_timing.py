"""Contestants take turns, and times are seconds."""

import time

from lrn.bench.timing import alternate


def test_alternation_takes_turns():
    order = []
    times = alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 0, least=4)
    assert times["a"].rounds == times["b"].rounds == 4
    assert sorted(order[4:6]) == ["a", "b"]  # after two warm-up calls each


def test_times_are_seconds():
    times = alternate({"nap": lambda: time.sleep(0.01)}, 0, least=3)
    assert 0.01 <= times["nap"].median < 1
