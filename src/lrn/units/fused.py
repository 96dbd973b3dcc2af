"""What LSTM and GRU share: torch's own fused implementation where it can run, our walk where it cannot."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lrn import recurrence
from lrn.recurrence import Rows
from lrn.units.bases import MatrixUnit


class FusedUnit(MatrixUnit):
    """A unit that torch.nn has too. One bias per gate: torch's second bias vector is fixed at zero.

    The ``state_dict`` of torch's own layer can be loaded: its two biases of a gate become their sum.
    """

    def _layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.norm is not None or rows.reset is not None:
            return super()._layer(layer, x, state, rows)  # what torch's kernels cannot do
        second = self._by_direction("bias_hh", layer)
        columns = [
            *(self._parameters_of(name, layer) for name in ("weight_ih", "weight_hh", "bias_ih")),
            [None] * self.directions if second is None else second.unbind(0),
        ]
        weights = list(zip(*columns, strict=True))
        return recurrence.fused_layer(self.cell, x, state, weights, rows, self.training)

    # Loading what torch.nn saved --------------------------------------------------------------

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        state_dict, errors = dict(state_dict), rest[-1]
        for layer in range(self.num_layers):
            for suffix in self._suffixes(layer):
                errors += self._merge_biases(state_dict, prefix, suffix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _merge_biases(self, weights: dict[str, Any], prefix: str, suffix: str) -> list[str]:
        """Make one bias of torch's two, in ``weights``; returns what is wrong with them."""
        first, second = (f"{prefix}{name}{suffix}" for name in ("bias_ih", "bias_hh"))
        if not self.bias or hasattr(self, f"bias_hh{suffix}"):
            return []  # no bias at all, which torch will say; or a second one of its own
        if not all(isinstance(weights.get(name), Tensor) for name in (first, second)):
            return []
        ours, theirs = weights[first], weights.pop(second)
        shape = (self.gates * self.hidden_size,)
        if tuple(theirs.shape) != shape:
            return [
                f"size mismatch for {second}: its shape is {tuple(theirs.shape)} in what is loaded; "
                f"beside this {self._name} nn.{self._name} has {shape}"
            ]
        if tuple(ours.shape) != shape:
            return []  # torch says so itself
        with torch.no_grad():
            added, wrong = self._second_bias(weights, prefix, suffix, theirs)
            weights[first] = ours + added.to(ours)
        return wrong

    def _second_bias(
        self, weights: dict[str, Any], prefix: str, suffix: str, bias: Tensor
    ) -> tuple[Tensor, list[str]]:
        """What of torch's second bias the first can take in, and what is wrong with the rest."""
        return bias, []
