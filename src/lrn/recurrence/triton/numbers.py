"""The sigmoid and the tanh of all cells: no overflow and no NaN at any size, exact at both ends.

They are made of what every target and the interpreter have, so that all of them compute the same formulas.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

INTERPRETED: bool = triton.knobs.runtime.interpret
"""Whether kernels are run step by step in Python."""

_INTERPRETED = tl.constexpr(INTERPRETED)

part: Any = (lambda function: function) if INTERPRETED else triton.jit
"""Marks a function that is part of kernels.

The interpreter would set itself up anew at every call of a jitted one.
"""

# The interpreter cuts numbers off where it turns them into bfloat16, and loses the smallest ones. So here is
# what hardware does, for it alone: to the nearest, of two that are equally near to the even one.


@part
def computed(x, TYPE: tl.constexpr):  # noqa: N803
    """A number as it is stored, in the type in which is computed."""
    if _INTERPRETED and x.dtype == tl.bfloat16:
        return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
    return x.to(TYPE)


@part
def stored(x, TYPE: tl.constexpr):  # noqa: N803
    """A computed number, in the type in which it is stored."""
    if _INTERPRETED and TYPE == tl.bfloat16:  # noqa: SIM300
        bits = x.to(tl.uint32, bitcast=True)
        bits = tl.where(x == x, bits + 0x7FFF + ((bits >> 16) & 1), bits | 0x400000)  # NaN stays NaN
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(TYPE)


NEAR = tl.constexpr(0.6)
"""Below it tanh is a quotient of two polynomials, above it is 1 less a quotient with e^-2x."""


@part
def sigmoid(x):
    """1 / (1 + e^-x): where e^-x overflows the quotient is 0, as it should be."""
    return 1.0 / (1.0 + tl.exp(-x))


@part
def tanh(x):
    """1 - 2e^-2|x| / (1 + e^-2|x|) with the sign of x; near zero, where that cancels, a continued fraction.

    What is taken from 1 is small, and so are its roundings, so that 1 - tanh², the gradient, has the digits
    that one rounding leaves it. Near zero it is x / (1 + x² / (3 + x² / (5 + …))), cut off where the type
    cannot tell it from tanh any more, and multiplied out. All coefficients are positive, so that nothing
    cancels there, and the first is 1, so that of the smallest numbers x itself is left.
    """
    z = x * x
    if x.dtype == tl.float64:
        top = x * (1 + z * (7 / 51 + z * (1 / 255 + z * (2 / 69615 + z * (1 / 34459425)))))
        bottom = 1 + z * (8 / 17 + z * (7 / 255 + z * (4 / 9945 + z * (1 / 765765))))
    else:
        top = x * (1 + z * (1 / 9 + z * (1 / 945)))
        bottom = 1 + z * (4 / 9 + z * (1 / 63))
    fading = tl.exp(-2.0 * tl.abs(x))
    near = tl.abs(x) < NEAR
    quotient = tl.where(near, top, 2.0 * fading) / tl.where(near, bottom, 1.0 + fading)
    far = tl.where(x < 0, quotient - 1.0, 1.0 - quotient)
    return tl.where(near, quotient, far)
