"""A loop over time for steps that are no unit's, which an exported graph keeps as a loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lrn.recurrence import modes

State = tuple[Tensor, ...]
Step = Callable[[State, State], tuple[State, Tensor]]


def loop(step: Step, state: State, steps: State) -> tuple[State, Tensor]:
    """Take a step for each entry of the leading dimension of ``steps``; returns the last state and all
    outputs.

    While torch.export traces, the number of steps is left open, and gradients are not to be had.

    Args:
        step: takes the state and one entry of each of ``steps``; returns the new state, of the same shapes
            and types, and an output.
        state: tensors.
        steps: tensors of equally many entries, at least one.

    >>> def add(state, now):
    ...     total = state[0] + now[0]
    ...     return (total,), 2 * total
    >>> loop(add, (torch.tensor(0),), (torch.tensor([1, 2, 3]),))
    ((tensor(6),), tensor([ 2,  6, 12]))
    """
    if modes.compiling():
        return _traced(step, state, steps)
    outputs = []
    for now in zip(*(each.unbind(0) for each in steps), strict=True):
        state, output = step(state, now)
        outputs.append(output)
    return state, torch.stack(outputs)


def _traced(step: Step, state: State, steps: State) -> tuple[State, Tensor]:
    def apart(state: State, now: State) -> tuple[State, Tensor]:
        """The step, none of whose results is another one or one of its inputs, as torch demands it."""
        state, output = step(state, now)
        return _copied(state), output.clone()

    found: tuple[State, Tensor] = modes.traced_loop(apart, _copied(state), steps)
    return found


def _copied(state: State) -> State:
    """A copy that lies in memory without gaps: before a loop and after each step, as torch demands."""
    return tuple(part.clone(memory_format=torch.contiguous_format) for part in state)
