"""Two cells a step against the cells themselves, a sequence and a step at a time, in float64."""

import pytest
import torch
from helpers import randn

from lrn import make_unit
from lrn.names import UNITS
from lrn.nn import TwoCells
from lrn.recurrence import engine, engines
from lrn.units.unit import hidden, map_state

WIDTH, OTHER, SIZE = 3, 5, 4
LENGTHS = [4, 2, 2, 1]  # longest first
SIZES = [4, 3, 1, 1]
EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(params=engines())
def any_engine(request):
    with engine(request.param):
        yield


def layer_of(unit="lrn", norm=None):
    torch.manual_seed(1)
    layer = TwoCells(*(make_unit(unit, width, SIZE, norm=norm) for width in (WIDTH, OTHER))).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64))
    return layer


def problem(layer):
    x, y = randn(sum(SIZES), WIDTH), randn(sum(SIZES), OTHER, seed=2)
    state = randn(1, len(LENGTHS), SIZE, seed=3)
    return x, y, (state, randn(1, len(LENGTHS), SIZE, seed=4)) if layer.lower.parts == 2 else state


def of_row(x, row):
    return [step[row] for step in x.split(SIZES) if row < len(step)]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("norm", [None, "layer"])
@pytest.mark.parametrize("unit", UNITS)
def test_cell_by_cell(unit, norm):
    layer = layer_of(unit, norm)
    x, y, state = problem(layer)
    output, last = layer(x, y, SIZES, state)
    for row in range(len(LENGTHS)):
        mine = map_state(lambda s, row=row: s[:, row : row + 1], state)
        for step, (one, other) in enumerate(zip(of_row(x, row), of_row(y, row), strict=True)):
            _, mine = layer.lower.step(one[None], mine)
            _, mine = layer.upper.step(other[None], mine)
            torch.testing.assert_close(of_row(output, row)[step], hidden(mine)[0, 0], **EXACT)
        torch.testing.assert_close(map_state(lambda s, row=row: s[:, row : row + 1], last), mine, **EXACT)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("unit", ["lrn", "olrn", "glrn", "elrn"])
def test_both_ways_to_walk(unit, monkeypatch):
    """All at once, and step by step: outputs, states and gradients."""
    layer = layer_of(unit, "layer")
    assert layer.walks_at_once
    found = []
    for at_once in (True, False):
        monkeypatch.setattr(TwoCells, "walks_at_once", at_once)
        x, y, state = (value.requires_grad_() for value in problem(layer))
        output, last = layer(x, y, SIZES, state)
        inputs = [x, y, state, *layer.parameters()]
        found.append([output, last, *torch.autograd.grad((output**2).sum() + last.sum(), inputs)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_which_walk_at_once():
    """Those in which nothing learnt is left inside."""
    assert [unit for unit in UNITS if layer_of(unit).walks_at_once] == ["lrn", "olrn", "glrn", "elrn"]


@pytest.mark.parametrize("unit", UNITS)
def test_gradients(unit):
    layer = layer_of(unit)
    x, y, state = problem(layer)
    state = map_state(lambda s: s.requires_grad_(), state)

    def outputs(x, y, h, *weights):
        output, last = layer(x, y, SIZES, (h, state[1]) if isinstance(state, tuple) else h)
        return output, hidden(last)

    given = (x.requires_grad_(), y.requires_grad_(), hidden(state), *layer.parameters())
    torch.autograd.gradcheck(outputs, given, atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("unit", ["lrn", "gru", "sru"])
def test_one_step(unit):
    layer = layer_of(unit)
    x, y, state = problem(layer)
    whole, last = layer(x[:4], y[:4], [4], state)
    found = layer.step(x[:4], y[:4], state)
    torch.testing.assert_close(hidden(found)[0], whole, **EXACT)
    torch.testing.assert_close(found, last, **EXACT)


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        (("lrn", 3, 4, 2), ("lrn", 3, 4), "the lower cell must have one layer"),
        (("lrn", 3, 4), ("gru", 3, 4), "one kind and size, got lrn_tanh of 4 and gru of 4"),
        (("lrn", 3, 4), ("lrn", 3, 5), "got lrn_tanh of 4 and lrn_tanh of 5"),
    ],
)
def test_parts_that_do_not_fit(lower, upper, said):
    with pytest.raises(ValueError, match=said):
        TwoCells(make_unit(*lower), make_unit(*upper))


def test_a_residual_connection_is_refused():
    """The cells are walked by their halves, which have none."""
    with pytest.raises(ValueError, match="the upper cell cannot have a residual connection, got LRN"):
        TwoCells(make_unit("lrn", 4, 4), make_unit("lrn", 4, 4, residual=True))
