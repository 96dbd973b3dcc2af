"""Memory curves and half-lives, of known gates and of long sequences."""

import math

import torch

import lrn
from lrn import analysis


def test_two_thousand_tokens_of_three_hundred_channels():
    """T·T·H numbers would be 4.8 GB."""
    torch.manual_seed(1)
    unit = lrn.LRN(20, 300)
    curves = analysis.memory(unit, torch.randn(2000, 20)).curves
    assert curves.shape == (2000, 2000)
    assert curves.isfinite().all()


def test_memory_of_known_gates():
    """A forget gate of one half halves everything at every step."""
    unit = lrn.LRN(1, 1, activation="identity", dtype=torch.float64)
    with torch.no_grad():
        unit.weight_ih_l0.zero_()
        unit.bias_ih_l0.zero_()  # q = k = v = 0, so h = 0 and all gates are 1/2
    found = analysis.memory(unit, torch.zeros(5, 1, dtype=torch.float64))
    expected = torch.tensor([[0.5 ** (t - k + 1) if t >= k else 0.0 for t in range(5)] for k in range(5)])
    torch.testing.assert_close(found.curves, expected.double())
    assert found.half_life.tolist() == [1, 1, 1, 1, math.inf]
    torch.testing.assert_close(found.channel_half_life, torch.ones(1, dtype=torch.float64))
    assert found.ranking() == [4, 3, 2, 1, 0]
