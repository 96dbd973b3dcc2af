"""The kinds of units: elementwise, with a matrix inside the recurrence, with a choice of activation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lrn import recurrence
from lrn.checks import choice
from lrn.recurrence import Rows, modes
from lrn.recurrence.cells import ACTIVATIONS
from lrn.units.unit import Unit, UserState


class ElementwiseUnit(Unit):
    """A unit with no parameter matrix inside its recurrence: an engine runs the whole walk."""

    def _layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.norm is not None:
            return super()._layer(layer, x, state, rows)
        weight = self._joined("weight_ih", layer)
        bias = self._joined("bias_ih", layer) if self.bias else None
        return recurrence.layer(
            self.cell, x, weight, bias, state, self._vectors(layer), rows, self._direction
        )

    def step(self, input: Tensor, state: UserState | None = None) -> tuple[Tensor, UserState]:
        if not self._steps_directly(input, state):
            return super().step(input, state)
        assert isinstance(state, Tensor)
        weight, bias = self._joined("weight_ih", 0), self._joined("bias_ih", 0) if self.bias else None
        rows = Rows(input.shape[0])
        h, final = recurrence.layer(self.cell, input[None], weight, bias, state[None], None, rows)
        return h[0], final[0]

    step.__doc__ = Unit.step.__doc__

    def _steps_directly(self, input: Tensor, state: UserState | None) -> bool:
        """Whether this is the usual step of a stream: a batch and its state, of the right shapes, one layer.

        A step is so short that the way through all layers, layouts and checks would be a seventh of it.
        """
        return (
            type(input) is Tensor
            and type(state) is Tensor
            and not modes.tracing()  # which would record the questions below
            and self.num_layers == 1
            and self.parts == 1
            and not self.lstm_state
            and self.norm is None
            and not self.residual
            and not self.bidirectional
            and input.dim() == 2
            and input.shape[1] == self.input_size
            and state.shape == (1, input.shape[0], self.hidden_size)
            and state.dtype == input.dtype == self._first_weight.dtype
            and not (self._forward_hooks or self._forward_pre_hooks)
        )

    def _recur(self, layer: int, projected: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        x = projected.view(*projected.shape[:-1], self.directions, self.gates, self.hidden_size)
        return recurrence.scan(self.cell, x, state, self._vectors(layer), rows, self._direction)

    def _vectors(self, layer: int) -> Tensor | None:
        """Parameter vectors that the recurrence reads, ``[D, vectors, H]``."""
        return None


class MatrixUnit(Unit):
    """A unit with a product of the hidden state inside its recurrence."""

    def _recur(self, layer: int, projected: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        weight, bias, scale = (
            self._by_direction(name, layer) for name in ("weight_hh", "bias_hh", "norm_hh")
        )
        return recurrence.walk_matrix(
            self.cell, projected, state, weight, bias, scale, rows, self._direction, self.norm
        )

    def _by_direction(self, name: str, layer: int) -> Any:
        """A parameter of a layer with its directions apart, ``[D, ...]``; None where the unit has none."""
        if not hasattr(self, f"{name}_l{layer}"):
            return None
        return self._joined(name, layer).unflatten(0, (self.directions, -1))


class Activated(Unit):
    """A unit whose output activation g is a choice: "tanh" or "identity"."""

    activations = tuple(ACTIVATIONS)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        norm: str | None = None,
        residual: bool = False,
        activation: str = "tanh",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        choice("activation", activation, self.activations)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            norm=norm,
            residual=residual,
            device=device,
            dtype=dtype,
        )
        self.activation = activation
