"""Which block of the fused weight is which: set one block and see its effect, in weight and bias alike."""

from __future__ import annotations

import math

import pytest
import torch

import lrn

OPEN, SHUT = 60.0, -60.0  # far enough out that a float64 gate is exactly 1, or 0 to 1e-26
H0 = torch.tensor([0.3, -0.7], dtype=torch.float64)
V = 0.45

sides = pytest.mark.parametrize("side", ["bias", "weight"])
directions = pytest.mark.parametrize("direction", [0, 1], ids=["forward", "reverse"])


def run(unit_name, blocks, side, direction, vectors=None, **kwargs):
    """One step of a unit of 2 hidden and 1 input, gates set block by block, from the state H0."""
    unit = lrn.make_unit(unit_name, 1, 2, bidirectional=True, dtype=torch.float64, **kwargs)
    suffix = ("_l0", "_l0_reverse")[direction]
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.zero_()
        column = torch.tensor(blocks, dtype=torch.float64).repeat_interleave(2)
        if side == "bias":
            getattr(unit, "bias_ih" + suffix).copy_(column)
        else:
            getattr(unit, "weight_ih" + suffix).copy_(column[:, None])
        for name, value in (vectors or {}).items():
            getattr(unit, name + suffix).fill_(value)
    state = H0.expand(2, 1, 2).clone()
    output, final = unit(
        torch.ones(1, 1, 1, dtype=torch.float64), (state, state) if unit.parts == 2 else state
    )
    h = output[0, 0].view(2, 2)[direction]
    return h if unit.parts == 1 else (h, final[1][direction, 0])


def expect(actual, expected):
    expected = torch.as_tensor(expected, dtype=torch.float64).expand(2)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@directions
@sides
def test_lrn_is_q_k_v(side, direction):
    """q opens the forget gate, k the input gate, v is what comes in."""

    def h(q, k, v):
        return run("lrn", [q, k, v], side, direction, activation="identity")

    expect(h(OPEN, SHUT, V), H0)
    expect(h(SHUT, OPEN, V), V)
    expect(h(SHUT, SHUT, V), 0)
    expect(h(OPEN, OPEN, V), H0 + V)
    expect(run("lrn", [OPEN, OPEN, V], side, direction), torch.tanh(H0 + V))


@directions
@sides
def test_olrn_is_q_k_v_o(side, direction):
    """As LRN, with an output gate on what it would have put out."""

    def h(q, k, v, o):
        return run("olrn", [q, k, v, o], side, direction)

    expect(h(OPEN, SHUT, V, OPEN), H0)
    expect(h(SHUT, OPEN, V, OPEN), V)
    expect(h(OPEN, OPEN, V, OPEN), H0 + V)
    expect(h(OPEN, OPEN, V, SHUT), 0)


@directions
@sides
def test_glrn_is_q_v(side, direction):
    """q open keeps the state, q shut takes v."""

    def h(q, v):
        return run("glrn", [q, v], side, direction, activation="identity")

    expect(h(OPEN, V), H0)
    expect(h(SHUT, V), V)


@directions
@sides
def test_elrn_is_v_alone(side, direction):
    """The gate knows only the state."""
    f = torch.sigmoid(-H0)
    expect(run("elrn", [V], side, direction, activation="identity"), (1 - f) * V + f * H0)


@directions
@sides
def test_sru_is_r_f_c_h(side, direction):
    """r chooses between memory and highway, f between old memory and new."""

    def h_and_c(r, f, c, h):
        return run("sru", [r, f, c, h], side, direction)

    for r, f, wanted_h, wanted_c in [
        (OPEN, OPEN, H0, H0),
        (OPEN, SHUT, V, V),
        (SHUT, OPEN, 0.2, H0),
        (SHUT, SHUT, 0.2, V),
    ]:
        h, c = h_and_c(r, f, V, 0.2)
        expect(h, wanted_h)
        expect(c, wanted_c)


@directions
def test_sru_vectors_belong_to_their_gates(direction):
    """v_f reads the memory into the forget gate, v_r into the highway gate."""
    h, c = run("sru", [0, SHUT, V, 0.2], "bias", direction, vectors={"v_r": 300.0})
    expect(c, V)
    expect(h, [V, 0.2])
    _, c = run("sru", [OPEN, 0, V, 0.2], "bias", direction, vectors={"v_f": 300.0})
    expect(c, [H0[0], V])


@directions
def test_atr_biases_are_one_on_each_side(direction):
    """bias_ih is added to p, bias_hh to q: the same in the input gate, opposite in the forget gate."""
    from_p = run("atr", [0.5], "bias", direction, activation="identity")
    expect(from_p, (0.5 + H0) / (1 + math.exp(-0.5)))
    from_q = run("atr", [0.0], "bias", direction, vectors={"bias_hh": 0.5}, activation="identity")
    expect(from_q, H0 / (1 + math.exp(0.5)))
