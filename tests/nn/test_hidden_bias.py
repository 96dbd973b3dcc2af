"""Units with biases where the translation code has them, against its equations."""

import pytest
import torch
from helpers import randn

from lrn.names import UNITS
from lrn.nn import hidden_biased_unit
from lrn.recurrence import cells

INSIDE, SIZE = 3, 4
# products of the input and of the hidden state, vectors of the recurrence
GATES = {
    "lrn": (3, 0, 0),
    "olrn": (4, 0, 0),
    "glrn": (2, 0, 0),
    "elrn": (1, 0, 0),
    "atr": (1, 1, 0),
    "sru": (4, 0, 2),
    "lstm": (4, 4, 0),
    "gru": (3, 3, 0),
}


@pytest.mark.parametrize("norm", [None, "rms", "layer"])
@pytest.mark.parametrize("unit", UNITS)
def test_parameters(unit, norm):
    """A scale and an offset for every product, and a bias besides for those of the hidden state."""
    inner, outer, vectors = GATES[unit]
    expected = SIZE * (inner * INSIDE + outer * SIZE + vectors + outer)
    expected += SIZE * (inner + outer) * {None: 0, "rms": 1, "layer": 2}[norm]
    found = hidden_biased_unit(unit, INSIDE, SIZE, norm)
    assert sum(parameter.numel() for parameter in found.parameters()) == expected


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("unit", ["atr", "gru", "lstm"])
def test_every_bias_is_at_work(unit, norm):
    """As if the hidden product had the sum of its bias and its offset."""
    torch.manual_seed(1)
    made = hidden_biased_unit(unit, INSIDE, SIZE, norm).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    x = randn(2, INSIDE)
    state = tuple(randn(2, SIZE, seed=n) for n in range(2, 2 + made.parts))

    def product(of, kind, bias):
        scale = getattr(made, f"norm_{kind}_l0")
        return cells.normalise(of @ getattr(made, f"weight_{kind}_l0").T, norm, scale, bias)

    both = made.bias_hh_l0 + (made.bias_norm_hh_l0 if norm == "layer" else 0)
    step = cells.MATRIX_CELLS[made.cell].step(lambda h: product(h, "hh", both))
    expected = step(product(x, "ih", made.bias_ih_l0 if norm == "layer" else None), state)
    given = tuple(part[None] for part in state)
    output, _ = made.step(x, given if made.parts == 2 else given[0])
    torch.testing.assert_close(output, expected[0], rtol=0, atol=1e-12)
    output.sum().backward()
    assert made.bias_hh_l0.grad.abs().sum() > 0


@pytest.mark.parametrize("unit", UNITS)
def test_first_weights(unit):
    """Biases and offsets 0, scales 1."""
    for name, parameter in hidden_biased_unit(unit, INSIDE, SIZE, "layer").named_parameters():
        if name.startswith("bias"):
            assert not parameter.any()
        elif name.startswith("norm"):
            assert (parameter == 1).all()


def test_no_activation_where_it_is_a_choice():
    assert hidden_biased_unit("lrn", INSIDE, SIZE).cell == "lrn_identity"
    assert hidden_biased_unit("atr", INSIDE, SIZE, "layer").cell == "atr_identity"
    assert hidden_biased_unit("olrn", INSIDE, SIZE).cell == "olrn"
