"""GRU as it was first described: the reset gate acts before the product with the hidden matrix."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn.initial import glorot


class ResetGRU(nn.Module):
    """A GRU cell whose reset gate acts on the state before the matrix product (Cho et al., 2014).

    ``r, z = σ(W x + U h' + b)``, ``n = tanh(W_n x + U_n (r ⊙ h') + b_n)``, ``h = z ⊙ h' + (1 − z) ⊙ n``.
    ``lrn.GRU`` and ``nn.GRU`` reset after the product, which is another function. The gates begin with biases
    of 1, gates and candidate with a Glorot-uniform matrix each, of input and state together.

    Parameters: 3H(I + H + 1); order of the fused gates r, z, n.

    >>> cell = ResetGRU(3, 4)
    >>> cell.step(cell.project(torch.randn(2, 3)), torch.zeros(2, 4)).shape
    torch.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size))
        inside = input_size + hidden_size
        for weight in (self.weight_ih, self.weight_hh):
            gates, candidate = weight.detach().split([2 * hidden_size, hidden_size])
            glorot(gates, inside, 2 * hidden_size)
            glorot(candidate, inside, hidden_size)
        nn.init.ones_(self.bias.detach()[: 2 * hidden_size])

    def project(self, x: Tensor) -> Tensor:
        """What does not depend on the state: ``[..., I]`` to ``[..., 3 * H]``."""
        return F.linear(x, self.weight_ih, self.bias)

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """Take one step: projected ``[B, 3 * H]``, state ``[B, H]`` -> the new state."""
        size = self.hidden_size
        gates, candidate = self.weight_hh.split([2 * size, size])
        r, z = torch.sigmoid(projected[:, : 2 * size] + F.linear(state, gates)).chunk(2, -1)
        n = torch.tanh(projected[:, 2 * size :] + F.linear(r * state, candidate))
        return torch.lerp(n.to(state.dtype), state, z.to(state.dtype))  # under autocast they are coarser

    def last(self, x: Tensor, sizes: Sequence[int], reverse: bool = False) -> Tensor:
        """Walk over packed sequences from a state of zeros; returns their last states, the longest first.

        Args:
            x: ``[N, I]``: the first steps of all sequences, then the second ones, …; the longest first.
            sizes: how many sequences have a first, second, … step.
            reverse: walk from every sequence's end to its beginning.
        """
        steps = self.project(x).split(list(sizes))
        state = x.new_zeros(0 if reverse else sizes[0], self.hidden_size)
        if reverse:  # the longest sequences begin, others join them
            for step in reversed(steps):
                state = F.pad(state, (0, 0, 0, len(step) - len(state)))
                state = self.step(step, state)
            return state
        over: list[Tensor] = []  # of sequences that have ended, the shortest first
        for step in steps:
            if len(state) > len(step):
                over.append(state[len(step) :])
                state = state[: len(step)]
            state = self.step(step, state)
        return torch.cat([state, *reversed(over)])
