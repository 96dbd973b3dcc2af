"""How gradients travel back through time: eq. (9) of the paper, and its products."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lrn.analysis.gates import gates_of
from lrn.nn import keep_at_first
from lrn.units import hidden, make_unit
from lrn.units.bases import ElementwiseUnit


@dataclass(frozen=True)
class Gradients:
    """The one-step Jacobians of an elementwise unit, which are diagonal, over one sequence.

    Args:
        jacobian: the diagonals ``∂m_t / ∂m_{t-1}``, m being h (SRU: c), ``[T, H]``.
    """

    jacobian: Tensor

    def back(self, t: int, distance: int) -> Tensor:
        """The diagonal of ``∂m_t / ∂m_{t - distance}``, ``[H]``."""
        if not 0 <= distance <= t + 1 or t >= len(self.jacobian):
            raise ValueError(f"there is no step {distance} before {t} in {len(self.jacobian)} steps")
        return self.jacobian[t + 1 - distance : t + 1].prod(0)

    def norms(self) -> Tensor:
        """The root mean square of ``∂m_T / ∂m_{T - n}`` over channels, for n = 0 … T; ``[T + 1]``.

        1 means that a gradient arrives as it set out. The products are taken by logarithms, so that they
        vanish as late as the numbers allow.
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
    """The norms of ``Gradients.norms`` for any recurrent layer (``nn.RNN``, ``lrn.GRU``, …), by autograd.

    They are those of the hidden state's part h alone, of one layer in one direction over the sequence
    ``x [T, I]``: ``‖∂h_T / ∂h_{T-n}‖ / √H`` in the Frobenius norm, for n = 0 … T; ``[T + 1]``.

    >>> import torch
    >>> norms = distance_norms(torch.nn.GRU(3, 4), torch.randn(6, 3))
    >>> norms.shape, round(float(norms[0]), 3)
    (torch.Size([7]), 1.0)
    """
    with torch.enable_grad():
        chain = _hidden_states(unit, x.detach())
        rows = [
            torch.cat(torch.autograd.grad(channel, chain, retain_graph=True, materialize_grads=True))
            for channel in chain[-1].flatten()
        ]
    jacobians = torch.stack(rows)  # [channel of h_T, t, channel of h_t]
    return jacobians.pow(2).sum(2).mean(0).sqrt().flip(0)


def _hidden_states(unit: nn.Module, x: Tensor) -> list[Tensor]:
    """The states h_0 … h_T, ``[1, H]`` each, every one a node of the graph."""
    width: Any = unit.hidden_size
    h = x.new_zeros((1, width), requires_grad=True)
    pair = isinstance(unit, nn.LSTM) or getattr(unit, "parts", 1) == 2
    state = (h, torch.zeros_like(h)) if pair else h
    chain = [h]
    for x_t in x:
        _, state = unit(x_t[None], state)
        chain.append(hidden(state))
    return chain


def norms_by_unit(
    units: Iterable[str], steps: int, hidden: int, keep: float = 0.0, seed: int = 1
) -> dict[str, list[float]]:
    """How much of a gradient arrives n steps back, for n = 0 … ``steps``: of ``nn.RNN``, then of each unit.

    The units have first weights and ``hidden`` channels, and read a random sequence. A ``keep`` other than 0
    is the bias with which they begin by keeping their state, as far as they have one of their own for that.

    >>> norms = norms_by_unit(["lrn", "lstm"], steps=3, hidden=4)
    >>> {name: len(found) for name, found in norms.items()}
    {'nn.RNN': 4, 'lrn': 4, 'lstm': 4}
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        x = torch.randn(steps, hidden, dtype=torch.float64)
        norms = {"nn.RNN": distance_norms(nn.RNN(hidden, hidden, dtype=x.dtype), x)}
        for name in units:
            unit = make_unit(name, hidden, hidden, dtype=x.dtype)
            if keep and unit.forget_gate is not None:
                keep_at_first(unit, keep)
            if isinstance(unit, ElementwiseUnit):
                norms[name] = gradients(unit, x).norms()
            else:
                norms[name] = distance_norms(unit, x)
    return {name: found.tolist() for name, found in norms.items()}
