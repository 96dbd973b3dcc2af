"""States as weighted sums of tokens: against the states, and against plain products."""

import pytest
import torch
from analysis.cases import FEATURES, HIDDEN, LINEAR, STEPS, UNITS, problem

import lrn
from lrn import analysis
from lrn.analysis import decomposition


@pytest.mark.parametrize("name", LINEAR)
def test_linear_memories_are_explained_wholly(name):
    unit, x = problem(name)
    found = analysis.decompose(unit, x)
    torch.testing.assert_close(found.sums(), found.gates.memory, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found.explained(), torch.ones(STEPS, dtype=torch.float64))


@pytest.mark.parametrize("name", ["lrn", "glrn", "elrn"])
def test_with_tanh_only_small_states_are_explained(name):
    unit, x = problem(name, scale=1e-3)
    with torch.no_grad():
        for parameter in unit.parameters():
            if parameter.dim() == 1:
                parameter.zero_()
    assert analysis.decompose(unit, x).explained().min() > 0.99
    unit, x = problem(name, scale=5)
    assert analysis.decompose(unit, x).explained().min() < 0.9


@pytest.mark.parametrize("name", UNITS)
def test_weights_against_plain_products(name):
    unit, x = problem(name)
    found = analysis.decompose(unit, x)
    i, f = found.gates.log_i.exp(), found.gates.log_f.exp()
    whole, mean = found.all_weights(), found.mean_weights()
    for t in range(STEPS):
        for k in range(STEPS):
            plain = i[k] * f[k + 1 : t + 1].prod(0) if k <= t else torch.zeros(HIDDEN)
            torch.testing.assert_close(whole[k, t], plain.double(), rtol=1e-12, atol=1e-14)
            torch.testing.assert_close(mean[k, t], plain.double().mean(), rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(found.weights(t), whole[: t + 1, t], rtol=1e-12, atol=1e-14)


def test_chunks_do_not_matter(monkeypatch):
    unit, x = problem("lrn", steps=40)
    whole = analysis.decompose(unit, x)
    mean, sums = whole.mean_weights(), whole.sums()
    monkeypatch.setattr(decomposition, "CHUNK", 3 * 40 * HIDDEN)
    torch.testing.assert_close(whole.mean_weights(), mean, rtol=0, atol=0)
    torch.testing.assert_close(whole.sums(), sums, rtol=1e-12, atol=1e-12)


def test_wrong_input():
    x = torch.zeros(3, FEATURES)
    with pytest.raises(TypeError, match="LSTM"):
        analysis.decompose(lrn.LSTM(FEATURES, 4), x)
    with pytest.raises(ValueError, match="2 layers"):
        analysis.decompose(lrn.LRN(FEATURES, 4, num_layers=2), x)
    with pytest.raises(ValueError, match="both directions"):
        analysis.decompose(lrn.LRN(FEATURES, 4, bidirectional=True), x)
    with pytest.raises(ValueError, match="one sequence"):
        analysis.decompose(lrn.LRN(FEATURES, 4), x[None])
    with pytest.raises(ValueError, match="empty"):
        analysis.decompose(lrn.LRN(FEATURES, 4), x[:0])
    found = analysis.decompose(lrn.LRN(FEATURES, 4), x)
    with pytest.raises(ValueError, match="from 0 to 2, got 3"):
        found.weights(3)
