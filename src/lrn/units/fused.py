"""What LSTM and GRU share: torch's own fused implementation where it can run, our walk where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lrn.recurrence import Rows
from lrn.units.kinds import MatrixUnit

# (input, batch_sizes or None, state parts, flat weights) -> output, final parts
Kernel = Callable[[Tensor, Tensor | None, tuple[Tensor, ...], list[Tensor]], tuple[Tensor, ...]]


class FusedUnit(MatrixUnit):
    """A unit that torch.nn has too. One bias per gate: torch's second bias vector is fixed at zero."""

    def _kernel(
        self,
        x: Tensor,
        batch_sizes: Tensor | None,
        state: tuple[Tensor, ...],
        weights: list[Tensor],
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        """torch's implementation of one layer: output, then the parts of the final state."""
        raise TypeError(f"{self._name} has no kernel")

    def _layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.norm is not None or rows.reset is not None or x.numel() == 0 or _mapped(rows):
            return super()._layer(layer, x, state, rows)  # what torch's kernels cannot do
        if rows.lengths is not None:
            return self._with_lengths(layer, x, state, rows)
        output, *final = self._kernel(
            x, rows.batch_sizes, tuple(state.unbind(0)), self._flat_weights(layer), rows.batch_first
        )
        return output, torch.stack(final)

    def _with_lengths(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """torch takes rows of different lengths only packed, sorted and none of them empty."""
        assert rows.lengths is not None
        padded = rows.pad(x)
        lengths, order = rows.lengths.sort(descending=True, stable=True)
        filled = int((lengths > 0).sum())
        order, lengths = order[:filled], lengths[:filled]
        output = x.new_zeros(*padded.shape[:2], self.directions * self.hidden_size)
        if not filled:
            return rows.unpad(output), state
        packed = pack_padded_sequence(padded[:, order], lengths.cpu())
        packed_rows = Rows(filled, batch_sizes=packed.batch_sizes)
        data, final = self._layer(layer, packed.data, state[:, :, order], packed_rows)
        packed = packed._replace(data=data)
        unpacked, _ = pad_packed_sequence(packed, total_length=padded.shape[0])
        output = output.to(data.dtype).index_copy(1, order, unpacked)
        return rows.unpad(output), state.to(final.dtype).index_copy(2, order, final)

    def _flat_weights(self, layer: int) -> list[Tensor]:
        """Weights of both directions in torch's order: ih, hh, bias, and a bias of zeros."""
        flat: list[Tensor] = []
        names = ("weight_ih", "weight_hh", "bias_ih") if self.bias else ("weight_ih", "weight_hh")
        for suffix in self._suffixes(layer):
            flat += [getattr(self, name + suffix) for name in names]
            if self.bias:
                flat.append(torch.zeros_like(flat[-1]))
        return flat


def _mapped(rows: Rows) -> bool:
    """Whether rows of different lengths are inside a transform of torch.func, which wraps their sizes."""
    ragged = rows.lengths is not None or rows.batch_sizes is not None
    return ragged and torch._C._are_functorch_transforms_active()
