"""Closed forms against autograd and against the states themselves, in float64."""

import math

import pytest
import torch

import lrn
from lrn import analysis
from lrn.analysis import decomposition
from lrn.analysis.gates import gates_of

STEPS, FEATURES, HIDDEN = 12, 5, 7
UNITS = {
    "lrn": lambda: lrn.LRN(FEATURES, HIDDEN, dtype=torch.float64),
    "lrn, identity": lambda: lrn.LRN(FEATURES, HIDDEN, activation="identity", dtype=torch.float64),
    "olrn": lambda: lrn.OLRN(FEATURES, HIDDEN, dtype=torch.float64),
    "glrn": lambda: lrn.GLRN(FEATURES, HIDDEN, dtype=torch.float64),
    "glrn, identity": lambda: lrn.GLRN(FEATURES, HIDDEN, activation="identity", dtype=torch.float64),
    "elrn": lambda: lrn.ELRN(FEATURES, HIDDEN, dtype=torch.float64),
    "elrn, identity": lambda: lrn.ELRN(FEATURES, HIDDEN, activation="identity", dtype=torch.float64),
    "sru": lambda: lrn.SRU(FEATURES, HIDDEN, dtype=torch.float64),
}
LINEAR = ["lrn, identity", "olrn", "glrn, identity", "elrn, identity", "sru"]


def problem(name, steps=STEPS, scale=1.0):
    torch.manual_seed(1)
    unit = UNITS[name]()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.uniform_(-1, 1)
    return unit, scale * torch.randn(steps, FEATURES, dtype=torch.float64)


@pytest.mark.parametrize("name", UNITS)
def test_jacobians_against_autograd(name):
    """∂m_t/∂m_{t-1} is diagonal, and its diagonal is the closed form."""
    unit, x = problem(name)
    gates = gates_of(unit, x)
    for t in range(STEPS):

        def step(memory, t=t):
            state = (torch.zeros_like(memory)[None], memory[None]) if name == "sru" else memory[None]
            _, after = unit(x[t : t + 1], state)
            return (after[1] if name == "sru" else after)[0]

        jacobian = torch.autograd.functional.jacobian(step, gates.before[t])
        torch.testing.assert_close(jacobian, gates.jacobian[t].diag(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", UNITS)
def test_memory_is_what_the_unit_computes(name):
    unit, x = problem(name)
    output, state = unit(x)
    if name == "sru":
        torch.testing.assert_close(gates_of(unit, x).memory[-1], state[1][0], rtol=1e-12, atol=1e-12)
    else:
        torch.testing.assert_close(gates_of(unit, x).memory, output, rtol=1e-12, atol=1e-12)


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


@pytest.mark.parametrize("name", ["lrn", "olrn", "glrn", "elrn"])
def test_products_over_time_against_autograd(name):
    unit, x = problem(name)
    found = analysis.gradients(unit, x)
    by_autograd = analysis.distance_norms(unit, x).double()
    torch.testing.assert_close(found.norms(), by_autograd, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(found.back(STEPS - 1, 3), found.jacobian[-3:].prod(0))
    torch.testing.assert_close(found.back(4, 0), torch.ones(HIDDEN, dtype=torch.float64))


@pytest.mark.parametrize("make", [torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU, lrn.LSTM, lrn.ATR])
def test_norms_of_any_layer(make):
    torch.manual_seed(1)
    norms = analysis.distance_norms(make(FEATURES, HIDDEN), torch.randn(6, FEATURES))
    assert norms.shape == (7,)
    assert norms.isfinite().all()
    torch.testing.assert_close(norms[0], torch.tensor(1.0))


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
    with pytest.raises(ValueError, match="no step 5"):
        analysis.gradients(lrn.LRN(FEATURES, 4), x).back(2, 5)
