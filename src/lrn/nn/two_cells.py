"""Two cells a step, the state handed from one to the other (Zhang et al., 2017)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrn.nn.packed import walk_packed
from lrn.recurrence.cells import CELLS
from lrn.units.unit import Unit, UserState


class TwoCells(nn.Module):
    """A layer that reads two sequences at once: ``s_t = lower(x_t, u_{t-1})``, ``u_t = upper(y_t, s_t)``.

    All products of both inputs are computed ahead. Where nothing learnt is left inside the recurrence (LRN
    and its relatives) the two cells are one: their projections take turns along a sequence of twice the
    length, which is walked over at once, and every second output is u. The other units go step by step.

    Args:
        lower: the cell that reads x: a unit of one layer and one direction.
        upper: the cell that reads y: the same, of the same kind and size.

    >>> import lrn
    >>> layer = TwoCells(lrn.LRN(3, 4), lrn.LRN(5, 4))
    >>> output, state = layer(torch.randn(3, 3), torch.randn(3, 5), [2, 1], torch.zeros(1, 2, 4))
    >>> output.shape, state.shape, layer.walks_at_once
    (torch.Size([3, 4]), torch.Size([1, 2, 4]), True)
    """

    def __init__(self, lower: Unit, upper: Unit) -> None:
        super().__init__()
        for name, cell in (("lower", lower), ("upper", upper)):
            if cell.num_layers != 1 or cell.bidirectional or cell.batch_first:
                raise ValueError(f"the {name} cell must have one layer and one direction, and time first")
            if cell.residual:
                raise ValueError(f"the {name} cell cannot have a residual connection, got {cell}")
        if lower.cell != upper.cell or lower.hidden_size != upper.hidden_size:
            raise ValueError(
                f"both cells must be of one kind and size, "
                f"got {lower.cell} of {lower.hidden_size} and {upper.cell} of {upper.hidden_size}"
            )
        self.lower, self.upper = lower, upper

    @property
    def walks_at_once(self) -> bool:
        """Whether one walk does the work of both cells: nothing they have learnt is inside the recurrence."""
        return self.lower.cell in CELLS and not CELLS[self.lower.cell].vectors

    def step(self, x: Tensor, y: Tensor, state: UserState) -> UserState:
        """Take one step: x ``[B, I]``, y ``[B, J]``, state ``[1, B, H]`` (a pair for LSTM and SRU)."""
        _, state = self.lower.step(x, state)
        _, state = self.upper.step(y, state)
        return state

    def forward(
        self, x: Tensor, y: Tensor, sizes: Sequence[int], state: UserState
    ) -> tuple[Tensor, UserState]:
        """Walk over packed sequences of at least one step; returns outputs ``[N, H]`` and the last states.

        Args:
            x, y: ``[N, I]`` and ``[N, J]``: the first steps of all sequences, then the second ones, …; the
                longest first.
            sizes: how many sequences have a first, second, … step.
            state: of all sequences before their first step, ``[1, B, H]``; a pair for LSTM and SRU.
        """
        low, high = self.lower.project(x), self.upper.project(y)  # [N, gates * H]
        assert isinstance(low, Tensor)
        assert isinstance(high, Tensor)
        walk = self._at_once if self.walks_at_once else self._step_by_step
        return walk(low, high, sizes, state)

    def _at_once(
        self, low: Tensor, high: Tensor, sizes: Sequence[int], state: UserState
    ) -> tuple[Tensor, UserState]:
        turns = chain.from_iterable(zip(low.split(list(sizes)), high.split(list(sizes)), strict=True))
        mixed = torch.cat(list(turns))  # [2 * N, gates * H]
        twice = [size for size in sizes for _ in range(2)]
        # of a buffer of the host's own, which stays one where torch only pretends to compute
        sizes_of_both = torch.frombuffer(array("q", twice), dtype=torch.int64)
        walked, state = self.lower.recur(PackedSequence(mixed, sizes_of_both), state)
        return torch.cat(walked.data.split(twice)[1::2]), state  # [N, H]

    def _step_by_step(
        self, low: Tensor, high: Tensor, sizes: Sequence[int], state: UserState
    ) -> tuple[Tensor, UserState]:
        def step(both: Tensor, state: UserState) -> UserState:
            for cell, projected in zip((self.lower, self.upper), both.chunk(2, -1), strict=True):
                _, state = cell.recur(projected.unsqueeze(0), state)
            return state

        outputs, state = walk_packed(step, torch.cat([low, high], -1), sizes, state)
        return torch.cat(outputs), state  # [N, H]
