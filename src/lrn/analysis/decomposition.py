"""The hidden state as a weighted sum of all tokens so far: eq. (5) of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lrn.analysis.gates import Gates, gates_of
from lrn.units.bases import ElementwiseUnit

CHUNK = 1 << 22  # numbers at a time


@dataclass(frozen=True)
class Decomposition:
    """The weights ``w(k, t) = i_k ⊙ f_{k+1} ⊙ … ⊙ f_t`` of every token k in every later state t, by channel.

    With the identity as activation ``h_t = Σ_k w(k, t) ⊙ v_k`` exactly (from a state of zeros); with tanh
    this is what would be without it.
    """

    gates: Gates

    @property
    def steps(self) -> int:
        """The length T of the sequence."""
        return len(self.gates.v)

    def weights(self, t: int) -> Tensor:
        """The weights of all tokens up to ``t`` in the state after it, ``[t + 1, H]``."""
        if not 0 <= t < self.steps:
            raise ValueError(f"t must be from 0 to {self.steps - 1}, got {t}")
        chain = self.gates.log_f.cumsum(0)
        return (self.gates.log_i[: t + 1] + chain[t] - chain[: t + 1]).exp()

    def all_weights(self) -> Tensor:
        """The weight of every token in every state, ``[k, t, H]``, zeros where k > t.

        These are T·T·H numbers, so it is for short sequences only.
        """
        chain = self.gates.log_f.cumsum(0)
        log = self.gates.log_i[:, None] + chain[None] - chain[:, None]  # [k, t, H]
        later = torch.ones(self.steps, self.steps, dtype=torch.bool, device=log.device).triu()
        return log.masked_fill(~later[:, :, None], -torch.inf).exp()

    def mean_weights(self) -> Tensor:
        """The weights' mean over channels, ``[k, t]``, zeros where k > t, a few tokens at a time."""
        return torch.cat([part.mean(-1) for _, part in self._parts()])

    def _parts(self) -> Iterator[tuple[slice, Tensor]]:
        """All weights for some tokens k at a time, ``[some, T, H]``."""
        chain = self.gates.log_f.cumsum(0)
        size = max(1, CHUNK // chain.numel())
        place = torch.arange(self.steps, device=chain.device)
        for start in range(0, self.steps, size):
            part = slice(start, min(start + size, self.steps))
            log = (self.gates.log_i[part] - chain[part])[:, None] + chain[None]  # [some, T, H]
            later = place[None] >= place[part, None]
            yield part, log.masked_fill(~later[:, :, None], -torch.inf).exp()

    def sums(self) -> Tensor:
        """The weighted sums ``Σ_k w(k, t) ⊙ v_k`` for every t, ``[T, H]``."""
        total = torch.zeros_like(self.gates.v)
        for part, weights in self._parts():
            total += (weights * self.gates.v[part, None]).sum(0)
        return total

    def explained(self) -> Tensor:
        """The part of a state that its sum explains, ``[T]``: at most 1, ``1 − ‖h_t − sum_t‖² / ‖h_t‖²``."""
        memory = self.gates.memory
        rest = (memory - self.sums()).pow(2).sum(1)
        return 1 - rest / memory.pow(2).sum(1).clamp_min(torch.finfo(memory.dtype).tiny)


def decompose(unit: ElementwiseUnit, x: Tensor) -> Decomposition:
    """The states of ``unit`` (one layer, one direction) over the sequence ``x [T, I]`` as weighted sums.

    >>> import torch, lrn
    >>> unit = lrn.LRN(3, 4, activation="identity")
    >>> found = decompose(unit, torch.randn(6, 3))
    >>> found.weights(5).shape, bool((found.explained() > 0.999).all())
    (torch.Size([6, 4]), True)
    """
    return Decomposition(gates_of(unit, x))
