"""The engine's own sigmoid and tanh, over the whole range of floats, read through one step of a cell."""

import math

import numpy as np
import pytest
import torch

from lrn.recurrence import Rows, scan

ULP = 2.0**-23  # of 1.0 in float32
EPS = 2.0**-52  # of 1.0 in float64


def sigmoid(k):
    """lrn_identity from h = 0 with v = 1: σ(k)·1 + σ(q)·0."""
    return one_step("lrn_identity", torch.zeros_like(k), k, torch.ones_like(k))


def tanh(v):
    """lrn_tanh from h = 0 with its input gate open wide: tanh(1·v + σ(q)·0)."""
    return one_step("lrn_tanh", torch.zeros_like(v), torch.full_like(v, torch.inf), v)


def one_step(cell, *gates):
    x = torch.stack(gates).view(1, 1, 1, 3, -1)
    output, _ = scan(cell, x, x.new_zeros(1, 1, 1, x.shape[-1]), None, Rows(1))
    return output.view(-1)


FUNCTIONS = {"sigmoid": (sigmoid, torch.sigmoid), "tanh": (tanh, torch.tanh)}


def sweep():
    """Every 1021st float there is, NaN left out, and closely where something changes."""
    patterns = torch.arange(-(2**31), 2**31, 1021).to(torch.int32).view(torch.float32)
    near = torch.linspace(-1e-3, 1e-3, 20_001)
    folds = torch.arange(-260, 261) * (math.log(2) / 2)  # where the exponent of e^x, or e^2x, steps
    edges = torch.cat(
        [folds, folds / 2, torch.tensor([-89.0, -88.37, -20.0, -10.0, 10.0, 20.0, 88.37, 89.0])]
    )
    dense = edges[:, None] + torch.linspace(-1e-4, 1e-4, 201)
    values = torch.cat([patterns, near, dense.view(-1)])
    return values[~values.isnan()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_error(name):
    """At most 2 ulp of 1.0 anywhere; relative to the result where it is small, too."""
    ours, reference = FUNCTIONS[name]
    x = sweep()
    exact = reference(x.double())
    error = (ours(x).double() - exact).abs()
    assert error.max() <= 2 * ULP
    if name == "tanh":
        normal = x.abs() > 1e-37
        assert (error / exact.abs())[normal].max() <= 4 * ULP
        assert error[~normal].max() <= 2.0**-149
    else:
        falling = (x >= -85) & (x <= 0)
        assert (error / exact)[falling].max() <= 1e-6


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_error(name):
    """tanh to 4 eps relative everywhere; sigmoid to 2 eps of 1.0, and 4 relative until its tail at -20."""
    if np.finfo(np.longdouble).eps > EPS / 100:
        pytest.skip("needs a long double wider than double")
    line, powers = (lambda *ends: torch.linspace(*ends, 100_001, dtype=torch.float64)), torch.arange(-300, 1)
    small = torch.outer(10.0 ** powers.double(), line(0.1, 1)[::100]).view(-1)
    x = torch.cat([line(-745, 745), line(-40, 0), line(0, 40), small, -small])
    wide = x.numpy().astype(np.longdouble)
    exact = np.tanh(wide) if name == "tanh" else 1 / (1 + np.exp(-wide))
    error = np.abs(FUNCTIONS[name][0](x).numpy().astype(np.longdouble) - exact)
    assert error.max() <= 2 * EPS
    relative = error[exact != 0] / np.abs(exact[exact != 0])
    judged = slice(None) if name == "tanh" else wide[exact != 0] >= -20
    assert relative[judged].max() <= 4 * EPS


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_saturation(dtype):
    """Exactly 0, 1 and ±1 at the ends, NaN for NaN, zero for zero."""
    inf, nan = torch.inf, torch.nan
    far = torch.tensor([-inf, -1e30, -800, 0, 800, 1e30, inf, nan], dtype=dtype)
    assert sigmoid(far)[:-1].tolist() == [0, 0, 0, 0.5, 1, 1, 1]
    assert tanh(far)[:-1].tolist() == [-1, -1, -1, 0, 1, 1, 1]
    assert sigmoid(far)[-1].isnan()
    assert tanh(far)[-1].isnan()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bounds_and_order(name):
    """Never outside [0, 1] or [-1, 1], and never falling by more than one rounding."""
    ours, _ = FUNCTIONS[name]
    y = ours(torch.cat([torch.linspace(-100, -25, 100_000), torch.linspace(-25, 25, 1_000_001)]))
    assert y.max() <= 1
    assert y.min() >= (-1 if name == "tanh" else 0)
    assert y.diff().min() >= -ULP


def test_tanh_is_odd():
    x = torch.linspace(0, 30, 100_001)
    assert (tanh(-x) + tanh(x)).abs().max() <= 2 * ULP


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_exactly(dtype):
    """All 65536 numbers of a half type are read, and float32's result rounded to nearest, as torch does."""
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    for ours, _ in FUNCTIONS.values():
        expected = ours(every.float()).to(dtype)
        torch.testing.assert_close(ours(every), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_are_stored_as_torch_does(dtype):
    """Rounding ties, subnormals and overflow: identity cells hand on sums of two half numbers."""
    every = torch.arange(-(2**15), 2**15, 7).to(torch.int16).view(dtype)
    other = every.flip(0).nan_to_num(0, 0, 0) * 0.37
    open_wide = torch.full_like(every, torch.inf)
    x = torch.stack([open_wide, open_wide, every]).view(1, 1, 1, 3, -1)  # h = v + h'
    output, final = scan("lrn_identity", x, other.view(1, 1, 1, -1), None, Rows(1))
    expected = (every.float() + other.float()).to(dtype)
    for result in (output, final):
        torch.testing.assert_close(result.view(-1), expected, rtol=0, atol=0, equal_nan=True)
