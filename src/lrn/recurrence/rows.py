"""How the rows of a batch of sequences lie in memory, and the way to and from plain padded form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lrn.recurrence import cells


@dataclass(slots=True)
class Rows:
    """The layout of every tensor that has a row per token.

    Padded: leading dimensions ``[T, B]`` (``[B, T]`` if ``batch_first``), row ``b`` real up to
    ``lengths[b]``. Packed, as in a ``PackedSequence``: one leading dimension, the rows of step ``t``
    being the next ``batch_sizes[t]``. ``reset`` has the same leading dimensions and marks the
    tokens that begin a new document.
    """

    batch: int
    batch_first: bool = False
    lengths: Tensor | None = None
    batch_sizes: Tensor | None = None
    reset: Tensor | None = None

    def _grid(self, device: torch.device) -> Tensor:
        """Packed only: which (t, b) are real, ``[T, B]``."""
        assert self.batch_sizes is not None
        return torch.arange(self.batch, device=device) < self.batch_sizes.to(device)[:, None]

    def real(self, steps: int, device: torch.device) -> Tensor:
        """Padded with lengths only: which tokens are real, in the leading dimensions as stored."""
        assert self.lengths is not None
        time = torch.arange(steps, device=device)
        return time < self.lengths[:, None] if self.batch_first else time[:, None] < self.lengths

    def pad(self, x: Tensor) -> Tensor:
        """Rows as stored -> ``[T, B, ...]``."""
        if self.batch_sizes is None:
            return x.transpose(0, 1) if self.batch_first else x
        real = self._grid(x.device)
        padded = x.new_zeros(*real.shape, *x.shape[1:])
        return padded.masked_scatter(real.view(*real.shape, *[1] * (x.dim() - 1)).expand_as(padded), x)

    def unpad(self, x: Tensor) -> Tensor:
        """``[T, B, ...]`` -> rows as stored."""
        if self.batch_sizes is None:
            return x.transpose(0, 1) if self.batch_first else x
        return x[self._grid(x.device)]

    def row_lengths(self, device: torch.device) -> Tensor | None:
        """Real steps of each row, ``[B]``; None where all are full."""
        if self.batch_sizes is None:
            return self.lengths
        return self._grid(device).sum(0)

    def padded_reset(self) -> Tensor | None:
        return None if self.reset is None else self.pad(self.reset)

    def walk(
        self,
        step: Callable[[Tensor, cells.State], cells.State],
        x: Tensor,
        state: cells.State,
        *,
        reverse: bool = False,
    ) -> tuple[Tensor, cells.State]:
        """``cells.walk`` over rows as stored."""
        output, state = cells.walk(
            step,
            self.pad(x),
            state,
            lengths=self.row_lengths(x.device),
            reset=self.padded_reset(),
            reverse=reverse,
        )
        return self.unpad(output), state
