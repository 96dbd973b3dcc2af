"""Units and linear maps with int8 weights: their arithmetic, contract and copies, and what they refuse."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch
from helpers import VARIANTS, make, parts, randn, random_state, says, tensors
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import lrn
from lrn.migration.int8 import INT8, Int8Linear, int8_unit

all_variants = pytest.mark.parametrize("variant", VARIANTS)
FLOAT = {"dtype": torch.float32}


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def twins(variant, *args, **kwargs):
    """A unit in float32 and the same with int8 weights, not so large that a walk blows errors up."""
    unit = make(variant, *args, **FLOAT, **kwargs).eval()
    for parameter in unit.parameters():
        parameter.mul_(0.5)
    return unit, int8_unit(copy.deepcopy(unit))


def near(actual, expected, share=0.04):
    """Apart by a few hundredths of their size: what 7 and 8 bits cost."""
    for one, other in zip(tensors(actual), tensors(expected), strict=True):
        assert one.shape == other.shape
        assert one.dtype == torch.float32
        assert (one - other).norm() <= share * other.norm().clamp_min(1e-6)
        assert other.numel() == 0 or not torch.equal(one, other)


# The product ------------------------------------------------------------------------------------


def test_the_arithmetic_by_hand():
    """Weights rounded to 8 bits a row, what goes in to 7 bits over its range; the product is then exact."""
    x, weight, bias = (randn(*shape, dtype=torch.float32) for shape in ((6, 10), (5, 10), (5,)))
    scale = weight.abs().amax(1, keepdim=True) / 127
    rounded = (weight / scale).round() * scale
    low, high = x.min(), x.max()
    step = (high - low) / 127
    zero = (-low / step).round()
    inside = ((x / step).round() + zero).clamp(0, 127)
    expected = (inside - zero) * step @ rounded.t() + bias
    found = Int8Linear(weight, bias)
    torch.testing.assert_close(found(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.weight, rounded)
    assert found.int8.dtype == torch.int8
    assert found.int8.abs().max() == 127


def test_shapes():
    linear = Int8Linear(randn(5, 3, dtype=torch.float32), None)
    for shape in ((3,), (0, 3), (2, 3), (2, 4, 3), (2, 0, 3)):
        assert linear(torch.randn(shape)).shape == (*shape[:-1], 5)
    strided = torch.randn(3, 7).t()
    assert torch.equal(linear(strided), linear(strided.contiguous()))


def test_weights_of_zeros():
    linear = Int8Linear(torch.zeros(5, 3), torch.ones(5))
    assert torch.equal(linear(torch.randn(2, 3)), torch.ones(2, 5))


def test_no_warning_reaches_the_user():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Int8Linear(torch.ones(8, 8), None)(torch.ones(1, 8))


def test_what_a_product_refuses():
    linear = Int8Linear(torch.ones(5, 3), None)
    with pytest.raises(ValueError, match=says("must have 3 features", "(2, 4)")):
        linear(torch.ones(2, 4))
    with pytest.raises(TypeError, match=says("float32 on the CPU", "torch.float64 on cpu")):
        linear(torch.ones(2, 3, dtype=torch.float64))
    with pytest.raises(TypeError, match=says("float32 on the CPU", "on meta")):
        linear(torch.ones(2, 3, device="meta"))
    with pytest.raises(ValueError, match="NaN"):
        linear(torch.full((2, 3), float("nan")))
    with pytest.raises(RuntimeError, match=says("cannot be trained", "model.eval()")):
        linear.train()(torch.ones(2, 3))
    with torch.enable_grad(), pytest.raises(RuntimeError, match=says("no gradient", "torch.no_grad()")):
        linear.eval()(torch.ones(2, 3, requires_grad=True))


# The units --------------------------------------------------------------------------------------


@all_variants
def test_the_walk_is_float32(variant):
    """Projected by int8 and walked over by hand is what the unit gives, bit for bit."""
    unit, small = twins(variant, bidirectional=True, norm="rms" if variant == "lrn" else None)
    x, state = randn(7, 3, 3, dtype=torch.float32), random_state(unit, 3)
    projected = small.project(x)
    for one, other in zip(tensors(small(x, state)), tensors(unit.recur(projected, state)), strict=True):
        assert torch.equal(one, other)
    near(projected, unit.project(x))


@pytest.mark.parametrize("norm", [None, "layer", "rms"])
@all_variants
def test_layers_directions_lengths_and_packing(variant, norm):
    unit, small = twins(variant, 8, 16, 2, bidirectional=True, batch_first=True, norm=norm)
    x, lengths = randn(4, 9, 8, dtype=torch.float32), [9, 4, 0, 1]
    state = random_state(unit, 4)
    near(small(x, state), unit(x, state), 0.1)
    padded = x.clone()
    padded[1, 4:] = float("nan")  # what is behind the end is never looked at
    near(small(padded, state, lengths=lengths), unit(padded, state, lengths=lengths), 0.1)
    packed = pack_padded_sequence(x[:2], torch.tensor([4, 9]), batch_first=True, enforce_sorted=False)
    near(small(packed), unit(packed), 0.1)


@all_variants
def test_steps(variant):
    """A stream: each step is brought to 8 bits by itself, so that it is near the whole, not equal to it."""
    unit, small = twins(variant, 8, 16)
    x, state = randn(5, 2, 8, dtype=torch.float32), random_state(unit, 2)
    outputs, now = [], state
    for x_t in x:
        output, now = small.step(x_t, now)
        outputs.append(output)
    whole, final = unit(x, state)
    near((torch.stack(outputs), *parts(now)), (whole, *parts(final)), 0.1)
    assert small.step(x[0, 0])[0].shape == (16,)


def test_they_are_units():
    """By class, by name, by what they say of themselves, and for code that sees nn.LSTM's pair."""
    for cls, small in INT8.items():
        unit = int8_unit(cls(3, 4))
        assert isinstance(unit, cls)
        assert type(unit) is small
        assert unit.cell == cls(3, 4).cell
        assert unit(torch.zeros(0, 2, 3))[0].shape == (0, 2, 4)
    swapped = int8_unit(lrn.replace(nn.LSTM(3, 4), verbose=False).eval())
    assert len(swapped(torch.randn(5, 2, 3))[1]) == 2
    assert not [name for name, _ in int8_unit(lrn.LRN(3, 4)).named_parameters()]
    with pytest.raises(TypeError, match="Int8LRN cannot draw new weights"):
        int8_unit(lrn.LRN(3, 4)).reset_parameters()


def test_wrong_input_is_told_as_ever():
    unit = int8_unit(lrn.LRN(3, 4).eval())
    with pytest.raises(ValueError, match=says("Int8LRN: input must have 3 features")):
        unit(torch.zeros(5, 2, 4))
    with pytest.raises(TypeError, match=says("Int8LRN: input must be torch.float32")):
        unit(torch.zeros(5, 2, 3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="cannot be trained"):
        unit.train()(torch.zeros(5, 2, 3))


def test_autocast():
    unit, x = int8_unit(lrn.LRN(3, 4).eval()), torch.randn(5, 2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        output, _ = unit(x.bfloat16())
    near(output.float(), unit(x)[0], 0.1)


def test_weight_drop_is_left_behind():
    """A parametrised unit is taken as it evaluates."""
    unit = lrn.LRN(3, 4).eval()
    lrn_nn = pytest.importorskip("lrn.nn")
    lrn_nn.drop_weights(unit, 0.5)
    unit.eval()
    x = torch.randn(5, 2, 3)
    expected = unit(x)
    near(int8_unit(unit)(x), expected, 0.1)


# Copies -----------------------------------------------------------------------------------------


@all_variants
def test_copies_pickles_and_files(variant):
    _, small = twins(variant, num_layers=2, bidirectional=True, norm="rms")
    x = randn(5, 2, 3, dtype=torch.float32)
    expected = small(x)
    file = io.BytesIO()
    torch.save(small, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for twin in (copy.deepcopy(small), pickle.loads(pickle.dumps(small)), loaded):
        assert type(twin) is type(small)
        assert all(torch.equal(a, b) for a, b in zip(tensors(twin(x)), tensors(expected), strict=True))


def test_state_dict():
    """Plain tensors, which other weights of the same shape can take, also after a run."""
    _, one = twins("lrn", num_layers=2)
    _, other = twins("lrn", num_layers=2, seed=5)
    x = randn(5, 2, 3, dtype=torch.float32)
    assert not torch.equal(one(x)[0], other(x)[0])
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(one(x)[0], other(x)[0])
    assert set(one.state_dict()) == {
        f"products.{n}.{what}" for n in (0, 1) for what in ("int8", "scale", "bias")
    }
    with pytest.raises(RuntimeError, match="weight_ih_l0"):
        one.load_state_dict(lrn.LRN(3, 4, 2).state_dict())


def test_moved_to_another_type():
    """Said when it runs, and undone by moving back."""
    unit, x = int8_unit(lrn.LRN(3, 4).eval()), torch.randn(5, 2, 3)
    expected = unit(x)[0]
    unit.double()
    with pytest.raises(TypeError, match="float32"):
        unit(x.double())
    assert torch.equal(unit.float()(x)[0], expected)


@all_variants
def test_residual_connections_are_kept(variant):
    unit, small = twins(variant, 4, 4, 2, residual=True)
    near(small(randn(5, 3, 4).float()), unit(randn(5, 3, 4).float()))
    assert small.residual
