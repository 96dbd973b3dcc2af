"""First weights as the paper's code has them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lrn.units import GLRN, GRU, LRN, LSTM, OLRN, SRU
from lrn.units.unit import Unit


def glorot_fused(unit: Unit, vectors: float | None = None) -> None:
    """Glorot uniform on each fused matrix as a whole, biases 0.

    In the paper's code LSTM and GRU have one matrix for input and hidden state together, and GRU's candidate
    its own. SRU's vectors are all set to ``vectors``, or drawn by the rule for a single row if it is None.

    >>> import lrn
    >>> unit = lrn.LRN(3, 4)
    >>> glorot_fused(unit)
    >>> bool((unit.bias_ih_l0 == 0).all())
    True
    """
    inside, hidden = unit.input_size + unit.hidden_size, unit.hidden_size
    for name, parameter in unit.named_parameters():
        if name.startswith("v_") and vectors is not None:
            nn.init.constant_(parameter, vectors)
        elif name.startswith("v_"):
            bound = math.sqrt(3 / math.sqrt(hidden))
            nn.init.uniform_(parameter, -bound, bound)
        elif parameter.dim() == 1:
            nn.init.zeros_(parameter)
        elif isinstance(unit, LSTM):
            _glorot(parameter, inside, 4 * hidden)
        elif isinstance(unit, GRU):
            gates, candidate = parameter.split([2 * hidden, hidden])
            _glorot(gates, inside, 2 * hidden)
            _glorot(candidate, inside, hidden)
        else:
            nn.init.xavier_uniform_(parameter)


def keep_at_first(unit: Unit, amount: float) -> None:
    """Biases with which a unit begins by keeping its state: ``amount`` to keep, ``−amount`` to let in.

    From biases of zero half of the state is lost at every step, so that nothing far back can be learnt from.

    >>> import lrn
    >>> unit = lrn.LRN(3, 4)
    >>> keep_at_first(unit, 5.0)
    >>> unit.bias_ih_l0.reshape(3, 4).mean(1).round()
    tensor([ 5., -5.,  0.], grad_fn=<RoundBackward0>)
    """
    kept, new = _gate_places(unit)
    for name, parameter in unit.named_parameters():
        if name.startswith("bias"):
            gates = parameter.detach().view(-1, unit.hidden_size)
            gates[kept] = amount
            if new is not None:
                gates[new] = -amount


def _gate_places(unit: Unit) -> tuple[int, int | None]:
    """Of the forget gate and, where it is another, the input gate among the fused gates."""
    if isinstance(unit, GLRN):
        return 0, None
    if isinstance(unit, LRN | OLRN) and unit.gates >= 3:
        return 0, 1
    if isinstance(unit, LSTM):
        return 1, 0
    if isinstance(unit, GRU | SRU):
        return 1, None
    name = type(unit).__name__
    raise ValueError(
        f"{name} has no bias of its own for what it keeps; LRN, OLRN, GLRN, SRU, LSTM and GRU have"
    )


def _glorot(matrix: Tensor, fan_in: int, fan_out: int) -> None:
    bound = math.sqrt(6 / (fan_in + fan_out))
    with torch.no_grad():
        matrix.uniform_(-bound, bound)
