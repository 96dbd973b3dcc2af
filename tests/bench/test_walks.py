"""The walk alone: what it must move at least, and that it can be measured."""

import pytest
import torch
from rich.console import Console

from lrn.bench import show, walks
from lrn.bench.results import Bench, Walk
from lrn.bench.run import Settings as Wanted
from lrn.bench.run import _walks, find, machine
from lrn.recurrence import CELLS

A100 = walks.CHIPS[0]


@pytest.mark.parametrize("cell", CELLS)
def test_numbers_a_token(cell):
    """Forward: the projection is read, h written (SRU: and c).

    Backward: both read, and dh; the gradient written.
    """
    gates = CELLS[cell].gates
    expected = {"sru": gates + 2}.get(cell, gates + 1)
    assert walks.numbers_a_token(cell) == (expected, gates + 1 + 1 + gates)


def test_floors():
    """A large problem is bound by traffic: 4 and 8 numbers of 4 bytes an element.

    A narrow one by its steps.
    """
    forward, backward = walks.floors("lrn_tanh", (512, 256, 1024), A100)
    assert forward == pytest.approx(512 * 256 * 1024 * 16 / 2.04e12)
    assert backward == pytest.approx(2 * forward)
    assert walks.floors("lrn_tanh", (1000, 1, 256), A100) == (1000 * walks.STEP,) * 2
    assert walks.product("lrn_tanh", (10, 2, 8), A100) == pytest.approx(2 * 10 * 2 * 8 * 24 / 19.5e12)


@pytest.mark.parametrize("cell", ["lrn_tanh", "sru"])
def test_measured(cell):
    taken = walks.walk(cell, (5, 2, 8), torch.device("cpu"), 0.02)
    for time in (taken.forward, taken.backward, taken.projection):
        assert 0 < time.low <= time.median <= time.high


def test_the_table(capsys):
    """With measurements and without: predictions stand alone."""
    result, shape = Bench(machine(), 1), (5, 2, 8)
    for _, measure in list(_walks(result, Wanted(shapes=(shape,), seconds=0.1), torch.device("cpu")))[:1]:
        measure()
    assert isinstance(result.walks["5,2,8"]["lrn_tanh"], Walk)
    Console(width=200).print(show.walk_table(result.walks | {"1000,1,256": {"olrn": None}}))
    said = capsys.readouterr().out
    assert "A100 80GB, floor" in said
    assert "1000 / 1000" in said


def test_no_such_device():
    with pytest.raises(ValueError, match=r"--device lunar: there is none here; this machine has: cpu"):
        find("lunar")
    assert find("cpu") == torch.device("cpu")
