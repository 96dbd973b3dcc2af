"""One small function per cell for a step forward, and one for its gradient. The equations are those of
../cells.py.

``forward(x, m, weight, TANH)`` gets the gates ``x``, the previous memory ``m`` and the cell's own vectors
``weight``; it returns the output and the new memory, which is the output itself but for SRU.

``backward(x, m, after, weight, dy, dm, TANH)`` gets the memory after the step as well, the gradient ``dy``
of the output from above and ``dm`` of the memory from later steps; it returns the gradients of the gates, of
the previous memory, and of the vectors. ``TANH`` says whether the output activation is tanh or nothing at
all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton.language as tl

from lrn.recurrence.triton.numbers import part, sigmoid, tanh

# What is known when compiling is in capitals, as everywhere in Triton.
# ruff: noqa: N803


@part
def _activated(x, TANH: tl.constexpr):
    if TANH:
        x = tanh(x)
    return x


@part
def _back(d, y, TANH: tl.constexpr):
    """A gradient back through the activation, given its output.

    1 - y² as a product: 1 - |y| is exact where y is large, and no square is rounded.
    """
    if TANH:
        d = d * ((1.0 - y) * (1.0 + y))
    return d


@part
def _lrn(x, h, weight, TANH: tl.constexpr):
    q, k, v = x
    y = _activated(sigmoid(k + h) * v + sigmoid(q - h) * h, TANH)
    return y, y


@part
def _lrn_backward(x, h, y, weight, dy, dm, TANH: tl.constexpr):
    q, k, v = x
    i, f = sigmoid(k + h), sigmoid(q - h)
    d = _back(dy + dm, y, TANH)
    dk, dq = d * v * (i * (1.0 - i)), d * h * (f * (1.0 - f))
    return (dq, dk, d * i), d * f + (dk - dq), ()


@part
def _olrn(x, h, weight, TANH: tl.constexpr):
    q, k, v, o = x
    c = sigmoid(k + h) * v + sigmoid(q - h) * h
    y = sigmoid(o - c) * c
    return y, y


@part
def _olrn_backward(x, h, y, weight, dy, dm, TANH: tl.constexpr):
    q, k, v, o = x
    i, f = sigmoid(k + h), sigmoid(q - h)
    c = i * v + f * h
    g = sigmoid(o - c)
    d = dy + dm
    d_o = d * c * (g * (1.0 - g))
    dc = d * g - d_o
    dk, dq = dc * v * (i * (1.0 - i)), dc * h * (f * (1.0 - f))
    return (dq, dk, dc * i, d_o), dc * f + (dk - dq), ()


@part
def _glrn(x, h, weight, TANH: tl.constexpr):
    q, v = x
    f = sigmoid(q - h)
    y = _activated((1.0 - f) * v + f * h, TANH)
    return y, y


@part
def _glrn_backward(x, h, y, weight, dy, dm, TANH: tl.constexpr):
    q, v = x
    f = sigmoid(q - h)
    d = _back(dy + dm, y, TANH)
    dq = (d * h - d * v) * (f * (1.0 - f))
    return (dq, d * (1.0 - f)), d * f - dq, ()


@part
def _elrn(x, h, weight, TANH: tl.constexpr):
    v = x[0]
    f = sigmoid(-h)
    y = _activated((1.0 - f) * v + f * h, TANH)
    return y, y


@part
def _elrn_backward(x, h, y, weight, dy, dm, TANH: tl.constexpr):
    v = x[0]
    f = sigmoid(-h)
    d = _back(dy + dm, y, TANH)
    df = (d * h - d * v) * (f * (1.0 - f))
    return (d * (1.0 - f),), d * f - df, ()


@part
def _sru(x, c, weight, TANH: tl.constexpr):
    x_r, x_f, x_c, x_h = x
    v_r, v_f = weight
    r, f = sigmoid(x_r + v_r * c), sigmoid(x_f + v_f * c)
    c = f * c + (1.0 - f) * x_c
    return r * c + (1.0 - r) * x_h, c


@part
def _sru_backward(x, c, after, weight, dy, dm, TANH: tl.constexpr):
    x_r, x_f, x_c, x_h = x
    v_r, v_f = weight
    r, f = sigmoid(x_r + v_r * c), sigmoid(x_f + v_f * c)
    dr = (dy * after - dy * x_h) * (r * (1.0 - r))
    d = dm + dy * r
    df = (d * c - d * x_c) * (f * (1.0 - f))
    return (dr, df, d * (1.0 - f), dy * (1.0 - r)), d * f + (df * v_f + dr * v_r), (dr * c, df * c)


class Steps(NamedTuple):
    """A cell's step and its gradient."""

    forward: Any
    backward: Any


STEPS = {
    "lrn": Steps(_lrn, _lrn_backward),
    "olrn": Steps(_olrn, _olrn_backward),
    "glrn": Steps(_glrn, _glrn_backward),
    "elrn": Steps(_elrn, _elrn_backward),
    "sru": Steps(_sru, _sru_backward),
}
"""By the name of a cell without that of its activation."""
