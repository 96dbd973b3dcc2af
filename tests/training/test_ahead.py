"""Batches that a worker makes ahead: in order, bounded, with errors where they belong, gone when closed."""

import threading
import time
from contextlib import closing

import pytest

from lrn.training.ahead import ahead


def workers():
    return [thread for thread in threading.enumerate() if thread.name == "lrn-ahead"]


def test_in_order():
    assert list(ahead(range(100), str)) == [(n, str(n)) for n in range(100)]
    assert not workers()


def test_nothing_to_do():
    assert list(ahead([], str)) == []


@pytest.mark.parametrize("count", [1, 3])
def test_no_further_ahead_than_it_should(count):
    made = []
    with closing(ahead(range(50), made.append, count)) as items:
        next(items)
        time.sleep(0.3)
        assert 1 < len(made) <= 1 + count + 2, "one in use, the line, one made and waiting for its place"
    assert not workers()


def test_an_error_comes_in_its_place():
    def make(n):
        if n == 3:
            raise ValueError("three is bad")
        return n

    items = ahead(range(10), make)
    assert [next(items)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three is bad"):
        next(items)
    assert not workers()


def test_an_error_in_the_items():
    def items():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(ahead(items(), str))


def test_it_runs_beside_its_user():
    """While one is used the next is made: the whole takes less than both after each other."""

    def make(n):
        time.sleep(0.03)
        return n

    start = time.perf_counter()
    for _ in ahead(range(10), make):
        time.sleep(0.03)
    assert time.perf_counter() - start < 0.5


def use(items):
    with closing(items):
        for item, _ in items:
            if item == 5:
                raise KeyboardInterrupt


def test_the_user_is_stopped():
    with pytest.raises(KeyboardInterrupt):
        use(ahead(range(1000), str))
    assert not workers()
