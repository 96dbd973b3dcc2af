"""How the rows of a batch of sequences lie in memory, and the way to and from plain padded form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lrn.recurrence import cells, modes


def on(device: torch.device, numbers: Sequence[int]) -> Tensor:
    """Whole numbers of the host as a tensor on ``device``."""
    return torch.tensor(numbers, dtype=torch.int64).to(device)


@dataclass(slots=True)
class Rows:
    """The layout of every tensor that has a row per token.

    Padded: leading dimensions ``[T, B]`` (``[B, T]`` if ``batch_first``), row ``b`` real up to
    ``lengths[b]``. Packed, as in a ``PackedSequence``: one leading dimension, the rows of step ``t``
    being the next ``batch_sizes[t]``. ``reset`` has the same leading dimensions and marks the
    tokens that begin a new document.

    ``lengths`` and ``reset`` are where the tokens are. ``batch_sizes`` is on the host, as torch has it, and
    so is ``host_lengths``, the same as ``lengths`` where the host knows them: nothing is read from a device.
    """

    batch: int
    batch_first: bool = False
    lengths: Tensor | None = None
    batch_sizes: Tensor | None = None
    reset: Tensor | None = None
    host_lengths: Sequence[int] | None = None
    _places: tuple[Tensor, Tensor] | None = field(default=None, repr=False, compare=False)

    def _packing(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Packed only: the place of each row in padded form, flat, ``[rows]``, and the lengths ``[B]``."""
        if self._places is not None:
            return self._places
        assert self.batch_sizes is not None
        sizes = self.batch_sizes.tolist()
        flat = [t * self.batch + b for t, size in enumerate(sizes) for b in range(size)]
        lengths, end = [], len(sizes)
        for b in range(self.batch):
            while end and sizes[end - 1] <= b:
                end -= 1
            lengths.append(end)
        places = on(device, flat), on(device, lengths)
        if not modes.transformed():  # inside a transform they are wrapped, and end with it
            self._places = places
        return places

    def real(self, steps: int, device: torch.device) -> Tensor:
        """Padded with lengths only: which tokens are real, in the leading dimensions as stored."""
        assert self.lengths is not None
        time = torch.arange(steps, device=device)
        return time < self.lengths[:, None] if self.batch_first else time[:, None] < self.lengths

    def pad(self, x: Tensor) -> Tensor:
        """Rows as stored -> ``[T, B, ...]``."""
        if self.batch_sizes is None:
            return x.transpose(0, 1) if self.batch_first else x
        steps = len(self.batch_sizes)
        places, _ = self._packing(x.device)
        padded = x.new_zeros(steps * self.batch, *x.shape[1:]).index_copy(0, places, x)  # [T*B, ...]
        return padded.view(steps, self.batch, *x.shape[1:])

    def unpad(self, x: Tensor) -> Tensor:
        """``[T, B, ...]`` -> rows as stored."""
        if self.batch_sizes is None:
            return x.transpose(0, 1) if self.batch_first else x
        places, _ = self._packing(x.device)
        return x.flatten(0, 1).index_select(0, places)

    def row_lengths(self, device: torch.device) -> Tensor | None:
        """Real steps of each row, ``[B]``; None where all are full."""
        return self.lengths if self.batch_sizes is None else self._packing(device)[1]

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
