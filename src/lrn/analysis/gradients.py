"""How gradients travel back through time: eq. (9) of the paper, and its products."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lrn.analysis.gates import gates_of
from lrn.units.kinds import ElementwiseUnit


@dataclass(frozen=True)
class Gradients:
    """The one-step Jacobians of an elementwise unit, which are diagonal, over one sequence.

    Args:
        jacobian: ``[T, H]``: ``∂m_t / ∂m_{t-1}``, m being h (SRU: c).
    """

    jacobian: Tensor

    def back(self, t: int, distance: int) -> Tensor:
        """``∂m_t / ∂m_{t - distance}``, ``[H]``."""
        if not 0 <= distance <= t + 1 or t >= len(self.jacobian):
            raise ValueError(f"there is no step {distance} before {t} in {len(self.jacobian)} steps")
        return self.jacobian[t + 1 - distance : t + 1].prod(0)

    def norms(self) -> Tensor:
        """Root mean square of ``∂m_T / ∂m_{T - n}`` over channels, for n = 0 … T; ``[T + 1]``.

        1 means that a gradient arrives as it set out. Worked out from logarithms, so that it vanishes as late
        as the numbers allow.
        """
        log = self.jacobian.abs().log().flip(0).cumsum(0)
        log = torch.cat([torch.zeros_like(log[:1]), log])
        mean: Tensor = torch.logsumexp(2 * log, 1) - math.log(self.jacobian.shape[1])
        return (mean / 2).exp()


def gradients(unit: ElementwiseUnit, x: Tensor) -> Gradients:
    """The one-step Jacobians of ``unit`` (one layer, one direction) over the sequence ``x [T, I]``.

    >>> import torch, lrn
    >>> found = gradients(lrn.LRN(3, 4), torch.randn(6, 3))
    >>> found.norms().shape
    torch.Size([7])
    """
    return Gradients(gates_of(unit, x).jacobian)


def distance_norms(unit: nn.Module, x: Tensor) -> Tensor:
    """The same norms for any recurrent layer (``nn.RNN``, ``nn.LSTM``, ``lrn.GRU``, …), by autograd.

    Of the hidden state's part h alone; ``‖∂h_T / ∂h_{T-n}‖ / √H`` in the Frobenius norm, for n = 0 … T.

    >>> import torch
    >>> norms = distance_norms(torch.nn.GRU(3, 4), torch.randn(6, 3))
    >>> norms.shape, round(float(norms[0]), 3)
    (torch.Size([7]), 1.0)
    """
    step = _stepper(unit)
    with torch.enable_grad():
        width: Any = unit.hidden_size
        h = x.new_zeros((1, width), requires_grad=True)
        carried = _with_hidden(unit, h)
        chain = [h]
        for x_t in x.detach():
            h, carried = step(x_t, carried)
            chain.append(h)
        rows = []
        last = chain[-1].reshape(-1)
        for channel in range(len(last)):
            rows.append(torch.autograd.grad(last[channel], chain, retain_graph=True, materialize_grads=True))
    squares = [sum(float(row[n].pow(2).sum()) for row in rows) for n in range(len(chain))]
    return torch.tensor([(s / width) ** 0.5 for s in reversed(squares)])


def _with_hidden(unit: nn.Module, h: Tensor) -> Any:
    """A state that begins with ``h``, and zeros where the unit carries more."""
    pair = isinstance(unit, nn.LSTM) or getattr(unit, "parts", 1) == 2
    return (h, torch.zeros_like(h)) if pair else h


def _stepper(unit: nn.Module) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
    """One step at a time, so that every hidden state is a node of the graph."""

    def step(x_t: Tensor, state: Any) -> tuple[Tensor, Any]:
        _, after = unit(x_t[None], state)
        return (after[0] if isinstance(after, tuple) else after), after

    return step
