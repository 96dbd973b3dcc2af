"""Rows of different lengths: packed, padded with `lengths` and each row alone are the same thing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers import VARIANTS, assert_same, gradients, make, randn, random_state, settings, states, tensors
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from lrn.recurrence import packing


@pytest.fixture(autouse=True, scope="module", params=["by size", "packed"])
def way(request):
    """Every test here with batches of a size that is packed, and with all of them."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "packed":
            patch.setattr(packing, "TOKENS", 0)
            patch.setattr(packing, "SHARE", 1.0)
        yield request.param


all_variants = pytest.mark.parametrize("variant", VARIANTS)


@st.composite
def ragged(draw, shortest=1, **kwargs):
    """A setting and a length for each row, from ``shortest`` to all its steps."""
    setting = draw(settings(**kwargs))
    lengths = st.integers(shortest, max(shortest, setting.steps))
    return setting, draw(st.lists(lengths, min_size=setting.batch, max_size=setting.batch))


def row_by_row(unit, x, lengths, start):
    """The definition: every row run alone over its real steps, outputs padded with zeros."""
    output = x.new_zeros(*x.shape[:2], unit.directions * unit.hidden_size)
    finals = []
    for b, length in enumerate(lengths):
        state = None if start is None else states(lambda s, b=b: s[:, b : b + 1], start)
        row, final = unit(x[:length, b : b + 1], state)
        output[:length, b : b + 1] = row
        finals.append(final)
    return output, states(lambda *s: torch.cat(s, 1), *finals)


@all_variants
@given(case=ragged(shortest=0), with_state=st.booleans())
def test_lengths_are_each_row_alone(variant, case, with_state):
    """A batch is only a faster way to run its rows; empty rows keep their initial state."""
    (setting, lengths), x = case, case[0].input()
    unit = setting.unit(variant)
    start = random_state(unit, setting.batch) if with_state else None
    expected = row_by_row(unit, x, lengths, start)
    assert_same(unit(x, start, lengths=torch.tensor(lengths)), expected)
    assert_same(unit(x, start, lengths=lengths), expected)


@all_variants
@given(case=ragged(), with_state=st.booleans())
def test_packed_in_any_order_is_padded(variant, case, with_state):
    """enforce_sorted=False reorders rows inside; states come and go in the caller's order."""
    (setting, lengths), x = case, case[0].input()
    unit = setting.unit(variant)
    start = random_state(unit, setting.batch) if with_state else None
    packed = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    output, final = unit(packed, start)
    assert isinstance(output, PackedSequence)
    padded, out_lengths = pad_packed_sequence(output, total_length=setting.steps)
    assert out_lengths.tolist() == lengths
    assert_same((padded, final), unit(x, start, lengths=lengths))


@all_variants
@given(case=ragged(), with_state=st.booleans())
def test_sorted_packed_is_padded(variant, case, with_state):
    """enforce_sorted=True carries no indices at all."""
    (setting, lengths), x = case, case[0].input()
    lengths = sorted(lengths, reverse=True)
    unit = setting.unit(variant)
    start = random_state(unit, setting.batch) if with_state else None
    packed = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=True)
    output, final = unit(packed, start)
    assert output.sorted_indices is None
    padded, _ = pad_packed_sequence(output, total_length=setting.steps)
    assert_same((padded, final), unit(x, start, lengths=lengths))


@all_variants
@given(case=ragged(shortest=0))
def test_lengths_with_batch_first(variant, case):
    """The same rows the other way round, also where the input is a contiguous batch."""
    (setting, lengths), x = case, case[0].input()
    output, final = setting.unit(variant)(x, lengths=lengths)
    turned = setting.unit(variant, batch_first=True)
    for other in (x.transpose(0, 1), x.transpose(0, 1).contiguous()):
        assert_same(turned(other, lengths=lengths), (output.transpose(0, 1), final))


@all_variants
@given(setting=settings(), with_state=st.booleans())
def test_full_lengths_change_nothing(variant, setting, with_state):
    """Lengths that reach the end say nothing new."""
    unit, x = setting.unit(variant), setting.input()
    start = random_state(unit, setting.batch) if with_state else None
    assert_same(unit(x, start, lengths=[setting.steps] * setting.batch), unit(x, start))


@all_variants
@given(case=ragged(shortest=0), with_state=st.booleans())
def test_gradients_are_those_of_each_row_alone(variant, case, with_state):
    """Training on a padded batch is training on its rows."""
    (setting, lengths), x = case, case[0].input().requires_grad_()
    unit = setting.unit(variant)
    start = random_state(unit, setting.batch) if with_state else None
    wanted = [x, *unit.parameters()]
    if start is not None:
        wanted += [part.requires_grad_() for part in tensors(start)]
    expected = gradients(row_by_row(unit, x, lengths, start), wanted)
    assert_same(gradients(unit(x, start, lengths=lengths), wanted), expected, atol=1e-10)


@pytest.mark.parametrize("norm", [None, "layer", "rms"])
@pytest.mark.parametrize("bidirectional", [False, True])
@all_variants
def test_garbage_in_padding_changes_no_output(variant, bidirectional, norm):
    """What stands beyond a row's end is never looked at."""
    unit = make(variant, num_layers=2, bidirectional=bidirectional, norm=norm)
    x, start, lengths = randn(5, 3, 3), random_state(unit, 3), torch.tensor([2, 5, 0])
    dirty = x.clone()
    dirty[2:, 0] = float("nan")
    dirty[:, 2] = torch.tensor([float("inf"), 1e300, -float("inf"), float("nan"), -1e300])[:, None]
    assert_same(unit(dirty, start, lengths=lengths), unit(x, start, lengths=lengths))


@pytest.mark.parametrize("norm", [None, "layer", "rms"])
@pytest.mark.parametrize("reset", [False, True], ids=["no-reset", "reset"])
@all_variants
def test_garbage_in_padding_changes_no_gradient(variant, reset, norm):
    """One NaN in an unused corner must not reach the weights: 0 · NaN is NaN."""
    unit = make(variant, bidirectional=True, norm=norm)
    clean, start, lengths = randn(5, 3, 3).requires_grad_(), random_state(unit, 3), torch.tensor([2, 5, 0])
    padding = torch.arange(5)[:, None] >= lengths
    dirty = clean.detach().clone()
    dirty[padding] = float("nan")
    dirty.requires_grad_()
    rows = {"lengths": lengths, "reset": randn(5, 3, seed=5) > 0 if reset else None}
    weights = list(unit.parameters())
    actual = gradients(unit(dirty, start, **rows), [dirty, *weights])
    assert not actual[0][padding].any()
    assert_same(actual, gradients(unit(clean, start, **rows), [clean, *weights]))


@all_variants
def test_row_of_length_zero(variant):
    """An empty row outputs zeros, keeps its initial state, and passes its gradient straight through."""
    unit, x = make(variant, num_layers=2, bidirectional=True), randn(4, 2, 3)
    start = states(lambda s: s.requires_grad_(), random_state(unit, 2))
    output, final = unit(x, start, lengths=[0, 4])
    assert not output[:, 0].any()
    assert_same(states(lambda s: s[:, 0], final), states(lambda s: s[:, 0], start), atol=0)
    for n, part in enumerate(tensors(start)):
        (grad,) = torch.autograd.grad(tensors(final)[n][:, 0].sum(), part, retain_graph=True)
        assert torch.equal(grad[:, 0], torch.ones_like(grad[:, 0]))


@all_variants
def test_all_rows_empty(variant):
    """A batch of nothing but padding is no special case."""
    unit, x = make(variant, num_layers=2, bidirectional=True), randn(4, 2, 3)
    start = random_state(unit, 2)
    output, final = unit(x, start, lengths=[0, 0])
    assert output.shape == (4, 2, 8)
    assert not output.any()
    assert_same(final, start, atol=0)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8, list, tuple, np.array])
def test_any_kind_of_whole_lengths(kind):
    """Lengths come as lists from collate functions and as small integers from data sets."""
    unit, x, lengths = make("lrn"), randn(4, 2, 3), [3, 1]
    given = torch.tensor(lengths, dtype=kind) if isinstance(kind, torch.dtype) else kind(lengths)
    assert_same(unit(x, lengths=given), unit(x, lengths=torch.tensor(lengths)))


@all_variants
def test_where_padding_is_left_out_of_the_work(variant, way, monkeypatch):
    """A large batch with much padding is packed, one with little is not; the numbers are the same."""
    unit, x = make(variant, num_layers=2, bidirectional=True), randn(40, 80, 3)
    lengths, runs = [40 if b % 4 == 0 else 10 for b in range(80)], []
    run = packing.Packing.run
    monkeypatch.setattr(packing.Packing, "run", lambda self, *args: runs.append(self) or run(self, *args))
    output, final = unit(x, lengths=lengths)
    assert [len(packed.places) for packed in runs[:1]] == [sum(lengths)]
    monkeypatch.setattr(packing, "pays", lambda x, rows: False)
    assert_same((output, final), unit(x, lengths=lengths))
