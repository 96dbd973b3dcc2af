"""First weights as the paper's code has them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lrn.units import CLASSES, GRU, LSTM
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
            glorot(parameter, inside, 4 * hidden)
        elif isinstance(unit, GRU):
            gates, candidate = parameter.split([2 * hidden, hidden])
            glorot(gates, inside, 2 * hidden)
            glorot(candidate, inside, hidden)
        else:
            nn.init.xavier_uniform_(parameter)


def glorot_apart(unit: Unit) -> None:
    """Glorot uniform on the matrices of input and hidden state each by itself, biases 0.

    So the paper's code for reading comprehension has them: a fused matrix counts as a whole, but LSTM's and
    GRU's candidate has one of its own. SRU's vectors are single rows.

    >>> import lrn
    >>> unit = lrn.SRU(3, 4)
    >>> glorot_apart(unit)
    >>> bool((unit.bias_ih_l0 == 0).all())
    True
    """
    hidden = unit.hidden_size
    candidate = 2 if isinstance(unit, LSTM | GRU) else None  # its place among the fused gates
    for name, parameter in unit.named_parameters():
        if name.startswith("v_"):
            glorot(parameter, 1, hidden)
        elif parameter.dim() == 1:
            nn.init.zeros_(parameter)
        elif candidate is None:
            nn.init.xavier_uniform_(parameter)
        else:
            gates = parameter.detach().split(hidden)
            for place, gate in enumerate(gates):
                glorot(gate, parameter.shape[1], hidden if place == candidate else (len(gates) - 1) * hidden)


def keep_at_first(unit: Unit, amount: float) -> None:
    """Biases with which a unit begins by keeping its state: ``amount`` to keep, ``−amount`` to let in.

    From biases of zero half of the state is lost at every step, so that nothing far back can be learnt from.

    >>> import lrn
    >>> unit = lrn.LRN(3, 4)
    >>> keep_at_first(unit, 5.0)
    >>> unit.bias_ih_l0.reshape(3, 4).mean(1).round()
    tensor([ 5., -5.,  0.], grad_fn=<RoundBackward0>)
    """
    if unit.forget_gate is None:
        able = [cls.__name__ for cls in CLASSES.values() if cls.forget_gate is not None]
        raise ValueError(
            f"{type(unit).__name__} has no bias of its own for what it keeps; {', '.join(able)} have"
        )
    for name, parameter in unit.named_parameters():
        if name.startswith("bias") and not name.startswith("bias_hn"):  # which is no gate's
            gates = parameter.detach().view(-1, unit.hidden_size)
            gates[unit.forget_gate] = amount
            if unit.input_gate is not None:
                gates[unit.input_gate] = -amount


def glorot(matrix: Tensor, fan_in: int, fan_out: int) -> None:
    """Glorot uniform on a matrix that is a part of one with so many rows and columns.

    >>> matrix = torch.empty(5, 5)
    >>> glorot(matrix, 1, 5)
    >>> bool(matrix.abs().max() <= 1)
    True
    """
    bound = math.sqrt(6 / (fan_in + fan_out))
    with torch.no_grad():
        matrix.uniform_(-bound, bound)
