"""The gradient of each elementwise cell's step, written out in plain torch: of all steps at once, if need be.

``slope(x, m, after, weight, dy, dm, tanh)`` gets the gates ``x``, the memory ``m`` before the step and
``after`` it, the cell's own vectors, the gradient ``dy`` of the output from above and ``dm`` of the memory
from later steps. It returns the gradients of the gates, of the memory before the step, and of the vectors.
``tanh`` says whether the output activation is tanh or nothing at all. All of it is linear in dy and dm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

Slope: TypeAlias = tuple[Tensor, Tensor, Tensor | None]


def _back(d: Tensor, y: Tensor, tanh: bool) -> Tensor:
    return d * (1 - y * y) if tanh else d


def _lrn(x: Tensor, h: Tensor, y: Tensor, weight: Tensor | None, dy: Tensor, dm: Tensor, tanh: bool) -> Slope:
    q, k, v = x.unbind(-2)
    i, f = torch.sigmoid(k + h), torch.sigmoid(q - h)
    d = _back(dy + dm, y, tanh)
    dk, dq = d * v * (i * (1 - i)), d * h * (f * (1 - f))
    return torch.stack([dq, dk, d * i], -2), d * f + (dk - dq), None


def _olrn(
    x: Tensor, h: Tensor, y: Tensor, weight: Tensor | None, dy: Tensor, dm: Tensor, tanh: bool
) -> Slope:
    q, k, v, o = x.unbind(-2)
    i, f = torch.sigmoid(k + h), torch.sigmoid(q - h)
    c = i * v + f * h
    g = torch.sigmoid(o - c)
    d = dy + dm
    d_o = d * c * (g * (1 - g))
    dc = d * g - d_o
    dk, dq = dc * v * (i * (1 - i)), dc * h * (f * (1 - f))
    return torch.stack([dq, dk, dc * i, d_o], -2), dc * f + (dk - dq), None


def _glrn(
    x: Tensor, h: Tensor, y: Tensor, weight: Tensor | None, dy: Tensor, dm: Tensor, tanh: bool
) -> Slope:
    q, v = x.unbind(-2)
    f = torch.sigmoid(q - h)
    d = _back(dy + dm, y, tanh)
    dq = (d * h - d * v) * (f * (1 - f))
    return torch.stack([dq, d * (1 - f)], -2), d * f - dq, None


def _elrn(
    x: Tensor, h: Tensor, y: Tensor, weight: Tensor | None, dy: Tensor, dm: Tensor, tanh: bool
) -> Slope:
    (v,) = x.unbind(-2)
    f = torch.sigmoid(-h)
    d = _back(dy + dm, y, tanh)
    df = (d * h - d * v) * (f * (1 - f))
    return (d * (1 - f)).unsqueeze(-2), d * f - df, None


def _sru(
    x: Tensor, c: Tensor, after: Tensor, weight: Tensor | None, dy: Tensor, dm: Tensor, tanh: bool
) -> Slope:
    assert weight is not None
    x_r, x_f, x_c, x_h = x.unbind(-2)
    v_r, v_f = weight.unbind(-2)
    r, f = torch.sigmoid(x_r + v_r * c), torch.sigmoid(x_f + v_f * c)
    dr = (dy * after - dy * x_h) * (r * (1 - r))
    d = dm + dy * r
    df = (d * c - d * x_c) * (f * (1 - f))
    gates = torch.stack([dr, df, d * (1 - f), dy * (1 - r)], -2)
    return gates, d * f + (df * v_f + dr * v_r), torch.stack([dr * c, df * c], -2)


SLOPES: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor, bool], Slope]] = {
    "lrn": _lrn,
    "olrn": _olrn,
    "glrn": _glrn,
    "elrn": _elrn,
    "sru": _sru,
}
"""By the name of a cell without that of its activation."""
