"""Layers and the two halves of a unit: projection, recurrence, stacking, dropout."""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, assert_same, make, randn, random_state, settings, states
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence

all_variants = pytest.mark.parametrize("variant", VARIANTS)


def layer_of(unit, layer, variant, width, **kwargs):
    """A unit of one layer that holds the weights of ``unit``'s given layer."""
    single = make(variant, width, unit.hidden_size, bidirectional=unit.bidirectional, **kwargs)
    weights = unit.state_dict()
    single.load_state_dict({name: weights[name.replace("_l0", f"_l{layer}")] for name in single.state_dict()})
    return single


@all_variants
@given(setting=settings(steps=(0, 6), max_layers=1), with_state=st.booleans(), batch_first=st.booleans())
def test_project_then_recur_is_forward(variant, setting, with_state, batch_first):
    """Models that put attention between the two halves start from the same result."""
    unit, x = setting.unit(variant, batch_first=batch_first), setting.input()
    x = x.transpose(0, 1) if batch_first else x
    start = random_state(unit, setting.batch) if with_state else None
    projected = unit.project(x)
    assert projected.shape == (*x.shape[:-1], unit.directions * unit.gates * 4)
    assert_same(unit.recur(projected, start), unit(x, start))


@all_variants
@given(setting=settings(max_layers=1))
def test_project_then_recur_with_ragged_rows(variant, setting):
    """The two halves take lengths, reset and packed rows as the whole does."""
    unit, x = setting.unit(variant), setting.input()
    lengths = torch.arange(setting.batch).clamp(max=setting.steps - 1) + 1
    reset = randn(setting.steps, setting.batch, seed=setting.seed) > 0.5
    rows = {"lengths": lengths, "reset": reset}
    assert_same(unit.recur(unit.project(x), **rows), unit(x, **rows))
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    assert_same(unit.recur(unit.project(packed)), unit(packed))


@all_variants
def test_project_any_leading_dimensions(variant):
    """A projection is a product per token: one token, a row or a batch of any shape."""
    unit, x = make(variant, bidirectional=True), randn(2, 3, 4, 3)
    assert_same(unit.project(x)[1, 2, 3], unit.project(x[1, 2, 3]))
    assert_same(unit.project(x)[0, 1], unit.project(x[0, 1]))


@all_variants
def test_recur_step_by_step(variant):
    """Attention models walk the recurrence themselves, a projected step at a time."""
    unit, x = make(variant), randn(5, 2, 3)
    projected, state, outputs = unit.project(x), None, []
    for x_t in projected.split(1):
        h_t, state = unit.recur(x_t, state)
        outputs.append(h_t)
    assert_same((torch.cat(outputs), state), unit(x))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("norm", [None, "layer"])
@all_variants
def test_two_layers_by_hand(variant, norm, bidirectional):
    """The second layer reads the first one's outputs; states are stacked layer by layer."""
    d = 2 if bidirectional else 1
    width = 4 * d  # as wide as the outputs: shapes alone would not tell the layers apart
    unit = make(variant, width, 4, num_layers=2, bidirectional=bidirectional, norm=norm)
    x, start = randn(5, 2, width), random_state(unit, 2)
    below, above = (layer_of(unit, layer, variant, width, norm=norm) for layer in (0, 1))
    middle, first = below(x, states(lambda s: s[:d], start))
    output, second = above(middle, states(lambda s: s[d:], start))
    final = states(lambda a, b: torch.cat([a, b]), first, second)
    assert_same(unit(x, start), (output, final))


@pytest.mark.parametrize("bidirectional", [False, True])
@all_variants
def test_recur_of_an_upper_layer(variant, bidirectional):
    """`layer=` picks that layer's own weights in both halves."""
    unit, x = make(variant, num_layers=2, bidirectional=bidirectional), randn(5, 2, 3)
    start, d = random_state(unit, 2), unit.directions
    below, above = states(lambda s: s[:d], start), states(lambda s: s[d:], start)
    middle, first = unit.recur(unit.project(x, layer=0), below, layer=0)
    output, second = unit.recur(unit.project(middle, layer=1), above, layer=1)
    final = states(lambda a, b: torch.cat([a, b]), first, second)
    assert_same((output, final), unit(x, start))


@all_variants
def test_dropout_acts_between_layers(variant):
    """With everything dropped the upper layer reads zeros; nothing else changes."""
    unit, x = make(variant, num_layers=2, dropout=1.0), randn(5, 2, 3)
    kept = make(variant, num_layers=2)(x)
    output, final = unit(x)
    above = layer_of(unit, 1, variant, 4)
    expected, top = above(torch.zeros(5, 2, 4, dtype=x.dtype))
    assert_same(output, expected)
    assert_same(states(lambda s: s[1:], final), top)
    assert_same(states(lambda s: s[:1], final), states(lambda s: s[:1], kept[1]))


@all_variants
def test_dropout_scales_what_it_keeps(variant):
    """Half is dropped and the rest doubled, drawn anew for every token and unit."""
    unit, x = make(variant, num_layers=2, dropout=0.5), randn(5, 2, 3)
    below, above = layer_of(unit, 0, variant, 3), layer_of(unit, 1, variant, 4)
    torch.manual_seed(7)
    actual = unit(x)
    torch.manual_seed(7)
    middle, first = below(x)
    output, second = above(dropout(middle, 0.5))
    final = states(lambda a, b: torch.cat([a, b]), first, second)
    assert_same(actual, (output, final))


@all_variants
def test_dropout_only_in_training(variant):
    """eval() gives the whole network, and training mode really drops."""
    unit, x = make(variant, num_layers=2, dropout=0.5), randn(5, 2, 3)
    assert not torch.equal(unit(x)[0], unit(x)[0])
    assert_same(unit.eval()(x), make(variant, num_layers=2)(x))


@all_variants
def test_dropout_of_one_layer_does_nothing(variant):
    """As in torch.nn: no dropout on the last layer's output, which here is the only one."""
    x = randn(5, 2, 3)
    with pytest.warns(UserWarning, match="only one"):
        unit = make(variant, dropout=1.0)
    assert_same(unit(x), make(variant)(x))
