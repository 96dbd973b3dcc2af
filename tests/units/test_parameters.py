"""How many parameters each unit has, what they are called, and how they start."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from helpers import ACTIVATED, VARIANTS, make
from torch import nn

import lrn

COUNTS = {
    "lrn": lambda i, h: 3 * h * (i + 1),
    "olrn": lambda i, h: 4 * h * (i + 1),
    "glrn": lambda i, h: 2 * h * (i + 1),
    "elrn": lambda i, h: h * (i + 1),
    "atr": lambda i, h: h * (i + h + 2),
    "sru": lambda i, h: 4 * h * i + 6 * h,
    "lstm": lambda i, h: 4 * h * (i + h + 1),
    "gru": lambda i, h: 3 * h * (i + h + 1),
}
"""Parameters per layer and direction, bias on and norm off."""

BIASES = {"lrn": 3, "olrn": 4, "glrn": 2, "elrn": 1, "atr": 2, "sru": 4, "lstm": 4, "gru": 3}
"""Vectors of size H that `bias=False` takes away."""

NORMS = {
    "lrn": 3,
    "olrn": 4,
    "glrn": 2,
    "elrn": 1,
    "atr": 1 + 1,
    "sru": 4,
    "lstm": 4 + 4,
    "gru": 3 + 3,
}
"""Vectors of size H that a norm adds: one scale per fused output, on each side."""

MATRIX = ("atr", "lstm", "gru")

names = pytest.mark.parametrize("name", lrn.UNITS)


def count(unit):
    return sum(parameter.numel() for parameter in unit.parameters())


def test_every_unit_is_covered():
    """A new unit must come with its counts."""
    assert tuple(COUNTS) == lrn.UNITS == tuple(dict.fromkeys(name for name, _ in VARIANTS.values()))


@pytest.mark.parametrize(("i", "h"), [(3, 4), (300, 256), (1, 1)])
@names
def test_count_of_one_layer(name, i, h):
    """The formulas of the paper's tables: one bias per gate."""
    assert count(lrn.make_unit(name, i, h)) == COUNTS[name](i, h)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@names
def test_count_of_stacks(name, layers, bidirectional):
    """Layers above the first read the outputs of both directions."""
    unit = lrn.make_unit(name, 5, 4, num_layers=layers, bidirectional=bidirectional)
    d = 2 if bidirectional else 1
    assert count(unit) == d * COUNTS[name](5, 4) + (layers - 1) * d * COUNTS[name](4 * d, 4)


@names
def test_count_without_bias(name):
    """bias=False leaves the matrices, and SRU's two vectors."""
    assert count(lrn.make_unit(name, 5, 4, bias=False)) == COUNTS[name](5, 4) - 4 * BIASES[name]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@names
def test_count_with_norm(name, norm, bidirectional):
    """A norm adds a scale per output of each fused product; the bias stays the unit's own."""
    unit = lrn.make_unit(name, 5, 4, norm=norm, bidirectional=bidirectional)
    d = 2 if bidirectional else 1
    assert count(unit) == d * (COUNTS[name](5, 4) + 4 * NORMS[name])


@pytest.mark.parametrize("activation", ["tanh", "identity"])
@pytest.mark.parametrize("name", ACTIVATED)
def test_activation_has_no_parameters(name, activation):
    """The choice of g changes nothing that is stored."""
    unit, plain = lrn.make_unit(name, 3, 4, activation=activation), lrn.make_unit(name, 3, 4)
    assert {k: v.shape for k, v in unit.state_dict().items()} == {
        k: v.shape for k, v in plain.state_dict().items()
    }


def test_count_of_the_hidden_bias():
    """H numbers more a layer and direction, named apart from torch's 3H."""
    plain, more = (lrn.GRU(5, 4, 2, bidirectional=True, hidden_bias=given) for given in (False, True))
    assert count(more) == count(plain) + 4 * 4
    assert set(more.state_dict()) - set(plain.state_dict()) == {
        f"bias_hn_l{layer}{suffix}" for layer in (0, 1) for suffix in ("", "_reverse")
    }


def expected_names(name, layers, bidirectional, bias, norm):
    own = ["weight_ih"]
    own += ["weight_hh"] if name in MATRIX else []
    own += ["bias_ih"] if bias else []
    own += ["bias_hh"] if bias and name == "atr" else []
    own += ["v_f", "v_r"] if name == "sru" else []
    own += ["norm_ih"] if norm else []
    own += ["norm_hh"] if norm and name in MATRIX else []
    suffixes = ["", "_reverse"] if bidirectional else [""]
    return {f"{n}_l{layer}{suffix}" for n, layer, suffix in itertools.product(own, range(layers), suffixes)}


@pytest.mark.parametrize(
    ("layers", "bidirectional", "bias", "norm"),
    [(1, False, True, None), (2, True, True, None), (2, False, False, None), (2, True, True, "layer")],
)
@names
def test_names(name, layers, bidirectional, bias, norm):
    """Saved weights have nn.LSTM's names, so tools that know those know these."""
    unit = lrn.make_unit(name, 3, 4, num_layers=layers, bidirectional=bidirectional, bias=bias, norm=norm)
    wanted = expected_names(name, layers, bidirectional, bias, norm)
    assert set(unit.state_dict()) == wanted
    assert {key for key, _ in unit.named_parameters()} == wanted


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_names_and_shapes_are_those_of_torch(name):
    """All but the second bias, which torch keeps for CUDA's sake."""
    kwargs = {"num_layers": 2, "bidirectional": True}
    theirs = getattr(nn, name.upper())(3, 4, **kwargs).state_dict()
    ours = lrn.make_unit(name, 3, 4, **kwargs).state_dict()
    assert {k: v.shape for k, v in ours.items()} == {
        k: v.shape for k, v in theirs.items() if not k.startswith("bias_hh")
    }


@names
def test_shapes(name):
    """Gates are fused along the first axis, as in torch.nn."""
    unit = lrn.make_unit(name, 3, 4, num_layers=2, bidirectional=True)
    shapes = {key: tuple(value.shape) for key, value in unit.state_dict().items()}
    gates = BIASES[name] if name != "atr" else 1
    assert shapes["weight_ih_l0"] == shapes["weight_ih_l0_reverse"] == (gates * 4, 3)
    assert shapes["weight_ih_l1"] == shapes["weight_ih_l1_reverse"] == (gates * 4, 8)
    assert shapes["bias_ih_l1_reverse"] == (gates * 4,)


@pytest.mark.parametrize("norm", [None, "layer"])
@names
def test_start_values(name, norm):
    """Glorot per gate for matrices, zero biases, unit scales, small vectors for SRU."""
    torch.manual_seed(0)
    i, h = 40, 30
    unit = lrn.make_unit(name, i, h, num_layers=2, bidirectional=True, norm=norm)
    for key, value in unit.named_parameters():
        if key.startswith("weight"):
            bound = math.sqrt(6 / (value.shape[1] + h))
        elif key.startswith("bias"):
            assert not value.any(), key
            continue
        elif key.startswith("norm"):
            assert torch.equal(value, torch.ones_like(value)), key
            continue
        else:
            bound = 1 / math.sqrt(h)
        assert value.abs().max() <= bound, key
        assert value.abs().max() > 0.8 * bound, key
        assert abs(value.mean()) < 0.3 * bound, key


@names
def test_start_values_follow_the_seed(name):
    """The same seed gives the same unit; reset_parameters draws a new one."""
    torch.manual_seed(1)
    one = lrn.make_unit(name, 3, 4)
    torch.manual_seed(1)
    other = lrn.make_unit(name, 3, 4)
    assert torch.equal(one.weight_ih_l0, other.weight_ih_l0)
    other.reset_parameters()
    assert not torch.equal(one.weight_ih_l0, other.weight_ih_l0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_dtype_and_device(dtype):
    """Parameters are born where and as they were asked for."""
    unit = make("sru", norm="rms", dtype=dtype)
    assert {parameter.dtype for parameter in unit.parameters()} == {dtype}
    meta = lrn.SRU(3, 4, device="meta")
    assert {parameter.device.type for parameter in meta.parameters()} == {"meta"}
