"""What all units share: layers, directions, padding and packing, dropout, norm, the state contract.

A unit is a *projection* of the whole sequence (every matrix product it can do ahead of time) and a
*recurrence* that walks over time. This file owns everything but the recurrence itself.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.utils.rnn import PackedSequence

from lrn import recurrence
from lrn.checks import choice, count, flag, share
from lrn.names import UNITS
from lrn.recurrence import Rows, cells, packing
from lrn.units.arguments import named, outside
from lrn.units.checks import (
    check_input,
    check_kind,
    check_lengths,
    check_packed_reset,
    check_reset,
    check_state,
    check_tensor,
    wrong_features,
)
from lrn.units.tracing import node, refuse_scripting, refuse_tracing

UserState = Tensor | tuple[Tensor, Tensor]

NORMS = (None, *cells.NORMS)


def hidden(state: UserState) -> Tensor:
    """The hidden state h of a state, which may be a pair (h, c).

    >>> import torch, lrn
    >>> _, state = lrn.LSTM(3, 4)(torch.randn(5, 2, 3))
    >>> hidden(state).shape
    torch.Size([1, 2, 4])
    """
    return state[0] if isinstance(state, tuple) else state


def map_state(change: Callable[[Tensor], Tensor], state: UserState) -> UserState:
    """A state of the same kind, each of whose tensors is changed.

    >>> import torch, lrn
    >>> _, state = lrn.SRU(3, 4)(torch.randn(5, 2, 3))
    >>> [part.requires_grad for part in map_state(Tensor.detach, state)]
    [False, False]
    """
    return (change(state[0]), change(state[1])) if isinstance(state, tuple) else change(state)


class Unit(nn.Module):
    """A stack of recurrent layers with the calling contract of ``nn.LSTM`` / ``nn.GRU``.

    ``output, state = unit(input, state=None, lengths=None, reset=None)`` with input ``[T, B, I]``
    (``[B, T, I]`` if ``batch_first``), ``[T, I]`` or a ``PackedSequence``; output and state are shaped
    as in ``torch.nn``.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as in ``nn.LSTM``.
        norm: None, "layer" or "rms": normalise every projected product, before its bias.
        residual: add to the output of each layer what it has read, where both are of the same width.

    >>> import torch, lrn
    >>> unit, x = lrn.LRN(4, 4, residual=True), torch.randn(5, 2, 4)
    >>> output, h_n = unit(x)
    >>> torch.allclose(output[-1], h_n[0] + x[-1])  # the state is the layer's own
    True
    """

    gates: ClassVar[int]  # products of the input, fused along the first axis of weight_ih
    hidden_gates: ClassVar[int] = 0  # products of the hidden state, fused in weight_hh
    parts: ClassVar[int] = 1  # tensors in the state: h, or h and c
    forget_gate: ClassVar[int | None] = (
        None  # the fused gate that says what is kept, if it has a bias of its own
    )
    input_gate: ClassVar[int | None] = None  # the one that says what is let in, where it is another
    activations: ClassVar[tuple[str, ...]] = ()  # what ``activation`` may be, where there is a choice

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = named(cls.__init__)  # type: ignore[method-assign]

    @named
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not hasattr(self, "gates"):
            raise TypeError(
                f"{self._name} is no unit itself: it takes a class that inherits lrn.CustomUnit, or one of "
                f"lrn's own ({', '.join(UNITS)})"
            )
        self.input_size = count("input_size", input_size)
        self.hidden_size = count("hidden_size", hidden_size)
        self.num_layers = count("num_layers", num_layers)
        self.bias = flag("bias", bias)
        self.batch_first = flag("batch_first", batch_first)
        self.bidirectional = flag("bidirectional", bidirectional)
        self.residual = flag("residual", residual)
        self.norm = choice("norm", norm, NORMS)
        self.dropout = share("dropout", dropout)
        if self.dropout and self.num_layers == 1:
            warnings.warn(
                f"dropout={dropout} acts between layers and this unit has only one",
                stacklevel=outside(),
            )
        # Set by lrn.replace where the model's code unpacks nn.LSTM's (h, c); see _read_state.
        self.lstm_state = False
        if self.residual and not any(map(self._adds_input, range(self.num_layers))):
            out = self.hidden_size * self.directions
            raise ValueError(
                "residual=True needs a layer whose output is as wide as its input; the only one of this "
                f"{self._name} reads {self.input_size} features and puts out {out}"
            )
        for layer in range(self.num_layers):
            width = self._width(layer)
            for suffix in self._suffixes(layer):
                for name, shape in self._shapes(width).items():
                    empty = torch.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(name + suffix, nn.Parameter(empty))
        self.reset_parameters()

    # Parameters -------------------------------------------------------------------------------

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _width(self, layer: int) -> int:
        """How many features a layer reads."""
        return self.input_size if layer == 0 else self.hidden_size * self.directions

    def _adds_input(self, layer: int) -> bool:
        """Whether a layer has a residual connection."""
        return self.residual and self._width(layer) == self.hidden_size * self.directions

    def _suffixes(self, layer: int) -> tuple[str, ...]:
        return (f"_l{layer}", f"_l{layer}_reverse")[: self.directions]

    def _shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of one direction of a layer that reads ``width`` features."""
        inner, outer = self.gates * self.hidden_size, self.hidden_gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (inner, width)}
        if outer:
            shapes["weight_hh"] = (outer, self.hidden_size)
        if self.bias:
            shapes["bias_ih"] = (inner,)
        if self.norm:
            shapes["norm_ih"] = (inner,)
            if outer:
                shapes["norm_hh"] = (outer,)
        return shapes

    def _parameters_of(self, name: str, layer: int) -> list[Tensor | None]:
        return [getattr(self, name + suffix, None) for suffix in self._suffixes(layer)]

    def _joined(self, name: str, layer: int) -> Tensor:
        """A parameter of a layer, both directions one after the other."""
        if not self.bidirectional:
            return getattr(self, f"{name}_l{layer}")  # type: ignore[no-any-return]
        return torch.cat([getattr(self, name + suffix) for suffix in self._suffixes(layer)])

    def reset_parameters(self) -> None:
        """Matrices Glorot-uniform per gate, biases 0, norm scales 1, SRU's vectors U(-1/√H, 1/√H)."""
        for name, parameter in self.named_parameters(recurse=False):
            if name.startswith("weight"):
                bound = math.sqrt(6 / (parameter.shape[1] + self.hidden_size))
                nn.init.uniform_(parameter, -bound, bound)
            elif name.startswith("bias"):
                nn.init.zeros_(parameter)
            elif name.startswith("norm"):
                nn.init.ones_(parameter)
            else:
                bound = 1 / math.sqrt(self.hidden_size)
                nn.init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing to do: kept so that code written for ``nn.LSTM`` runs unchanged."""

    def __prepare_scriptable__(self) -> None:
        """What ``torch.jit.script`` asks for first, of a module and all its parts."""
        refuse_scripting(self._name)

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "norm": None,
            "residual": False,
            "hidden_bias": False,
            "activation": "tanh",
        }
        for name, default in defaults.items():
            value = getattr(self, name, default)
            if value != default:
                shown.append(f"{name}={value!r}")
        return ", ".join(shown)

    # Running ----------------------------------------------------------------------------------

    def forward(
        self,
        input: Tensor | PackedSequence,
        state: UserState | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        reset: Tensor | PackedSequence | None = None,
        hx: UserState | None = None,
    ) -> tuple[Tensor | PackedSequence, UserState]:
        """Run all layers over the sequence.

        Args:
            input: ``[T, B, I]``, ``[B, T, I]`` with ``batch_first``, ``[T, I]``, or a ``PackedSequence``.
            state: ``[L*D, B, H]`` (a pair of them for LSTM and SRU), without ``B`` if input has none.
            lengths: real steps of each row, 0 to T; what lies beyond is ignored and outputs zeros.
            reset: bool, leading dimensions as input: True where a new document begins. No state
                crosses that border, in either direction.
            hx: ``nn.LSTM``'s name for ``state``, so that code which uses it keeps working.
        """
        if isinstance(input, fx.Proxy):
            return node(self, input, state=state, lengths=lengths, reset=reset, hx=hx)  # type: ignore[unreachable]
        if hx is not None:
            if state is not None:
                raise ValueError(f"{self._name}: state and hx are the same thing; give only one of them")
            state = hx
        return self._run(self._all_layers, self.num_layers, self.input_size, input, state, lengths, reset)

    def step(self, input: Tensor, state: UserState | None = None) -> tuple[Tensor, UserState]:
        """One time step, for streaming: input ``[B, I]`` or ``[I]`` -> output ``[B, H]`` or ``[H]``, state.

        >>> import torch, lrn
        >>> unit, state = lrn.LRN(3, 4), None
        >>> for x_t in torch.randn(5, 3):
        ...     h_t, state = unit.step(x_t, state)
        """
        if self.bidirectional:
            raise ValueError(
                f"{self._name} is bidirectional: its output at a step needs the steps still to come, "
                "so it cannot run step by step"
            )
        refuse_tracing(self._name)
        check_tensor(self._name, input)
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{self._name}.step: input must be [B, I] or [I], got shape {tuple(input.shape)}"
            )
        if input.shape[-1] != self.input_size:
            raise wrong_features(self._name, input, self.input_size)
        time = 1 if self.batch_first and input.dim() == 2 else 0
        output, state = self(input.unsqueeze(time), state)
        return output.squeeze(time), state

    def project(self, input: Tensor | PackedSequence, layer: int = 0) -> Tensor | PackedSequence:
        """Every product that ``layer`` can do ahead of time: ``[..., I]`` -> ``[..., D*gates*H]``.

        Feed the result to :meth:`recur`, whole or step by step, or change it in between.

        >>> import torch, lrn
        >>> unit, x = lrn.LRN(3, 4), torch.randn(5, 2, 3)
        >>> torch.equal(unit.recur(unit.project(x))[0], unit(x)[0])
        True
        """
        refuse_tracing(self._name)
        x = input.data if isinstance(input, PackedSequence) else input
        check_tensor(self._name, x)
        width = self._width(self._layer_index(layer))
        if x.dim() == 0 or x.shape[-1] != width:
            raise ValueError(
                f"{self._name}.project: layer {layer} reads {width} features, got shape {tuple(x.shape)}"
            )
        check_kind(self._name, x, self._first_weight)
        projected = self._project(layer, x)
        if isinstance(input, PackedSequence):
            return PackedSequence(projected, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
        return projected

    def recur(
        self,
        projected: Tensor | PackedSequence,
        state: UserState | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        reset: Tensor | PackedSequence | None = None,
        layer: int = 0,
    ) -> tuple[Tensor | PackedSequence, UserState]:
        """Walk one layer over an already projected sequence; the rest is as in :meth:`forward`.

        ``state`` is that of this layer alone: ``[D, B, H]``. The output is what the layer itself puts out,
        without a residual connection, which would need what was projected.
        """
        self._layer_index(layer)
        width = self.directions * self.gates * self.hidden_size

        def walk(x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
            return self._recur(layer, x, state, rows)

        return self._run(walk, 1, width, projected, state, lengths, reset, projected=True)

    @property
    def _first_weight(self) -> Tensor:
        weight = self.weight_ih_l0
        assert isinstance(weight, Tensor)
        return weight

    @property
    def _name(self) -> str:
        kind = type(self)  # or, with a torch parametrization on it, a class made for this one object
        return kind.__name__ if kind.__module__.startswith("lrn.") else _own_class(kind).__name__

    @property
    def cell(self) -> str:
        """The recurrence's name in ``lrn.recurrence``: the unit's, and its activation's if it has one."""
        kind = next(kind for kind in type(self).__mro__ if kind.__module__.startswith("lrn.units."))
        activation = getattr(self, "activation", None)
        return kind.__name__.lower() + (f"_{activation}" if activation else "")

    @property
    def _direction(self) -> str:
        return "both" if self.bidirectional else "forward"

    def _layer_index(self, layer: int) -> int:
        if not 0 <= layer < self.num_layers:
            raise ValueError(f"{self._name} has layers 0 to {self.num_layers - 1}, got {layer}")
        return layer

    def _run(
        self,
        body: packing.Body,
        layers: int,
        features: int,
        input: Tensor | PackedSequence,
        state: UserState | None,
        lengths: Tensor | Sequence[int] | None,
        reset: Tensor | PackedSequence | None,
        *,
        projected: bool = False,
    ) -> tuple[Tensor | PackedSequence, UserState]:
        """Bring any input to rows and one state tensor, run ``body`` on them, and bring the results back.

        Where the input is ``projected``, ``body`` is too little work for padding to be left out of it.
        """
        refuse_tracing(self._name)
        parameter = self._first_weight
        if isinstance(input, PackedSequence):
            check_input(self._name, input.data, features, parameter, "packed", projected)
            if lengths is not None:
                raise ValueError("a PackedSequence carries its own lengths; lengths must be None")
            marks = check_packed_reset(reset, input)
            rows = Rows(_first(input.batch_sizes), batch_sizes=input.batch_sizes, reset=marks)
            start = self._read_state(state, layers, rows.batch, input.data, batched=True)
            if state is not None and input.sorted_indices is not None:
                start = start.index_select(2, input.sorted_indices)
            output, final = body(input.data, start, rows)
            if input.unsorted_indices is not None:
                final = final.index_select(2, input.unsorted_indices)
            packed = PackedSequence(output, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
            return packed, self._write_state(final, batched=True)

        layout = "batch" if self.batch_first else "time"
        check_input(self._name, input, features, parameter, layout, projected)
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        x = input if batched else input.unsqueeze(batch_dim)
        batch, steps = x.shape[batch_dim], x.shape[1 - batch_dim]
        rows = Rows(
            batch, self.batch_first, reset=None if reset is None else check_reset(reset, input, batch_dim)
        )
        if lengths is not None:
            rows.lengths, rows.host_lengths = check_lengths(lengths, batch, steps, x.device)
        start = self._read_state(state, layers, batch, x, batched)
        if not projected and packing.pays(x, rows):
            output, final = packing.Packing.of(rows, steps).run(body, x, start, rows.reset)
        else:
            if rows.lengths is not None:  # or a NaN in the padding would reach the weights' gradient
                x = x.masked_fill(~rows.real(steps, x.device).unsqueeze(-1), 0)
            output, final = body(x, start, rows)
        if not batched:
            output = output.squeeze(batch_dim)
        return output, self._write_state(final, batched)

    def _read_state(
        self, state: UserState | None, layers: int, batch: int, x: Tensor, batched: bool
    ) -> Tensor:
        """The user's state as one tensor ``[parts, layers*D, B, H]``; zeros if there is none."""
        shape = (layers * self.directions, batch, self.hidden_size)
        if state is None:
            return x.new_zeros(self.parts, *shape)
        # A model that handles nn.LSTM's (h, c) gives it to a unit whose whole state is h, too.
        given = 2 if self.lstm_state and isinstance(state, tuple | list) else self.parts
        parts = check_state(self._name, state, given, shape if batched else shape[::2], x)[: self.parts]
        stacked = parts[0].unsqueeze(0) if self.parts == 1 else torch.stack(parts)
        return stacked if batched else stacked.unsqueeze(2)

    def _write_state(self, state: Tensor, batched: bool) -> UserState:
        if not batched:
            state = state.squeeze(2)
        if self.parts == 2:
            return state[0], state[1]
        return (state[0], state[0]) if self.lstm_state else state[0]

    def _all_layers(self, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.num_layers == 1:
            return self._whole_layer(0, x, state, rows)
        finals = []
        for layer, start in enumerate(state.split(self.directions, 1)):
            if layer and self.dropout and self.training:
                x = F.dropout(x, self.dropout)
            x, final = self._whole_layer(layer, x, start, rows)
            finals.append(final)
        return x, torch.cat(finals, 1)

    def _whole_layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """A layer with its residual connection, if it has one; padded steps of ``x`` are zeros already."""
        output, final = self._layer(layer, x, state, rows)
        return (output + x.to(output.dtype) if self._adds_input(layer) else output), final

    def _layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        return self._recur(layer, self._project(layer, x), state, rows)

    def _project(self, layer: int, x: Tensor) -> Tensor:
        """Both directions in one matrix product."""
        weight = self._joined("weight_ih", layer)
        bias = self._joined("bias_ih", layer) if self.bias else None
        if self.norm is None:
            return recurrence.project(x, weight, bias)
        return self._normalised(layer, recurrence.project(x, weight, None), bias)

    def _normalised(self, layer: int, product: Tensor, bias: Tensor | None) -> Tensor:
        """Apply the norm of each direction by itself, and its bias."""
        assert self.norm is not None
        product = product.unflatten(-1, (self.directions, -1))
        scale = self._joined("norm_ih", layer).view(self.directions, -1)
        bias = None if bias is None else bias.view_as(scale)
        return cells.normalise(product, self.norm, scale, bias).flatten(-2)

    def _recur(self, layer: int, projected: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Walk one layer: projected ``[rows, D*gates*H]``, state ``[parts, D, B, H]``."""
        raise TypeError(f"{self._name} has no recurrence")


def _first(batch_sizes: Tensor) -> int:
    """The number of rows of a packed sequence, which the host knows."""
    return int(batch_sizes.tolist()[0])


def _own_class(kind: type[Any]) -> type[Any]:
    """The class that says what a unit is; a user's subclass of it goes by its own name."""
    return next(k for k in kind.__mro__ if not k.__name__.startswith("Parametrized"))
