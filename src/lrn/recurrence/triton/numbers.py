"""The sigmoid and the tanh of all cells: no overflow and no NaN at any size, exact at both ends.

They are made of what every target and the interpreter have, so that all of them compute the same formulas.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

INTERPRETED: bool = triton.knobs.runtime.interpret
"""Whether kernels are run step by step in Python."""

part: Any = (lambda function: function) if INTERPRETED else triton.jit
"""Marks a function that is part of kernels. The interpreter would set itself up anew at every call of a jitted one."""

NEAR = tl.constexpr(0.6)
"""Below it tanh is a quotient of two polynomials, above one of two sums with e^-2x."""


@part
def sigmoid(x):
    """1 / (1 + e^-x): where e^-x overflows the quotient is 0, as it should be."""
    return 1.0 / (1.0 + tl.exp(-x))


@part
def tanh(x):
    """(1 - e^-2|x|) / (1 + e^-2|x|) with the sign of x; near zero, where that cancels, a continued fraction.

    x / (1 + x² / (3 + x² / (5 + …))), cut off where the type cannot tell it from tanh any more, and multiplied
    out. All coefficients are positive, so that nothing cancels there.
    """
    z = x * x
    if x.dtype == tl.float64:
        top = x * (34459425.0 + z * (4729725.0 + z * (135135.0 + z * (990.0 + z))))
        bottom = 34459425.0 + z * (16216200.0 + z * (945945.0 + z * (13860.0 + z * 45.0)))
    else:
        top = x * (945.0 + z * (105.0 + z))
        bottom = 945.0 + z * (420.0 + z * 15.0)
    fading = tl.exp(-2.0 * tl.abs(x))
    near = tl.abs(x) < NEAR
    far = tl.where(x < 0, fading - 1.0, 1.0 - fading)
    return tl.where(near, top, far) / tl.where(near, bottom, 1.0 + fading)
