"""First weights: within the bound of the matrix that the paper's code has, and filling it."""

import math

import pytest
import torch

import lrn
from lrn.nn import glorot_apart, glorot_fused, keep_at_first

N, H = 30, 40
BOUNDS = {
    "lrn": (N, 3 * H),
    "olrn": (N, 4 * H),
    "glrn": (N, 2 * H),
    "elrn": (N, H),
    "sru": (N, 4 * H),
    "lstm": (N + H, 4 * H),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_matrices(name):
    torch.manual_seed(1)
    unit = lrn.make_unit(name, N, H, bidirectional=True)
    glorot_fused(unit)
    bound = math.sqrt(6 / sum(BOUNDS[name]))
    for key, value in unit.named_parameters():
        if value.dim() == 2:
            assert 0.95 * bound < value.abs().max() <= bound, key
        elif not key.startswith("v_"):
            assert not value.any()


def test_gru_has_a_matrix_for_its_gates_and_one_for_its_candidate():
    torch.manual_seed(1)
    unit = lrn.GRU(N, H)
    glorot_fused(unit)
    for matrix in (unit.weight_ih_l0, unit.weight_hh_l0):
        gates, candidate = matrix.split([2 * H, H])
        for part, outputs in ((gates, 2 * H), (candidate, H)):
            bound = math.sqrt(6 / (N + H + outputs))
            assert 0.9 * bound < part.abs().max() <= bound


def test_vectors_of_sru():
    torch.manual_seed(1)
    unit = lrn.SRU(N, H)
    glorot_fused(unit, vectors=1.0)
    assert (unit.v_f_l0 == 1).all()
    glorot_fused(unit)
    assert 0.8 * math.sqrt(3 / math.sqrt(H)) < unit.v_f_l0.abs().max() <= math.sqrt(3 / math.sqrt(H))


@pytest.mark.parametrize(
    ("name", "kept", "new"),
    [("lrn", 0, 1), ("olrn", 0, 1), ("glrn", 0, None), ("sru", 1, None), ("lstm", 1, 0), ("gru", 1, None)],
)
def test_a_unit_that_keeps_its_state_at_first(name, kept, new):
    more = {"activation": "identity"} if name in ("lrn", "glrn") else {}
    unit = lrn.make_unit(name, 3, 4, bidirectional=True, **more).double()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.zero_()
    keep_at_first(unit, 30.0)
    for suffix in ("", "_reverse"):
        gates = getattr(unit, f"bias_ih_l0{suffix}").view(-1, 4)
        expected = torch.zeros_like(gates)
        expected[kept] = 30
        if new is not None:
            expected[new] = -30
        assert torch.equal(gates, expected)
    state = torch.randn(2, 1, 4).double()
    zero = torch.zeros_like(state)
    _, after = unit(torch.randn(5, 1, 3).double(), (zero, state) if unit.parts == 2 else state)
    if name != "olrn":  # whose output gate takes its part
        torch.testing.assert_close(after[1] if unit.parts == 2 else after, state)


def test_a_second_bias_is_no_gate():
    unit = lrn.GRU(3, 4, hidden_bias=True)
    keep_at_first(unit, 3.0)
    assert unit.bias_ih_l0.view(3, 4)[1].tolist() == [3.0] * 4
    assert not unit.bias_hn_l0.any()


@pytest.mark.parametrize("name", ["atr", "elrn"])
def test_a_unit_without_such_a_gate(name):
    with pytest.raises(ValueError, match="no bias of its own"):
        keep_at_first(lrn.make_unit(name, 3, 4), 1.0)


APART = {  # of each gate's row of the input matrix, and of the hidden one
    "lrn": [3 * H] * 3,
    "olrn": [4 * H] * 4,
    "glrn": [2 * H] * 2,
    "elrn": [H],
    "atr": [H],
    "sru": [4 * H] * 4,
    "lstm": [3 * H, 3 * H, H, 3 * H],
    "gru": [2 * H, 2 * H, H],
}


@pytest.mark.parametrize("name", APART)
def test_input_and_hidden_state_each_by_itself(name):
    torch.manual_seed(1)
    unit = lrn.make_unit(name, N, H)
    glorot_apart(unit)
    for key, value in unit.named_parameters():
        if key.startswith("v_"):
            assert 0.9 < value.abs().max() / math.sqrt(6 / (1 + H)) <= 1
        elif value.dim() == 1:
            assert not value.any()
        else:
            for gate, fan_out in zip(value.split(H), APART[name], strict=True):
                assert 0.95 < gate.abs().max() / math.sqrt(6 / (value.shape[1] + fan_out)) <= 1, key
