"""`norm` against a direct computation: over the whole fused product, eps 1e-8, scale, then bias."""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, assert_same, make, randn, random_state

EPS = 1e-8
MATRIX = ["atr", "atr-identity", "lstm", "gru"]

all_variants = pytest.mark.parametrize("variant", VARIANTS)
norms = pytest.mark.parametrize("norm", ["layer", "rms"])


def normalised(z, norm):
    """One direction's fused product, all gates together, at zero mean and unit size."""
    if norm == "layer":
        z = z - z.mean(-1, keepdim=True)
    return z / (z.square().mean(-1, keepdim=True) + EPS).sqrt()


def input_side(unit, x, suffix):
    z = x @ getattr(unit, "weight_ih" + suffix).T
    z = normalised(z, unit.norm) * getattr(unit, "norm_ih" + suffix)
    return z + getattr(unit, "bias_ih" + suffix) if unit.bias else z


@pytest.mark.parametrize("bias", [True, False])
@norms
@all_variants
def test_projection(variant, norm, bias):
    """Each direction is normalised by itself, on every layer."""
    unit = make(variant, num_layers=2, bidirectional=True, norm=norm, bias=bias)
    for layer, width in enumerate([3, 8]):
        x = randn(4, 2, width)
        sides = [input_side(unit, x, f"_l{layer}"), input_side(unit, x, f"_l{layer}_reverse")]
        assert_same(unit.project(x, layer), torch.cat(sides, -1))


def hidden_side(unit, h, suffix):
    z = normalised(h @ getattr(unit, "weight_hh" + suffix).T, unit.norm) * getattr(unit, "norm_hh" + suffix)
    bias = getattr(unit, "bias_hh" + suffix, None)
    return z if bias is None else z + bias


def atr(unit, p, q, h, c):
    new = torch.sigmoid(p + q) * p + torch.sigmoid(p - q) * h
    return (torch.tanh(new) if unit.activation == "tanh" else new), c


def lstm(unit, p, q, h, c):
    i, f, g, o = (p + q).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru(unit, p, q, h, c):
    (p_r, p_z, p_n), (q_r, q_z, q_n) = p.chunk(3, -1), q.chunk(3, -1)
    z = torch.sigmoid(p_z + q_z)
    return (1 - z) * torch.tanh(p_n + torch.sigmoid(p_r + q_r) * q_n) + z * h, c


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@norms
@pytest.mark.parametrize("variant", MATRIX)
def test_hidden_side(variant, norm, reverse, bias):
    """Units with a matrix inside the recurrence normalise that product too, at every step."""
    unit = make(variant, bidirectional=True, norm=norm, bias=bias)
    x, start = randn(5, 2, 3), random_state(unit, 2)
    output, final = unit(x, start)
    step = {"atr": atr, "lstm": lstm, "gru": gru}[type(unit).__name__.lower()]
    direction, suffix = int(reverse), "_l0_reverse" if reverse else "_l0"
    h = (start[0] if unit.parts == 2 else start)[direction]
    c = start[1][direction] if unit.parts == 2 else None
    outputs = []
    for x_t in x.flip(0) if reverse else x:
        h, c = step(unit, input_side(unit, x_t, suffix), hidden_side(unit, h, suffix), h, c)
        outputs.append(h)
    expected = torch.stack(outputs[::-1] if reverse else outputs)
    assert_same(output[..., 4 * direction : 4 * direction + 4], expected)
    if c is not None:
        assert_same(final[1][direction], c)


@norms
@all_variants
def test_size_of_the_input_does_not_matter(variant, norm):
    """What a norm is for: ten times the input is the same input."""
    unit, x = make(variant, norm=norm), randn(5, 2, 3)
    assert_same(unit(10 * x), unit(x), atol=1e-5)


def test_layer_and_rms_differ():
    """Two norms, not one under two names; and neither is none at all."""
    x = randn(5, 2, 3)
    results = []
    for norm in (None, "layer", "rms"):
        unit = make("lrn")
        other = make("lrn", norm=norm)
        other.load_state_dict(unit.state_dict(), strict=False)
        results.append(other(x)[0])
    assert all((results[a] - results[b]).abs().max() > 1e-3 for a in range(3) for b in range(a + 1, 3))


@norms
@pytest.mark.parametrize("variant", ["lrn", "lstm", "atr"])
def test_product_of_zeros(variant, norm):
    """A zero input, or the zero state at the start, divides by eps and not by zero; gradients too."""
    unit = make(variant, norm=norm, bias=False)
    x = torch.zeros(3, 2, 3, dtype=torch.float64, requires_grad=True)
    output, _ = unit(x)
    output.sum().backward()
    assert output.isfinite().all()
    assert all(tensor.grad.isfinite().all() for tensor in [x, *unit.parameters()])
