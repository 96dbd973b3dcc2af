"""A walk over packed sequences step by step, for what no unit can walk over at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from lrn.units.unit import UserState, hidden, map_state


def walk_packed(
    step: Callable[[Tensor, UserState], UserState], x: Tensor, sizes: Sequence[int], state: UserState
) -> tuple[list[Tensor], UserState]:
    """Walk over packed sequences; returns the outputs of every step, ``[rows, H]``, and the last states.

    Sequences that have ended leave the batch, so that no work is done for what is not there.

    Args:
        step: takes what the sequences that are left read, ``[rows, ...]``, and their state.
        x: ``[N, ...]``: the first steps of all sequences, then the second ones, …; the longest first.
        sizes: how many sequences have a first, second, … step; those without any come last.
        state: of all B sequences before their first step, ``[1, B, H]``; a pair for LSTM and SRU.

    >>> outputs, last = walk_packed(lambda x, h: h + x, torch.ones(3, 1), [2, 1], torch.zeros(1, 2, 1))
    >>> [output.tolist() for output in outputs], last.tolist()
    ([[[1.0], [1.0]], [[2.0]]], [[[2.0], [1.0]]])
    """
    outputs = []
    over: list[UserState] = []  # states of sequences that have ended, the shortest first
    for rows in x.split(list(sizes)):
        if hidden(state).shape[1] > len(rows):
            over.append(map_state(partial(_rows, first=len(rows)), state))
            state = map_state(partial(_rows, last=len(rows)), state)
        state = step(rows, state)
        outputs.append(hidden(state)[0])  # [rows, H]
    return outputs, _joined([state, *reversed(over)])


def _rows(state: Tensor, first: int = 0, last: int | None = None) -> Tensor:
    """A part of a state's sequences, ``[1, B, H]``."""
    return state[:, first:last]


def _joined(states: Sequence[UserState]) -> UserState:
    """The states of one group of sequences after the other's."""
    if len(states) == 1:
        return states[0]
    if isinstance(states[0], tuple):
        h, c = (torch.cat([state[part] for state in states], 1) for part in (0, 1))
        return h, c
    return torch.cat([hidden(state) for state in states], 1)
