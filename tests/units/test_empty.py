"""No steps, one step, no rows, one row: the edges of every shape."""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, assert_same, make, parts, randn, random_state, states, tensors

all_variants = pytest.mark.parametrize("variant", VARIANTS)
one_or_both = pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
norms = pytest.mark.parametrize("norm", [None, "layer"])


@norms
@one_or_both
@all_variants
def test_no_steps(variant, bidirectional, norm):
    """An empty sequence has an empty output and leaves the state as it was."""
    unit = make(variant, num_layers=2, bidirectional=bidirectional, norm=norm)
    start = random_state(unit, 2)
    rows = [
        {},
        {"lengths": [0, 0]},
        {"reset": torch.zeros(0, 2, dtype=torch.bool)},
        {"lengths": torch.tensor([0, 0]), "reset": torch.zeros(0, 2, dtype=torch.bool)},
    ]
    for row in rows:
        output, final = unit(randn(0, 2, 3), start, **row)
        assert output.shape == (0, 2, 4 * unit.directions)
        assert_same(final, start, atol=0)
    _, final = unit(randn(0, 2, 3))
    assert_same(final, states(torch.zeros_like, start), atol=0)


@all_variants
def test_no_steps_batch_first_and_unbatched(variant):
    """The same where time is the second dimension, or where there is no batch."""
    unit = make(variant, batch_first=True)
    start = random_state(unit, 2)
    output, final = unit(randn(2, 0, 3), start)
    assert output.shape == (2, 0, 4)
    assert_same(final, start, atol=0)
    output, final = unit(randn(0, 3))
    assert output.shape == (0, 4)
    assert all(part.shape == (1, 4) for part in parts(final))


@all_variants
def test_gradient_through_no_steps(variant):
    """The final state is the initial one, and so is its gradient."""
    unit, x = make(variant), randn(0, 2, 3).requires_grad_()
    start = states(lambda s: s.requires_grad_(), random_state(unit, 2))
    output, final = unit(x, start)
    total = output.sum() + sum(part.sum() for part in parts(final))
    grads = torch.autograd.grad(total, tensors(start))
    assert all(torch.equal(grad, torch.ones_like(grad)) for grad in grads)


@norms
@one_or_both
@all_variants
def test_no_rows(variant, bidirectional, norm):
    """The last shard of a data set may be empty."""
    unit = make(variant, num_layers=2, bidirectional=bidirectional, norm=norm)
    layers = 2 * unit.directions
    no_marks = torch.zeros(4, 0, dtype=torch.bool)
    for row in [{}, {"lengths": []}, {"lengths": torch.zeros(0, dtype=torch.int64)}, {"reset": no_marks}]:
        for start in (None, random_state(unit, 0)):
            output, final = unit(randn(4, 0, 3), start, **row)
            assert output.shape == (4, 0, 4 * unit.directions)
            assert all(part.shape == (layers, 0, 4) for part in parts(final))


@all_variants
def test_gradient_of_no_rows(variant):
    """Backward over an empty batch gives zero gradients, not an error."""
    unit = make(variant, bidirectional=True)
    output, _ = unit(randn(4, 0, 3))
    grads = torch.autograd.grad(
        output.sum(), list(unit.parameters()), allow_unused=True, materialize_grads=True
    )
    assert not any(grad.any() for grad in grads)


@all_variants
def test_no_rows_and_no_steps(variant):
    """Nothing in, nothing out."""
    unit = make(variant, bidirectional=True)
    output, final = unit(randn(0, 0, 3))
    assert output.shape == (0, 0, 8)
    assert all(part.shape == (2, 0, 4) for part in parts(final))
    with_lengths, _ = unit(randn(0, 0, 3), lengths=[])
    assert with_lengths.shape == (0, 0, 8)


@one_or_both
@all_variants
def test_one_step(variant, bidirectional):
    """With a single step the output is the final h of each direction."""
    unit, x = make(variant, bidirectional=bidirectional), randn(1, 3, 3)
    output, final = unit(x, random_state(unit, 3))
    h = parts(final)[0]
    assert_same(output[0], torch.cat(tuple(h), -1), atol=0)
    assert_same(unit(x, lengths=[1, 1, 1]), unit(x))


@one_or_both
@all_variants
def test_one_row(variant, bidirectional):
    """A batch of one is a row of a larger batch."""
    unit, x = make(variant, bidirectional=bidirectional), randn(5, 3, 3)
    start = random_state(unit, 3)
    output, final = unit(x, start)
    alone = unit(x[:, 1:2], states(lambda s: s[:, 1:2], start))
    assert_same(alone, (output[:, 1:2], states(lambda s: s[:, 1:2], final)))


@all_variants
def test_one_feature_one_hidden(variant):
    """Width one must not be squeezed away."""
    unit = make(variant, 1, 1, num_layers=2, bidirectional=True)
    output, final = unit(randn(3, 2, 1), lengths=[3, 1])
    assert output.shape == (3, 2, 2)
    assert all(part.shape == (4, 2, 1) for part in parts(final))
