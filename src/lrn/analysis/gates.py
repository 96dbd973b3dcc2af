"""The gates of a unit over one sequence: what its recurrence does, laid open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.units import ELRN, GLRN, LRN, OLRN, SRU
from lrn.units.bases import ElementwiseUnit


@dataclass(frozen=True)
class Gates:
    """One sequence through one layer, everything ``[T, H]``, in the unit's memory recurrence

    ``m_t = g(i_t ⊙ v_t + f_t ⊙ m_{t-1})``

    where the memory m is h (SRU: c) and, for oLRN, i and f contain the output gate. Gates are given by their
    logarithms, which do not underflow.
    """

    log_i: Tensor
    log_f: Tensor
    v: Tensor
    memory: Tensor
    before: Tensor  # the memory one step earlier
    jacobian: Tensor  # ∂m_t / ∂m_{t-1}, which is diagonal: eq. (9)
    activation: str


@torch.no_grad()
def gates_of(unit: ElementwiseUnit, x: Tensor, state: Tensor | None = None) -> Gates:
    """The gates of ``unit``, of one layer and one direction, over the sequence ``x [T, I]``."""
    _check(unit, x)
    projected = unit.project(x)
    assert isinstance(projected, Tensor)
    first = x.new_zeros(unit.hidden_size) if state is None else state.reshape(-1)
    if isinstance(unit, SRU):
        both = (torch.zeros_like(first)[None], first[None])
        memory = _walk_sru(unit, projected, both)
    else:
        output, _ = unit.recur(projected, first[None])
        assert isinstance(output, Tensor)
        memory = output
    before = torch.cat([first[None], memory[:-1]])
    return _open(unit, projected, memory, before)


def _walk_sru(unit: SRU, projected: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
    """SRU's memory c at every step."""
    memory = []
    for step in projected:
        _, state = unit.recur(step[None], state)  # type: ignore[assignment]
        memory.append(state[1][0])
    return torch.stack(memory) if memory else projected.new_zeros(0, unit.hidden_size)


def _open(unit: ElementwiseUnit, projected: Tensor, memory: Tensor, before: Tensor) -> Gates:
    parts = projected.unflatten(-1, (unit.gates, unit.hidden_size)).unbind(-2)
    log_i, log_f, v, jacobian = _opener(unit)(unit, parts, before)
    activation = getattr(unit, "activation", "identity")
    if activation == "tanh":
        jacobian = (1 - memory**2) * jacobian
    return Gates(log_i, log_f, v, memory, before, jacobian, activation)


Opened = tuple[Tensor, Tensor, Tensor, Tensor]
"""log i, log f, v, and the derivative of ``i ⊙ v + f ⊙ m_{t-1}`` by ``m_{t-1}``, by way of i and f too."""


def _open_lrn(unit: ElementwiseUnit, parts: Sequence[Tensor], before: Tensor) -> Opened:
    q, k, v = parts
    i, f = torch.sigmoid(k + before), torch.sigmoid(q - before)
    jacobian = i * (1 - i) * v - f * (1 - f) * before + f
    return F.logsigmoid(k + before), F.logsigmoid(q - before), v, jacobian


def _open_olrn(unit: ElementwiseUnit, parts: Sequence[Tensor], before: Tensor) -> Opened:
    log_i, log_f, v, jacobian = _open_lrn(unit, parts[:3], before)
    c = log_i.exp() * v + log_f.exp() * before
    log_o = F.logsigmoid(parts[3] - c)
    o = log_o.exp()
    return log_i + log_o, log_f + log_o, v, (o - o * (1 - o) * c) * jacobian


def _open_glrn(unit: ElementwiseUnit, parts: Sequence[Tensor], before: Tensor) -> Opened:
    q, v = parts
    f = torch.sigmoid(q - before)
    jacobian = f + f * (1 - f) * (v - before)
    return F.logsigmoid(before - q), F.logsigmoid(q - before), v, jacobian


def _open_elrn(unit: ElementwiseUnit, parts: Sequence[Tensor], before: Tensor) -> Opened:
    return _open_glrn(unit, (torch.zeros_like(before), *parts), before)


def _open_sru(unit: ElementwiseUnit, parts: Sequence[Tensor], before: Tensor) -> Opened:
    _, x_f, v, _ = parts
    v_f = unit.v_f_l0
    assert isinstance(v_f, Tensor)
    pre = x_f + v_f * before
    f = torch.sigmoid(pre)
    return F.logsigmoid(-pre), F.logsigmoid(pre), v, f + f * (1 - f) * v_f * (before - v)


OPENERS: dict[type[ElementwiseUnit], Callable[[ElementwiseUnit, Sequence[Tensor], Tensor], Opened]] = {
    LRN: _open_lrn,
    OLRN: _open_olrn,
    GLRN: _open_glrn,
    ELRN: _open_elrn,
    SRU: _open_sru,
}
"""How the gates of each unit follow from its fused products ``[T, H]`` and the memory one step earlier."""


def _opener(unit: nn.Module) -> Callable[[ElementwiseUnit, Sequence[Tensor], Tensor], Opened]:
    """That of the unit's class, or of the one that it extends."""
    for cls in type(unit).__mro__:
        if cls in OPENERS:
            return OPENERS[cls]
    known = ", ".join(cls.__name__ for cls in OPENERS)
    raise TypeError(f"expected one of lrn's elementwise units ({known}), got {type(unit).__name__}")


def _check(unit: ElementwiseUnit, x: Tensor) -> None:
    _opener(unit)
    if unit.num_layers != 1 or unit.bidirectional:
        raise ValueError(
            f"the analysis takes one layer in one direction; this {type(unit).__name__} has "
            f"{unit.num_layers} layers{', both directions' if unit.bidirectional else ''}"
        )
    if x.dim() != 2:
        raise ValueError(f"expected one sequence [T, I], got shape {list(x.shape)}")
    if not len(x):
        raise ValueError("the sequence is empty")
