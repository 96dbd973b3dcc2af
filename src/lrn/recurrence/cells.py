"""The definition: every cell's step and the walk over time, in plain torch.

Nothing here is fast and nothing here is clever. Each engine is tested against this file, double
backward goes through it, and on devices without an engine of their own it is what runs.

A *step* takes the projected products of one time step and the previous state, and returns the new
state: a tuple whose first entry is the hidden state ``h``, which is also the step's output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

State = tuple[Tensor, ...]
Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {"tanh": torch.tanh, "identity": lambda x: x}


REVERSE = {"forward": (False,), "reverse": (True,), "both": (False, True)}
"""Which way each direction of a layer walks, by the name of them all."""


@dataclass(frozen=True)
class Cell:
    """An elementwise recurrence: what its step reads, and the step itself.

    ``step(x, state, weight)`` gets ``x [..., gates, H]``, ``state`` as ``parts`` tensors
    ``[..., H]`` and ``weight [..., vectors, H]`` (None if the cell has no vectors of its own).
    """

    name: str
    gates: int
    step: Callable[[Tensor, State, Tensor | None], State]
    parts: int = 1
    vectors: int = 0


def _lrn(g: Activation) -> Callable[[Tensor, State, Tensor | None], State]:
    def step(x: Tensor, state: State, weight: Tensor | None) -> State:
        q, k, v = x.unbind(-2)
        (h,) = state
        i = torch.sigmoid(k + h)  # eq. (2)
        f = torch.sigmoid(q - h)  # eq. (3)
        return (g(i * v + f * h),)  # eq. (4)

    return step


def _olrn(x: Tensor, state: State, weight: Tensor | None) -> State:
    q, k, v, o = x.unbind(-2)
    (h,) = state
    c = torch.sigmoid(k + h) * v + torch.sigmoid(q - h) * h
    return (torch.sigmoid(o - c) * c,)


def _glrn(g: Activation) -> Callable[[Tensor, State, Tensor | None], State]:
    def step(x: Tensor, state: State, weight: Tensor | None) -> State:
        q, v = x.unbind(-2)
        (h,) = state
        f = torch.sigmoid(q - h)
        return (g((1 - f) * v + f * h),)

    return step


def _elrn(g: Activation) -> Callable[[Tensor, State, Tensor | None], State]:
    def step(x: Tensor, state: State, weight: Tensor | None) -> State:
        (v,) = x.unbind(-2)
        (h,) = state
        f = torch.sigmoid(-h)
        return (g((1 - f) * v + f * h),)

    return step


def _sru(x: Tensor, state: State, weight: Tensor | None) -> State:
    assert weight is not None
    x_r, x_f, x_c, x_h = x.unbind(-2)
    v_r, v_f = weight.unbind(-2)
    _, c = state
    r = torch.sigmoid(x_r + v_r * c)
    f = torch.sigmoid(x_f + v_f * c)
    c = f * c + (1 - f) * x_c
    return r * c + (1 - r) * x_h, c


CELLS: dict[str, Cell] = {
    cell.name: cell
    for cell in (
        *(Cell(f"lrn_{name}", 3, _lrn(g)) for name, g in ACTIVATIONS.items()),
        Cell("olrn", 4, _olrn),
        *(Cell(f"glrn_{name}", 2, _glrn(g)) for name, g in ACTIVATIONS.items()),
        *(Cell(f"elrn_{name}", 1, _elrn(g)) for name, g in ACTIVATIONS.items()),
        Cell("sru", 4, _sru, parts=2, vectors=2),
    )
}

# The three units with a matrix inside the recurrence. `hidden` is that product, h' -> U h' (+ bias).
Hidden = Callable[[Tensor], Tensor]
MatrixStep = Callable[[Tensor, State], State]


@dataclass(frozen=True)
class MatrixCell:
    """A recurrence with a product of the hidden state inside it, and how its step is made from that product.

    ``step(hidden)(x, state)`` gets ``x [..., gates*H]`` and ``state`` as ``parts`` tensors ``[..., H]``;
    ``hidden`` gives ``[..., gates*H]``.
    """

    name: str
    gates: int
    step: Callable[[Hidden], MatrixStep]
    parts: int = 1


def _atr(g: Activation) -> Callable[[Hidden], MatrixStep]:
    def make(hidden: Hidden) -> MatrixStep:
        def step(x: Tensor, state: State) -> State:
            (h,) = state
            q = hidden(h)
            return (g(torch.sigmoid(x + q) * x + torch.sigmoid(x - q) * h),)

        return step

    return make


def _lstm(hidden: Hidden) -> MatrixStep:
    def step(x: Tensor, state: State) -> State:
        h, c = state
        i, f, g, o = (x + hidden(h)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    return step


def _gru(hidden: Hidden) -> MatrixStep:
    def step(x: Tensor, state: State) -> State:
        (h,) = state
        x_r, x_z, x_n = x.chunk(3, -1)
        h_r, h_z, h_n = hidden(h).chunk(3, -1)
        z = torch.sigmoid(x_z + h_z)
        n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
        return ((1 - z) * n + z * h,)

    return step


MATRIX_CELLS: dict[str, MatrixCell] = {
    cell.name: cell
    for cell in (
        *(MatrixCell(f"atr_{name}", 1, _atr(g)) for name, g in ACTIVATIONS.items()),
        MatrixCell("lstm", 4, _lstm, parts=2),
        MatrixCell("gru", 3, _gru),
    )
}

NORMS = ("layer", "rms")
NORM_EPS = 1e-8


def normalise(product: Tensor, norm: str, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Normalise a fused product over its whole width, then scale it, then add the bias."""
    width = product.shape[-1:]
    if norm == "layer":
        product = F.layer_norm(product, width, eps=NORM_EPS)
    else:
        product = F.rms_norm(product, width, eps=NORM_EPS)
    product = product * scale
    return product if bias is None else product + bias


def walk(
    step: Callable[[Tensor, State], State],
    x: Tensor,
    state: State,
    *,
    lengths: Tensor | None = None,
    reset: Tensor | None = None,
    reverse: bool = False,
) -> tuple[Tensor, State]:
    """Walk ``step`` over time: ``x [T, B, ...]``, state parts ``[B, H]`` -> output ``[T, B, H]``, state.

    Rows end after ``lengths [B]`` steps: later steps output zeros and leave the state alone, and what
    stands in ``x`` there is never looked at. ``reset [T, B]`` marks the first step of a new document:
    no state crosses that border, in either direction.
    """
    steps = x.shape[0]
    real = None
    if lengths is not None:
        real = torch.arange(steps, device=x.device)[:, None] < lengths
        x = x.masked_fill(~real.view(*real.shape, *[1] * (x.dim() - 2)), 0)
        reset = reset & real if reset is not None else None
    if reset is not None and reverse:  # walking back, the border before t is met on the way to t - 1
        reset = torch.cat([reset[1:], torch.zeros_like(reset[:1])])

    outputs: list[Tensor] = []
    each = x.unbind(0)  # not x[t], whose gradient is as long as the whole sequence, at every step
    for t in reversed(range(steps)) if reverse else range(steps):
        if reset is not None:
            border = reset[t].unsqueeze(-1)
            state = tuple(part.masked_fill(border, 0) for part in state)
        new = step(each[t], state)
        if real is None:
            outputs.append(new[0])
            state = new
        else:
            on = real[t].unsqueeze(-1)
            outputs.append(new[0].masked_fill(~on, 0))
            state = tuple(torch.where(on, n, s) for n, s in zip(new, state, strict=True))
    if not outputs:
        return state[0].new_empty(0, *state[0].shape), state
    return torch.stack(outputs[::-1] if reverse else outputs), state


def scan(
    cell: Cell,
    x: Tensor,
    state: Tensor,
    weight: Tensor | None = None,
    *,
    lengths: Tensor | None = None,
    reset: Tensor | None = None,
    reverse: tuple[bool, ...] = (False,),
) -> tuple[Tensor, Tensor]:
    """Run an elementwise cell over a sequence, one direction beside the other.

    ``x [T, B, D, gates, H]``, ``state [parts, D, B, H]``, ``weight [B, D, vectors, H]`` ->
    output ``[T, B, D * H]`` and the final state, shaped like ``state``.
    """
    outputs, finals = [], []
    for d, backward in enumerate(reverse):
        w = weight[:, d] if weight is not None else None
        output, final = walk(
            lambda x_t, s, w=w: cell.step(x_t, s, w),  # type: ignore[misc]
            x[:, :, d],
            tuple(state[:, d].unbind(0)),
            lengths=lengths,
            reset=reset,
            reverse=backward,
        )
        outputs.append(output)
        finals.append(torch.stack(final))
    return torch.cat(outputs, -1), torch.stack(finals, 1)
