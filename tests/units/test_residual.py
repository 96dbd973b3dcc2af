"""Residual connections: each layer's output and what it has read, against plain sums, in every way to run."""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, assert_same, make, randn, random_state, says, states
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence

import lrn

T, B, H = 5, 3, 4
LENGTHS = torch.tensor([3, 5, 0])
RESET = torch.tensor([[False, True, False], [True, False, False]] * 2 + [[False, False, True]])

all_variants = pytest.mark.parametrize("variant", VARIANTS)
both_ways = pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
names = pytest.mark.parametrize("name", lrn.UNITS)


def stack(variant, width, layers=2, **kwargs):
    """A unit with residual connections, and its layers as units without."""
    unit = make(variant, width, H, layers, residual=True, **kwargs)
    given, weights, singles = {**kwargs}, unit.state_dict(), []
    for layer in range(layers):
        single = make(variant, width if layer == 0 else H * unit.directions, H, **given)
        own = {name: weights[name.replace("_l0", f"_l{layer}")] for name in single.state_dict()}
        single.load_state_dict(own)
        singles.append(single)
    return unit, singles


def by_hand(singles, x, state=None, between=lambda x: x, **rows):
    """Layer by layer: output = layer(x) + x where both are of one width; padding is zero throughout."""
    if rows.get("lengths") is not None:
        x = x * (torch.arange(len(x))[:, None] < rows["lengths"])[..., None]
    finals = []
    for layer, single in enumerate(singles):
        d = single.directions
        start = None if state is None else states(lambda s, n=layer * d, m=d: s[n : n + m], state)
        x = between(x) if layer else x
        output, final = single(x, start, **rows)
        x = output + x if output.shape == x.shape else output
        finals.append(final)
    return x, states(lambda *parts: torch.cat(parts), *finals)


@pytest.mark.parametrize("norm", [None, "layer"])
@pytest.mark.parametrize("same", [True, False], ids=["same-width", "other-width"])
@both_ways
@all_variants
def test_by_hand(variant, bidirectional, same, norm):
    """The first layer has a connection where its input is as wide as its output, the others always."""
    width = H * (2 if bidirectional else 1) if same else 3
    unit, singles = stack(variant, width, bidirectional=bidirectional, norm=norm)
    x, start = randn(T, B, width), random_state(unit, B)
    assert_same(unit(x), by_hand(singles, x))
    assert_same(unit(x, start), by_hand(singles, x, start))
    for rows in ({"lengths": LENGTHS}, {"reset": RESET}, {"lengths": LENGTHS, "reset": RESET}):
        assert_same(unit(x, start, **rows), by_hand(singles, x, start, **rows))


@all_variants
def test_one_layer(variant):
    unit, (single,) = stack(variant, H, layers=1)
    x, start = randn(T, B, H), random_state(unit, B)
    output, final = single(x, start)
    assert_same(unit(x, start), (output + x, final))


@all_variants
def test_the_state_is_the_layers_own(variant):
    """With one direction h after the last step is the output there, less what was added."""
    unit, x = make(variant, H, H, residual=True), randn(T, B, H)
    output, final = unit(x)
    h = final[0] if unit.parts == 2 else final
    assert_same(h[0], output[-1] - x[-1])


@both_ways
@all_variants
def test_padding_is_zero_whatever_stands_there(variant, bidirectional):
    width = H * (2 if bidirectional else 1)
    unit, x = make(variant, width, H, 2, bidirectional=bidirectional, residual=True), randn(T, B, width)
    padding = torch.arange(T)[:, None] >= LENGTHS
    expected = unit(x, lengths=LENGTHS)
    assert not expected[0][padding].any()
    x[padding] = torch.nan
    assert_same(unit(x, lengths=LENGTHS), expected)


@both_ways
@all_variants
def test_packed_is_padded(variant, bidirectional):
    width = H * (2 if bidirectional else 1)
    unit, lengths = (
        make(variant, width, H, 2, bidirectional=bidirectional, residual=True),
        torch.tensor([3, 5, 1]),
    )
    x = randn(T, B, width)
    output, final = unit(pack_padded_sequence(x, lengths, enforce_sorted=False))
    padded, expected = unit(x, lengths=lengths)
    assert_same(torch.nn.utils.rnn.pad_packed_sequence(output)[0], padded)
    assert_same(final, expected)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@all_variants
def test_steps_and_chunks_are_the_whole(variant, layers, batch_first):
    """One layer with a state is the usual step of a stream, which has a short cut."""
    unit = make(variant, H, H, layers, residual=True, batch_first=batch_first)
    x, start, time = randn(T, B, H), random_state(unit, B), 1 if batch_first else 0
    whole = unit(x.transpose(0, time), start)
    state, outputs = start, []
    for x_t in x:
        h_t, state = unit.step(x_t, state)
        outputs.append(h_t)
    assert_same((torch.stack(outputs, time), state), whole)
    first, middle = unit(x[:2].transpose(0, time), start)
    second, final = unit(x[2:].transpose(0, time), middle)
    assert_same((torch.cat([first, second], time), final), whole)


@names
def test_without_a_batch(name):
    unit, x = make(name, H, H, 2, residual=True), randn(T, 1, H)
    output, final = unit(x)
    assert_same(unit(x[:, 0]), (output[:, 0], states(lambda s: s[:, 0], final)))


@all_variants
def test_dropout_comes_after_the_sum(variant):
    """What a layer reads is dropped, and it is this that is added to its output."""
    torch.manual_seed(7)
    unit, singles = stack(variant, H)
    unit.dropout, x = 0.5, randn(T, B, H)
    torch.manual_seed(7)
    actual = unit(x)
    torch.manual_seed(7)
    assert_same(actual, by_hand(singles, x, between=lambda x: dropout(x, 0.5)))


@names
def test_derivatives(name):
    """First and second, with respect to input, state and every parameter."""
    unit = make(name, 2, 2, 2, residual=True)
    weights = [key for key, _ in unit.named_parameters()]
    start = random_state(unit, 2)
    given = start if isinstance(start, tuple) else (start,)

    def run(x, *rest):
        state = rest[: len(given)] if unit.parts == 2 else rest[0]
        own = dict(zip(weights, rest[len(given) :], strict=True))
        output, final = functional_call(unit, own, (x, state), {"lengths": torch.tensor([1, 3])})
        return (output, *(final if unit.parts == 2 else (final,)))

    leaves = [leaf.detach().requires_grad_() for leaf in (randn(3, 2, 2), *given, *unit.parameters())]
    assert gradcheck(run, leaves, fast_mode=True)
    assert gradgradcheck(run, leaves, fast_mode=True)


@names
def test_export(name):
    """The sum is in the graph, for any length and batch."""
    unit, steps, batch = make(name, H, H, 2, residual=True), torch.export.Dim("T"), torch.export.Dim("B")
    shapes = {"input": {0: steps, 1: batch}}
    program = torch.export.export(unit, (), {"input": randn(4, 3, H)}, dynamic_shapes=shapes, strict=False)
    for sizes in ((4, 3), (9, 2)):
        assert_same(program.module()(input=randn(*sizes, H)), unit(randn(*sizes, H)))


@pytest.mark.parametrize("name", ["lrn", "lstm"])
def test_autocast_keeps_the_type(name):
    """Of the output, which is that without residual connections."""
    plain, unit = (lrn.make_unit(name, H, H, residual=residual) for residual in (False, True))
    with torch.autocast("cpu", torch.bfloat16):
        x = torch.randn(T, B, H)
        assert unit(x)[0].dtype == plain(x)[0].dtype


@names
def test_halves_have_none(name):
    """What recur gives is the layer's own output: what was projected is not there to be added."""
    unit, x = make(name, H, H, residual=True), randn(T, B, H)
    output, final = unit(x)
    assert_same(unit.recur(unit.project(x)), (output - x, final))


@names
def test_printed(name):
    assert (
        repr(lrn.make_unit(name, 3, 4, 2, residual=True))
        == f"{name.upper()}(3, 4, num_layers=2, residual=True)"
    )


@both_ways
@names
def test_no_layer_that_could_have_one(name, bidirectional):
    out = 8 if bidirectional else 4
    with pytest.raises(
        ValueError, match=says("residual=True", name.upper(), "reads 3 features and puts out", str(out))
    ):
        lrn.make_unit(name, 3, 4, bidirectional=bidirectional, residual=True)
    lrn.make_unit(name, out, 4, bidirectional=bidirectional, residual=True)
