"""A small example per unit, worked out by hand: 3 inputs, 2 hidden, 3 steps, plain scalar arithmetic.

Each function is one step of the unit as its equations are printed, with nothing from `lrn` in it; the
numbers it must come to stand below as literals.
"""

from __future__ import annotations

from math import exp, tanh

import pytest
import torch
from helpers import VARIANTS

import lrn

X = [[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.25, 0.5, 1.0]]
H0, C0 = [0.25, -0.5], [-0.4, 0.3]
J = (0, 1)  # the two hidden entries


def table(rows, columns, shift):
    """Weights between -0.5 and 0.5 that are easy to write down."""
    return [[((3 * i + 5 * j + shift) % 11 - 5) / 10 for j in range(columns)] for i in range(rows)]


def vector(size, shift):
    return [((4 * i + shift) % 9 - 4) / 10 for i in range(size)]


def sigmoid(z):
    return 1 / (1 + exp(-z))


def identity(z):
    return z


def affine(weight, bias, x):
    return [sum(w * v for w, v in zip(row, x, strict=True)) + b for row, b in zip(weight, bias, strict=True)]


def product(weight, x):
    return affine(weight, [0.0] * len(weight), x)


def lrn_step(g):
    def step(x, h, c, p):
        z = affine(p["weight_ih"], p["bias_ih"], x)
        q, k, v = z[0:2], z[2:4], z[4:6]
        i = [sigmoid(k[j] + h[j]) for j in J]
        f = [sigmoid(q[j] - h[j]) for j in J]
        return [g(i[j] * v[j] + f[j] * h[j]) for j in J], None

    return step


def olrn_step(x, h, c, p):
    z = affine(p["weight_ih"], p["bias_ih"], x)
    q, k, v, o = z[0:2], z[2:4], z[4:6], z[6:8]
    c = [sigmoid(k[j] + h[j]) * v[j] + sigmoid(q[j] - h[j]) * h[j] for j in J]
    return [sigmoid(o[j] - c[j]) * c[j] for j in J], None


def glrn_step(g):
    def step(x, h, c, p):
        z = affine(p["weight_ih"], p["bias_ih"], x)
        q, v = z[0:2], z[2:4]
        f = [sigmoid(q[j] - h[j]) for j in J]
        return [g((1 - f[j]) * v[j] + f[j] * h[j]) for j in J], None

    return step


def elrn_step(g):
    def step(x, h, c, p):
        v = affine(p["weight_ih"], p["bias_ih"], x)
        f = [sigmoid(-h[j]) for j in J]
        return [g((1 - f[j]) * v[j] + f[j] * h[j]) for j in J], None

    return step


def atr_step(g):
    def step(x, h, c, u):
        p = affine(u["weight_ih"], u["bias_ih"], x)
        q = affine(u["weight_hh"], u["bias_hh"], h)
        i = [sigmoid(p[j] + q[j]) for j in J]
        f = [sigmoid(p[j] - q[j]) for j in J]
        return [g(i[j] * p[j] + f[j] * h[j]) for j in J], None

    return step


def sru_step(x, h, c, p):
    z = affine(p["weight_ih"], p["bias_ih"], x)
    x_r, x_f, x_c, x_h = z[0:2], z[2:4], z[4:6], z[6:8]
    f = [sigmoid(x_f[j] + p["v_f"][j] * c[j]) for j in J]
    r = [sigmoid(x_r[j] + p["v_r"][j] * c[j]) for j in J]
    c = [f[j] * c[j] + (1 - f[j]) * x_c[j] for j in J]
    return [r[j] * c[j] + (1 - r[j]) * x_h[j] for j in J], c


def lstm_step(x, h, c, p):
    u = product(p["weight_hh"], h)
    z = [a + b for a, b in zip(affine(p["weight_ih"], p["bias_ih"], x), u, strict=True)]
    i, f = [sigmoid(a) for a in z[0:2]], [sigmoid(a) for a in z[2:4]]
    g, o = [tanh(a) for a in z[4:6]], [sigmoid(a) for a in z[6:8]]
    c = [f[j] * c[j] + i[j] * g[j] for j in J]
    return [o[j] * tanh(c[j]) for j in J], c


def gru_step(x, h, c, p):
    second = [0.0] * 4 + p.get("bias_hn", [0.0] * 2)
    a, u = affine(p["weight_ih"], p["bias_ih"], x), affine(p["weight_hh"], second, h)
    r = [sigmoid(a[j] + u[j]) for j in J]
    z = [sigmoid(a[2 + j] + u[2 + j]) for j in J]
    n = [tanh(a[4 + j] + r[j] * u[4 + j]) for j in J]
    return [(1 - z[j]) * n[j] + z[j] * h[j] for j in J], None


STEPS = {
    "lrn": lrn_step(tanh),
    "lrn-identity": lrn_step(identity),
    "olrn": olrn_step,
    "glrn": glrn_step(tanh),
    "glrn-identity": glrn_step(identity),
    "elrn": elrn_step(tanh),
    "elrn-identity": elrn_step(identity),
    "atr": atr_step(tanh),
    "atr-identity": atr_step(identity),
    "sru": sru_step,
    "lstm": lstm_step,
    "gru": gru_step,
    "gru-hidden_bias": gru_step,
}

# Per unit: the output h of the three steps; then, for units with a memory, its final c.
KNOWN = {
    "lrn": (
        [[0.5021476107, -0.3078524040], [0.2955984940, -0.1153957556], [0.1618415599, -0.0928480617]],
        None,
    ),
    "lrn-identity": (
        [[0.5521737387, -0.3181712314], [0.3206916252, -0.1235669676], [0.1730696581, -0.0975389208]],
        None,
    ),
    "olrn": (
        [[0.1593595488, -0.1122453817], [0.0745358486, 0.0100068514], [0.0287728436, -0.0131009592]],
        None,
    ),
    "glrn": (
        [[0.1249145557, -0.5071184778], [0.0760608940, -0.3123415341], [0.0145714347, -0.2489646932]],
        None,
    ),
    "glrn-identity": (
        [[0.1255704146, -0.5588429944], [0.0765277428, -0.3646844751], [0.0147968426, -0.2869468337]],
        None,
    ),
    "elrn": (
        [[0.5672939221, -0.1680428098], [0.3067519837, 0.0005531401], [0.1993408875, 0.0002764936]],
        None,
    ),
    "elrn-identity": (
        [[0.6435235506, -0.1696519148], [0.3363831576, -0.0004665006], [0.2130808924, -0.0002333047]],
        None,
    ),
    "atr": (
        [[0.7025119626, -0.0686925642], [0.4151503557, 0.0741449281], [0.2564782605, 0.0388624025]],
        None,
    ),
    "atr-identity": (
        [[0.8722430254, -0.0688009169], [0.5228491398, 0.0776002824], [0.3103236447, 0.0400883239]],
        None,
    ),
    "sru": (
        [[0.0164813335, -0.2341655412], [0.0816816576, 0.1168610465], [-0.0074568333, -0.0984079338]],
        [0.0978560868, 0.0448840635],
    ),
    "lstm": (
        [[0.1215280401, 0.0709144302], [0.1122990471, 0.1344277193], [0.0492660467, 0.0428893223]],
        [0.1072867106, 0.0959601145],
    ),
    "gru": (
        [[0.5145223369, 0.0489247171], [0.3186417087, 0.1675237371], [0.1544945949, 0.0611491633]],
        None,
    ),
    "gru-hidden_bias": (
        [[0.5145223369, 0.2045599323], [0.2947326831, 0.3322184315], [0.1173921643, 0.2341223241]],
        None,
    ),
}


def prepare(variant):
    """The unit with the example's weights, and the same weights as plain lists."""
    name, kwargs = VARIANTS[variant]
    unit = lrn.make_unit(name, 3, 2, dtype=torch.float64, **kwargs)
    weights = {}
    for key, parameter in unit.named_parameters():
        short = key.removesuffix("_l0")
        shift = sum(map(ord, short))  # every parameter its own
        if parameter.dim() == 2:
            weights[short] = table(*parameter.shape, shift)
        else:
            weights[short] = vector(parameter.shape[0], shift)
        with torch.no_grad():
            parameter.copy_(torch.tensor(weights[short], dtype=torch.float64))
    return unit, weights


def by_hand(variant, weights):
    h, c, outputs = H0, C0, []
    for x in X:
        h, c = STEPS[variant](x, h, c, weights)
        outputs.append(h)
    return outputs, c


def test_every_unit_has_an_example():
    """A new unit must come with one."""
    assert tuple(STEPS) == tuple(KNOWN) == tuple(VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_known_values(variant):
    """Unit, hand calculation and the printed numbers, all three alike."""
    unit, weights = prepare(variant)
    outputs, c = by_hand(variant, weights)
    printed, printed_c = KNOWN[variant]
    assert outputs == [pytest.approx(row, abs=1e-9) for row in printed]

    start = torch.tensor([H0, C0], dtype=torch.float64).view(2, 1, 1, 2)
    output, final = unit(
        torch.tensor(X, dtype=torch.float64).view(3, 1, 3),
        (start[0], start[1]) if unit.parts == 2 else start[0],
    )
    assert output[:, 0].tolist() == [pytest.approx(row, abs=1e-12) for row in outputs]
    h_n, *c_n = final if unit.parts == 2 else (final,)
    assert h_n[0, 0].tolist() == pytest.approx(printed[-1], abs=1e-9)
    assert [part[0, 0].tolist() for part in c_n] == (
        [] if c is None else [pytest.approx(printed_c, abs=1e-9)]
    )
