"""Different ways to compute the same thing agree: chunks, steps, order of rows, direction, layout."""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, assert_same, gradients, make, randn, random_state, settings, states
from hypothesis import given
from hypothesis import strategies as st

all_variants = pytest.mark.parametrize("variant", VARIANTS)


def start_of(setting, unit, with_state):
    return random_state(unit, setting.batch, seed=setting.seed + 2) if with_state else None


@all_variants
@given(setting=settings(bidirectional=False), with_state=st.booleans(), cut=st.integers(0, 6))
def test_whole_is_chunk_by_chunk(variant, setting, with_state, cut):
    """Truncated training and streaming pass the state from one chunk to the next."""
    unit, x = setting.unit(variant), setting.input()
    start = start_of(setting, unit, with_state)
    first, middle = unit(x[:cut], start)
    second, final = unit(x[cut:], middle)
    assert_same((torch.cat([first, second]), final), unit(x, start))


@all_variants
@given(setting=settings(bidirectional=False), with_state=st.booleans(), batch_first=st.booleans())
def test_whole_is_step_by_step(variant, setting, with_state, batch_first):
    """`step` is the streaming form of the same unit, also with batch_first."""
    unit, x = setting.unit(variant, batch_first=batch_first), setting.input()
    start = start_of(setting, unit, with_state)
    state, outputs = start, []
    for x_t in x:
        h_t, state = unit.step(x_t, state)
        outputs.append(h_t)
    time = 1 if batch_first else 0
    whole = unit(x.transpose(0, time), start)
    assert_same((torch.stack(outputs, time), state), whole)


@all_variants
@given(setting=settings(bidirectional=False, batch=(1, 1)), batch_first=st.booleans())
def test_unbatched_step(variant, setting, batch_first):
    """A single stream needs no batch dimension, and batch_first does not matter to it."""
    unit, x = setting.unit(variant, batch_first=batch_first), setting.input()[:, 0]
    state, outputs = None, []
    for x_t in x:
        h_t, state = unit.step(x_t, state)
        outputs.append(h_t)
    assert_same((torch.stack(outputs), state), unit(x))


@all_variants
@given(setting=settings(), seed=st.integers(0, 100))
def test_order_of_rows_does_not_matter(variant, setting, seed):
    """Rows of a batch never see each other."""
    unit, x = setting.unit(variant), setting.input()
    start = start_of(setting, unit, True)
    order = torch.randperm(setting.batch, generator=torch.Generator().manual_seed(seed))
    output, final = unit(x, start)
    shuffled = unit(x[:, order], states(lambda s: s[:, order], start))
    assert_same(shuffled, (output[:, order], states(lambda s: s[:, order], final)))


@all_variants
@given(setting=settings(bidirectional=True, max_layers=1))
def test_reverse_half_is_a_forward_unit_on_flipped_input(variant, setting):
    """The second direction is the first one with its own weights, reading from the end."""
    both, x = setting.unit(variant), setting.input()
    start = start_of(setting, both, True)
    output, final = both(x, start)
    forward, backward = setting.unit(variant, bidirectional=False), setting.unit(variant, bidirectional=False)
    weights = both.state_dict()
    forward.load_state_dict({name: weights[name] for name in forward.state_dict()})
    backward.load_state_dict({name: weights[f"{name}_reverse"] for name in backward.state_dict()})

    assert_same(
        (output[..., :4], states(lambda s: s[:1], final)),
        forward(x, states(lambda s: s[:1], start)),
    )
    flipped, flipped_final = backward(x.flip(0), states(lambda s: s[1:], start))
    assert_same((output[..., 4:], states(lambda s: s[1:], final)), (flipped.flip(0), flipped_final))


@all_variants
@given(setting=settings(steps=(0, 6)), with_state=st.booleans())
def test_batch_first_is_transposed(variant, setting, with_state):
    """batch_first turns input and output, never the state."""
    unit, x = setting.unit(variant), setting.input()
    turned = setting.unit(variant, batch_first=True)
    start = start_of(setting, unit, with_state)
    output, final = unit(x, start)
    assert_same(turned(x.transpose(0, 1), start), (output.transpose(0, 1), final))
    contiguous = turned(x.transpose(0, 1).contiguous(), start)
    assert_same(contiguous, (output.transpose(0, 1), final))


@all_variants
@given(setting=settings(batch=(1, 1)), with_state=st.booleans(), batch_first=st.booleans())
def test_unbatched_is_a_batch_of_one(variant, setting, with_state, batch_first):
    """As in torch.nn: without a batch dimension, input, output and state all lose it."""
    unit, x = setting.unit(variant, batch_first=batch_first), setting.input()[:, 0]
    start = random_state(unit, seed=setting.seed) if with_state else None
    batched = states(lambda s: s.unsqueeze(1), start) if with_state else None
    batch_dim = 0 if batch_first else 1
    output, final = unit(x.unsqueeze(batch_dim), batched)
    assert_same(unit(x, start), (output.squeeze(batch_dim), states(lambda s: s.squeeze(1), final)))


LAYOUTS = {
    "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "features-strided": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "steps-strided": lambda x: torch.stack([x, x + 1], 1).flatten(0, 1)[::2],
    "features-first": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bidirectional", [False, True])
@all_variants
def test_noncontiguous_input(variant, bidirectional, layout):
    """Views come straight from users' code; strides must never be taken for granted."""
    unit = make(variant, bidirectional=bidirectional)
    plain = randn(5, 3, 3).requires_grad_()
    start = random_state(unit, 3)
    strided = states(lambda s: torch.stack([s, s + 1], -1)[..., 0], start)
    view = LAYOUTS[layout](plain)
    assert not view.is_contiguous()
    assert torch.equal(view, plain)
    wanted = [plain, *unit.parameters()]
    expected, actual = unit(plain, start), unit(view, strided)
    assert_same(actual, expected)
    assert_same(gradients(actual, wanted), gradients(expected, wanted))


@pytest.mark.parametrize("batch_first", [False, True])
@all_variants
def test_expanded_input(variant, batch_first):
    """An input of stride zero, as one state or token expanded over a batch or over time."""
    unit = make(variant, batch_first=batch_first)
    for shape in [(1, 3, 3), (4, 1, 3), (1, 1, 3)]:
        small = randn(*shape).requires_grad_()
        wide = small.expand(4, 3, 3)
        start = states(lambda s: s.expand(-1, 3, -1), random_state(unit, 1))
        if batch_first:
            start = states(lambda s: s[:, :1].expand(-1, 4, -1), start)
        wanted = [small, *unit.parameters()]
        expected = unit(wide.clone(), states(torch.clone, start))
        actual = unit(wide, start)
        assert_same(actual, expected)
        assert_same(gradients(actual, wanted), gradients(expected, wanted))


@pytest.mark.parametrize("bidirectional", [False, True])
@all_variants
def test_gradient_of_a_broadcast_loss(variant, bidirectional):
    """`output.sum()` sends an expanded, stride-zero gradient into the recurrence."""
    unit = make(variant, bidirectional=bidirectional)
    x = randn(4, 2, 3).requires_grad_()
    output, _ = unit(x)
    expanded = torch.autograd.grad(output.sum(), [x, *unit.parameters()])
    output, _ = unit(x)
    full = torch.autograd.grad(output, [x, *unit.parameters()], torch.ones_like(output))
    assert_same(expanded, full)


@all_variants
def test_input_and_state_are_left_alone(variant):
    """A unit never writes into what it was given."""
    unit, x = make(variant, bidirectional=True), randn(4, 2, 3)
    start = random_state(unit, 2)
    before = x.clone(), states(torch.clone, start)
    unit(x, start)
    assert torch.equal(x, before[0])
    assert_same(start, before[1], atol=0)


@all_variants
def test_same_call_same_bits(variant):
    """Runs repeat exactly, with and without gradients being recorded."""
    unit, x = make(variant, bidirectional=True, dtype=torch.float32), randn(6, 3, 3, dtype=torch.float32)
    once, again = unit(x), unit(x)
    assert_same(once, again, atol=0)
    with torch.no_grad():
        assert_same(unit(x), once, atol=1e-6)
