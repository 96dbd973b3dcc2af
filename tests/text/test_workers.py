"""Texts worked on side by side, in order, by processes that end when they should."""

import multiprocessing
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from lrn.text import workers

PIECES = [(number, ["x"] * number) for number in range(1, 30)]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("ahead", [1, 4, 100])
def test_in_order(processes, ahead):
    with workers.pool(processes) as pool:
        assert (pool is None) == (processes == 1)
        found = list(workers.in_order(pool, len, PIECES, ahead))
    assert found == [(number, number) for number, _ in PIECES]
    assert not multiprocessing.active_children()


def test_only_so_many_are_under_way():
    taken = []

    def pieces():
        for piece in PIECES:
            taken.append(piece[0])
            yield piece

    with workers.pool(2) as pool:
        results = workers.in_order(pool, len, pieces(), ahead=3)
        assert next(results) == (1, 1)
        assert taken == [1, 2, 3, 4]


def go_through(visit):
    """With two processes; ``visit`` sees the number of every piece that is done."""
    with workers.pool(2) as pool:
        for number, _ in workers.in_order(pool, len, PIECES, 4):
            visit(number)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_none_is_left_after_an_error(error):
    def raise_it(number):
        if number == 5:
            raise error

    with pytest.raises(error):
        go_through(raise_it)
    assert not multiprocessing.active_children()


def test_an_error_in_the_work():
    with pytest.raises(TypeError), workers.pool(2) as pool:
        list(workers.in_order(pool, sum, PIECES, 4))  # strings have no sum
    assert not multiprocessing.active_children()


def test_nobody_waits_for_unwanted_work(monkeypatch):
    monkeypatch.setattr(workers, "_hung_up", threading.Event())
    texts = workers.while_wanted(["a", "b", "c"])
    assert next(texts) == "a"
    workers._hung_up.set()
    assert list(texts) == []


def test_a_worker_that_dies():
    def kill(_):
        for process in multiprocessing.active_children():
            process.kill()  # which forgives that it is gone already

    with pytest.raises(ValueError, match=r"died.*memory"):
        go_through(kill)


def test_a_pool_that_breaks_while_it_grows(monkeypatch):
    def broken(*args):
        raise OSError("handle is closed")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", broken)
    with pytest.raises(ValueError, match=r"died.*memory"), workers.pool(2) as pool:
        list(workers.in_order(pool, len, PIECES, 4))


KILLED = """
import multiprocessing, os, signal
from lrn.text import workers

if __name__ == "__main__":
    with workers.pool(2) as pool:
        pieces = ((number, ["x"] * number) for number in range(1000))
        for number, _ in workers.in_order(pool, len, pieces, 8):
            if number == 20:
                print(*(process.pid for process in multiprocessing.active_children()), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_process_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, timeout=60)
    started = [int(pid) for pid in done.stdout.split()]
    assert len(started) == 2
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in started):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
