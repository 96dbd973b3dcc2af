"""Units whose biases stand where the paper's translation code has them."""

from __future__ import annotations

from typing import Any

from lrn.units import ATR, GRU, LSTM, Unit, unit_class
from lrn.units.bases import MatrixUnit


class _HiddenBias(MatrixUnit):
    """A bias on every product of the hidden state and, beside it, the offset of that product's layer norm."""

    def _shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        inside = (self.hidden_gates * self.hidden_size,)
        shapes = super()._shapes(width) | {"bias_hh": inside}
        return shapes | {"bias_norm_hh": inside} if self.norm == "layer" else shapes

    def _by_direction(self, name: str, layer: int) -> Any:
        found = super()._by_direction(name, layer)
        if name == "bias_hh" and self.norm == "layer":
            return found + super()._by_direction("bias_norm_hh", layer)
        return found


class _BiasedATR(_HiddenBias, ATR):
    pass


class _BiasedGRU(_HiddenBias, GRU):
    pass


class _BiasedLSTM(_HiddenBias, LSTM):
    pass


_BIASED: dict[str, type[Unit]] = {"atr": _BiasedATR, "gru": _BiasedGRU, "lstm": _BiasedLSTM}


def hidden_biased_unit(name: str, input_size: int, hidden_size: int, norm: str | None = None) -> Unit:
    """A unit with biases on the products of its hidden state only, and no activation where that is a choice.

    So has the paper's translation code it. The products of the input have no bias; with "layer" every norm
    has a scale and an offset, which the products of the hidden state have beside their bias. Without a norm
    LSTM and GRU have their one bias a gate, so that torch's own kernels can run them.

    >>> import lrn
    >>> hidden_biased_unit("lrn", 3, 4, "layer")
    LRN(3, 4, norm='layer', activation='identity')
    >>> sum(p.numel() for p in hidden_biased_unit("atr", 3, 4, "layer").parameters())  # H(I + H) + 5H
    48
    """
    kind = unit_class(name)
    plain: dict[str, Any] = {"activation": "identity"} if kind.activations else {}
    if norm is None and name in ("gru", "lstm"):
        return kind(input_size, hidden_size)
    kind = _BIASED.get(name, kind)
    return kind(input_size, hidden_size, bias=norm == "layer", norm=norm, **plain)
