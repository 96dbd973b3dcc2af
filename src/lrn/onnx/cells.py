"""The step of every cell in ONNX, line by line that of ``recurrence/cells.py``.

A step takes the products of one time step and the previous state, tensors ``[B, H]`` each, and gives the new
state, of which the first tensor is the hidden state h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from lrn.onnx.nodes import Nodes, Value
from lrn.recurrence.cells import ACTIVATIONS, NORM_EPS

Values = Sequence[Value]
Step = Callable[[Nodes, Values, Values, Values], list[Value]]
"""A step of an elementwise cell: products of the input, state, vectors of its own -> the new state."""

Product = Callable[[Nodes, Value], Values]
"""The products of the hidden state, ``[B, H]`` each."""

MatrixStep = Callable[[Nodes, Values, Values, Product], list[Value]]
"""A step of a cell with a matrix inside: products of the input, state, the product -> the new state."""


def _activated(nodes: Nodes, g: str, x: Value) -> Value:
    return nodes("Tanh", x) if g == "tanh" else x


def _mixed(nodes: Nodes, i: Value, v: Value, f: Value, h: Value) -> Value:
    """i ⊙ v + f ⊙ h."""
    return nodes("Add", nodes("Mul", i, v), nodes("Mul", f, h))


def _between(nodes: Nodes, f: Value, h: Value, v: Value) -> Value:
    """f ⊙ h + (1 − f) ⊙ v, without a constant: v + f ⊙ (h − v)."""
    return nodes("Add", v, nodes("Mul", f, nodes("Sub", h, v)))


def _lrn(g: str, nodes: Nodes, x: Values, state: Values, vectors: Values) -> list[Value]:
    (q, k, v), (h,) = x, state
    i = nodes("Sigmoid", nodes("Add", k, h))
    f = nodes("Sigmoid", nodes("Sub", q, h))
    return [_activated(nodes, g, _mixed(nodes, i, v, f, h))]


def _olrn(nodes: Nodes, x: Values, state: Values, vectors: Values) -> list[Value]:
    (q, k, v, o), (h,) = x, state
    i = nodes("Sigmoid", nodes("Add", k, h))
    f = nodes("Sigmoid", nodes("Sub", q, h))
    c = _mixed(nodes, i, v, f, h)
    return [nodes("Mul", nodes("Sigmoid", nodes("Sub", o, c)), c)]


def _glrn(g: str, nodes: Nodes, x: Values, state: Values, vectors: Values) -> list[Value]:
    (q, v), (h,) = x, state
    f = nodes("Sigmoid", nodes("Sub", q, h))
    return [_activated(nodes, g, _between(nodes, f, h, v))]


def _elrn(g: str, nodes: Nodes, x: Values, state: Values, vectors: Values) -> list[Value]:
    (v,), (h,) = x, state
    f = nodes("Sigmoid", nodes("Neg", h))
    return [_activated(nodes, g, _between(nodes, f, h, v))]


def _sru(nodes: Nodes, x: Values, state: Values, vectors: Values) -> list[Value]:
    (x_r, x_f, x_c, x_h), (v_r, v_f), (_, c) = x, vectors, state
    r = nodes("Sigmoid", nodes("Add", x_r, nodes("Mul", v_r, c)))
    f = nodes("Sigmoid", nodes("Add", x_f, nodes("Mul", v_f, c)))
    c = _between(nodes, f, c, x_c)
    return [_between(nodes, r, c, x_h), c]


STEPS: dict[str, Step] = {
    **{f"lrn_{g}": partial(_lrn, g) for g in ACTIVATIONS},
    "olrn": _olrn,
    **{f"glrn_{g}": partial(_glrn, g) for g in ACTIVATIONS},
    **{f"elrn_{g}": partial(_elrn, g) for g in ACTIVATIONS},
    "sru": _sru,
}
"""The elementwise cells by name."""


# With a product of the hidden state ---------------------------------------------------------------


def _atr(g: str, nodes: Nodes, x: Values, state: Values, product: Product) -> list[Value]:
    (p,), (h,) = x, state
    (q,) = product(nodes, h)
    i = nodes("Sigmoid", nodes("Add", p, q))
    f = nodes("Sigmoid", nodes("Sub", p, q))
    return [_activated(nodes, g, _mixed(nodes, i, p, f, h))]


def _lstm(nodes: Nodes, x: Values, state: Values, product: Product) -> list[Value]:
    h, c = state
    i, f, g, o = (nodes("Add", *pair) for pair in zip(x, product(nodes, h), strict=True))
    c = _mixed(nodes, nodes("Sigmoid", f), c, nodes("Sigmoid", i), nodes("Tanh", g))
    return [nodes("Mul", nodes("Sigmoid", o), nodes("Tanh", c)), c]


def _gru(nodes: Nodes, x: Values, state: Values, product: Product) -> list[Value]:
    (x_r, x_z, x_n), (h,) = x, state
    h_r, h_z, h_n = product(nodes, h)
    r = nodes("Sigmoid", nodes("Add", x_r, h_r))
    z = nodes("Sigmoid", nodes("Add", x_z, h_z))
    n = nodes("Tanh", nodes("Add", x_n, nodes("Mul", r, h_n)))
    return [_between(nodes, z, h, n)]


MATRIX_STEPS: dict[str, MatrixStep] = {
    **{f"atr_{g}": partial(_atr, g) for g in ACTIVATIONS},
    "lstm": _lstm,
    "gru": _gru,
}
"""The cells with a matrix inside, by name."""


def normalised(
    nodes: Nodes, product: Value, norm: str, scale: Value, bias: Value | None, kind: ir.DataType
) -> Value:
    """A fused product ``[B, W]``, normalised over its whole width, scaled, and with its bias."""
    if norm == "layer":
        return nodes("LayerNormalization", product, scale, bias, axis=-1, epsilon=NORM_EPS)
    scaled = nodes("Mul", divided(nodes, product, 1, NORM_EPS, kind), scale)
    return scaled if bias is None else nodes("Add", scaled, bias)


def divided(nodes: Nodes, x: Value, dimensions: int, epsilon: float, kind: ir.DataType) -> Value:
    """x divided by the root of its mean square over the last dimensions.

    The epsilon is no scalar: of one, the exporter's optimizer would take 1e-8 for zero, and leave it out.
    """
    squares = nodes("ReduceMean", nodes("Mul", x, x), nodes.numbers(*range(-dimensions, 0)))
    added = nodes("Add", squares, nodes.constant(np.array([epsilon], kind.numpy())))
    return nodes("Div", x, nodes("Sqrt", added))
