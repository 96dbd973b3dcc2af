"""What a user sees without running anything: signatures, names, printed form."""

from __future__ import annotations

import inspect

import pytest
import torch
from helpers import ACTIVATED, PAIRS
from torch import nn

import lrn

DESIGN = (
    "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, "
    "*, norm=None, residual=False, activation='tanh', device=None, dtype=None"
)

names = pytest.mark.parametrize("name", lrn.UNITS)


def plain(signature):
    """A signature without its annotations."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def class_of(name):
    return type(lrn.make_unit(name, 1, 1))


@names
def test_constructor(name):
    """The promised signature, the same for all; `activation` only where there is a choice, and GRU's own."""
    instead = " hidden_bias=False," if name == "gru" else ""
    wanted = DESIGN if name in ACTIVATED else DESIGN.replace(" activation='tanh',", instead)
    assert plain(inspect.signature(class_of(name))) == f"({wanted})"


@names
def test_positional_order_is_that_of_torch(name):
    """`nn.LSTM(300, 256, 2, True, True, 0.5, True)` can be renamed and nothing else."""
    unit = class_of(name)(3, 4, 2, False, True, 0.5, True)
    theirs = nn.LSTM(3, 4, 2, False, True, 0.5, True)
    for setting in (
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
    ):
        assert getattr(unit, setting) == getattr(theirs, setting)


@names
def test_calls(name):
    """The calling contract."""
    cls = class_of(name)
    assert (
        plain(inspect.signature(cls.forward)) == "(input, state=None, *, lengths=None, reset=None, hx=None)"
    )
    assert plain(inspect.signature(cls.step)) == "(input, state=None)"
    assert plain(inspect.signature(cls.project)) == "(input, layer=0)"
    assert (
        plain(inspect.signature(cls.recur)) == "(projected, state=None, *, lengths=None, reset=None, layer=0)"
    )


@names
def test_public_names(name):
    """Every unit is there under its own name, and make_unit makes exactly it."""
    cls = getattr(lrn, name.upper())
    assert class_of(name) is cls
    assert name.upper() in lrn.__all__
    assert issubclass(cls, lrn.Unit)
    assert issubclass(cls, nn.Module)
    assert inspect.getdoc(cls)
    assert all(hasattr(lrn, public) for public in lrn.__all__)


@names
def test_state_contract(name):
    """A pair for LSTM and SRU, one tensor for the rest, shaped as in torch.nn."""
    unit = lrn.make_unit(name, 3, 4, num_layers=2, bidirectional=True)
    output, state = unit(torch.zeros(5, 2, 3))
    assert output.shape == (5, 2, 8)
    if name in PAIRS:
        assert isinstance(state, tuple)
        assert [part.shape for part in state] == [(4, 2, 4)] * 2
    else:
        assert state.shape == (4, 2, 4)


KWARGS = [
    {},
    {"num_layers": 2},
    {"bias": False},
    {"batch_first": True, "bidirectional": True},
    {"num_layers": 3, "bias": False, "batch_first": True, "dropout": 0.25, "bidirectional": True},
]


@pytest.mark.parametrize("kwargs", KWARGS)
@names
def test_printed_like_torch(name, kwargs):
    """A printed model reads as before, with another name."""
    theirs = repr(nn.LSTM(3, 4, **kwargs))
    assert repr(lrn.make_unit(name, 3, 4, **kwargs)) == theirs.replace("LSTM", name.upper())


def test_own_options_are_printed_too():
    """What torch does not have is shown where it is not the default."""
    assert repr(lrn.LRN(3, 4, norm="rms", activation="identity")) == (
        "LRN(3, 4, norm='rms', activation='identity')"
    )
    assert repr(lrn.LSTM(3, 4, norm="layer")) == "LSTM(3, 4, norm='layer')"
    assert repr(lrn.GRU(3, 4, hidden_bias=True)) == "GRU(3, 4, hidden_bias=True)"


@names
def test_flatten_parameters_is_there(name):
    """Code written for nn.LSTM calls it before every run."""
    assert lrn.make_unit(name, 3, 4).flatten_parameters() is None


def test_engine_choice_is_a_block():
    """`with lrn.engine(...)` picks the engine inside and gives the old choice back."""
    unit, x = lrn.LRN(3, 4), torch.randn(5, 2, 3)
    assert "torch" in lrn.engines()
    expected, _ = unit(x)
    for name in lrn.engines():
        with lrn.engine(name):
            output, _ = unit(x)
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-6)


@names
def test_subclass(name):
    """A user's class made from a unit runs as that unit, and goes by its own name."""
    own = class_of(name)
    unit = type("Mine", (own,), {})(3, 4)
    twin = own(3, 4)
    twin.load_state_dict(unit.state_dict())
    x = torch.randn(5, 2, 3)
    assert torch.equal(unit(x)[0], twin(x)[0])
    assert repr(unit) == "Mine(3, 4)"
