"""Padded rows of different lengths, run packed: no work is done for the padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lrn.recurrence import modes
from lrn.recurrence.rows import Rows

TOKENS = 2048  # in a batch with fewer, packing costs about what it saves
MOST = (
    32_768  # without a gradient: packed rows run in one piece, padded ones in chunks that take little memory
)
SHARE = 0.65  # of real tokens, above which as well

Body = Callable[[Tensor, Tensor, Rows], tuple[Tensor, Tensor]]
"""Takes rows, the state before them and their layout; returns their output and the state after them."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the real tokens of a padded batch are, in the order of a ``PackedSequence``.

    ``places`` are those of the tokens among all of the batch, flat as they are stored; ``order`` has the
    rows, the longest first, without those of length 0; ``sizes`` says how many of them each step has.

    >>> packing = Packing.of(Rows(3, host_lengths=[1, 0, 2]), steps=2)
    >>> packing.places.tolist(), packing.order.tolist(), packing.sizes.tolist()
    ([2, 0, 5], [2, 0], [2, 1])
    """

    places: Tensor
    order: Tensor
    sizes: Tensor

    @staticmethod
    def of(rows: Rows, steps: int, device: torch.device | str = "cpu") -> Packing:
        """The packing of rows whose lengths the host knows, not all of them 0."""
        assert rows.host_lengths is not None
        lengths, order = torch.tensor(rows.host_lengths).sort(descending=True, stable=True)
        order = order[lengths > 0]
        real = torch.arange(int(lengths[0]))[:, None] < lengths[: len(order)]  # [T, B]
        step, row = real.nonzero().unbind(1)
        row = order[row]
        places = row * steps + step if rows.batch_first else step * rows.batch + row
        return Packing(places.to(device), order.to(device), real.sum(1))

    def run(self, body: Body, x: Tensor, state: Tensor, reset: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run ``body`` on the real tokens of ``x``; returns its output in padded form, and all rows' states.

        ``state`` is ``[parts, layers*D, B, H]``; rows of length 0 keep theirs.
        """
        leading = x.shape[:2]  # [T, B], or [B, T] batch first
        marks = None if reset is None else self._pack(reset)
        rows = Rows(len(self.order), batch_sizes=self.sizes, reset=marks)
        packed, final = body(self._pack(x), state.index_select(2, self.order), rows)
        output = packed.new_zeros(leading.numel(), packed.shape[-1]).index_copy(0, self.places, packed)
        return output.unflatten(0, leading), state.to(final.dtype).index_copy(2, self.order, final)

    def _pack(self, x: Tensor) -> Tensor:
        return x.flatten(0, 1).index_select(0, self.places)


def pays(x: Tensor, rows: Rows) -> bool:
    """Whether the host knows the lengths of rows, and they are likely to take less time packed."""
    known, tokens = rows.host_lengths, x.shape[0] * x.shape[1]
    if known is None or tokens < TOKENS or not 0 < sum(known) <= SHARE * tokens:
        return False
    if not torch.is_grad_enabled() and sum(known) > MOST:
        return False
    return x.is_cpu and modes.dense(x) and modes.plain(x) and not modes.tracing()
