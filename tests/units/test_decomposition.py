"""LRN's memory, written out: eq. (5) of the paper, computed without any recurrence."""

from __future__ import annotations

import pytest
import torch
from helpers import make, randn, random_state


def unrolled(h, projected, start):
    """h_t = Σ_k i_k ⊙ (Π_{l=k+1..t} f_l) ⊙ v_k, plus what is left of the initial state.

    The gates need the previous hidden states; those are taken from the unit's own output.
    """
    q, k, v = projected.unflatten(-1, (3, -1)).unbind(-2)
    previous = torch.cat([start[None], h[:-1]])
    i = 1 / (1 + torch.exp(-(k + previous)))
    f = 1 / (1 + torch.exp(-(q - previous)))
    total = []
    for t in range(len(h)):
        memory = [i[j] * f[j + 1 : t + 1].prod(0) * v[j] for j in range(t + 1)]
        total.append(sum(memory) + f[: t + 1].prod(0) * start)
    return torch.stack(total)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("with_state", [False, True], ids=["no-state", "state"])
@pytest.mark.parametrize("norm", [None, "layer"])
def test_hidden_state_is_a_gated_sum_of_values(norm, with_state, seed):
    """With g the identity, every token is remembered by the product of the forget gates after it."""
    unit = make("lrn", 5, 4, activation="identity", norm=norm, seed=seed)
    x = randn(12, 3, 5, seed=seed + 50)
    start = random_state(unit, 3) if with_state else torch.zeros(1, 3, 4, dtype=torch.float64)
    h, final = unit(x, start if with_state else None)
    expected = unrolled(h, unit.project(x), start[0])
    torch.testing.assert_close(h, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(final[0], expected[-1], rtol=0, atol=1e-10)


def test_reverse_direction_too():
    """Reading from the end, the same sum over the steps that follow."""
    unit = make("lrn", 5, 4, activation="identity", bidirectional=True)
    x = randn(8, 2, 5)
    h = unit(x)[0][..., 4:].flip(0)
    projected = unit.project(x)[..., 12:].flip(0)
    start = torch.zeros(2, 4, dtype=torch.float64)
    torch.testing.assert_close(h, unrolled(h, projected, start), rtol=0, atol=1e-10)


def test_the_tanh_unit_is_not_such_a_sum():
    """The identity needs the identity: otherwise this test would pass on anything."""
    unit, x = make("lrn", 5, 4), randn(8, 2, 5)
    h, _ = unit(x)
    expected = unrolled(h, unit.project(x), torch.zeros(2, 4, dtype=torch.float64))
    assert (h - expected).abs().max() > 1e-3
