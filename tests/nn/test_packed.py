"""A walk over packed sequences against one over each by itself."""

import pytest
import torch
from helpers import randn

from lrn.nn.packed import walk_packed
from lrn.units.unit import map_state

LENGTHS, SIZES = [4, 2, 2, 0], [3, 3, 1, 1]


def step(x, state):
    """Anything that depends on all that came before."""
    return map_state(lambda s: torch.tanh(2 * s + x), state)


@pytest.mark.parametrize("parts", [1, 2])
def test_every_sequence_by_itself(parts):
    x = randn(sum(SIZES), 5)
    states = tuple(randn(1, 4, 5, seed=n) for n in range(2, 2 + parts))
    state = states if parts == 2 else states[0]
    outputs, last = walk_packed(step, x, SIZES, state)
    assert [len(output) for output in outputs] == SIZES
    for row, length in enumerate(LENGTHS):
        alone = map_state(lambda s, row=row: s[:, row : row + 1], state)
        for number in range(length):
            alone = step(x.split(SIZES)[number][row], alone)
            first = alone[0] if parts == 2 else alone
            torch.testing.assert_close(outputs[number][row], first[0, 0], rtol=0, atol=0)
        torch.testing.assert_close(
            map_state(lambda s, row=row: s[:, row : row + 1], last), alone, rtol=0, atol=0
        )


def test_no_steps():
    state = randn(1, 2, 3)
    outputs, last = walk_packed(step, randn(0, 3), [], state)
    assert outputs == []
    assert last is state
