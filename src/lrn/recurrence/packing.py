"""Padded rows of different lengths, run packed: no work is done for the padding."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lrn.recurrence import modes
from lrn.recurrence.rows import Rows, on

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
        """The packing of rows whose lengths the host knows, not all of them 0.

        It is worked out from these numbers alone: tensors may have none, as while a graph is traced.
        """
        lengths = rows.host_lengths
        assert lengths is not None
        across, along = (steps, 1) if rows.batch_first else (1, rows.batch)
        order = sorted((b for b in range(rows.batch) if lengths[b] > 0), key=lambda b: -lengths[b])
        starts, places, sizes = [b * across for b in order], [], []
        filled = len(order)
        for t in range(lengths[order[0]]):
            while lengths[order[filled - 1]] <= t:
                filled -= 1
            sizes.append(filled)
            places += [start + t * along for start in starts[:filled]]
        on_host = torch.frombuffer(array("q", sizes), dtype=torch.int64)
        return Packing(on(torch.device(device), places), on(torch.device(device), order), on_host)

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
