"""Documents back to back: `reset` marks a document's first step, and no state crosses that border."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
import torch
from helpers import VARIANTS, assert_same, gradients, make, randn, random_state, settings, states, tensors
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

all_variants = pytest.mark.parametrize("variant", VARIANTS)


@st.composite
def documents(draw, shortest=0, **kwargs):
    """A setting, a length for each row, and marks anywhere, also in the padding."""
    setting = draw(settings(**kwargs))
    rows = {"min_size": setting.batch, "max_size": setting.batch}
    lengths = draw(st.lists(st.integers(shortest, setting.steps), **rows))
    marks = st.lists(st.booleans(), **rows)
    reset = draw(st.lists(marks, min_size=setting.steps, max_size=setting.steps))
    return setting, lengths, torch.tensor(reset)


def by_direction(unit, forward, backward):
    """A state whose forward parts come from one state and whose backward parts from another."""
    if not unit.bidirectional:
        return forward
    is_backward = torch.arange(2 * unit.num_layers)[:, None, None] % 2 == 1
    return states(lambda f, b: torch.where(is_backward, b, f), forward, backward)


def document_by_document(unit, x, lengths, reset, start):
    """The definition: every document of every row run alone.

    Walking forward, the row's initial state enters its first document (unless that one is marked as
    new) and the final state leaves its last; walking back it is the other way round.
    """
    output = x.new_zeros(*x.shape[:2], unit.directions * unit.hidden_size)
    finals = []
    for b, length in enumerate(lengths):
        row = states(lambda s, b=b: s[:, b : b + 1], start)
        none = states(torch.zeros_like, row)
        borders = [0, *(t for t in range(1, length) if reset[t, b]), length]
        pieces = list(itertools.pairwise(borders)) if length else []
        ends = []
        for begin, end in pieces:
            forward = row if begin == 0 and not reset[0, b] else none
            backward = row if end == length else none
            piece, final = unit(x[begin:end, b : b + 1], by_direction(unit, forward, backward))
            output[begin:end, b : b + 1] = piece
            ends.append(final)
        finals.append(by_direction(unit, ends[-1], ends[0]) if ends else row)
    return output, states(lambda *s: torch.cat(s, 1), *finals)


@all_variants
@given(case=documents())
def test_documents_are_each_document_alone(variant, case):
    """Full rows, both directions, one or two layers, outputs and final states."""
    setting, _, reset = case
    unit, x = setting.unit(variant), setting.input()
    start = random_state(unit, setting.batch)
    expected = document_by_document(unit, x, [setting.steps] * setting.batch, reset, start)
    assert_same(unit(x, start, reset=reset), expected)


@all_variants
@hypothesis.settings(max_examples=25)
@given(case=documents())
def test_documents_in_ragged_rows(variant, case):
    """With lengths, marks in the padding say nothing; an empty row keeps its state."""
    setting, lengths, reset = case
    unit, x = setting.unit(variant), setting.input()
    start = random_state(unit, setting.batch)
    expected = document_by_document(unit, x, lengths, reset, start)
    assert_same(unit(x, start, reset=reset, lengths=lengths), expected)


@all_variants
@given(case=documents(shortest=1), in_order=st.booleans())
def test_documents_in_packed_rows(variant, case, in_order):
    """A packed input takes marks packed the same way."""
    setting, lengths, reset = case
    lengths = sorted(lengths, reverse=True) if in_order else lengths
    unit, x = setting.unit(variant), setting.input()
    start = random_state(unit, setting.batch)

    def pack(tensor):
        return pack_padded_sequence(tensor, torch.tensor(lengths), enforce_sorted=in_order)

    output, final = unit(pack(x), start, reset=pack(reset))
    padded, _ = pad_packed_sequence(output, total_length=setting.steps)
    assert_same((padded, final), unit(x, start, reset=reset, lengths=lengths))


@all_variants
@given(case=documents())
def test_documents_with_batch_first(variant, case):
    """Marks turn with the input: [B, T]."""
    setting, lengths, reset = case
    x = setting.input()
    turned = setting.unit(variant, batch_first=True)
    start = random_state(turned, setting.batch)
    output, final = setting.unit(variant)(x, start, reset=reset, lengths=lengths)
    actual = turned(x.transpose(0, 1), start, reset=reset.t(), lengths=lengths)
    assert_same(actual, (output.transpose(0, 1), final))
    contiguous = turned(x.transpose(0, 1).contiguous(), start, reset=reset.t().contiguous(), lengths=lengths)
    assert_same(contiguous, actual)


@pytest.mark.parametrize("batch_first", [False, True])
@all_variants
def test_unbatched_documents(variant, batch_first):
    """Without a batch dimension the marks are [T]."""
    unit, x = make(variant, bidirectional=True, batch_first=batch_first), randn(5, 3)
    reset = torch.tensor([False, False, True, False, True])
    pieces = [unit(x[:2])[0], unit(x[2:4])[0], unit(x[4:])[0]]
    assert_same(unit(x, reset=reset)[0], torch.cat(pieces))


@all_variants
@given(setting=settings(), with_state=st.booleans())
def test_no_marks_change_nothing(variant, setting, with_state):
    """A reset that is False everywhere is no reset."""
    unit, x = setting.unit(variant), setting.input()
    start = random_state(unit, setting.batch) if with_state else None
    nothing = torch.zeros(setting.steps, setting.batch, dtype=torch.bool)
    assert_same(unit(x, start, reset=nothing), unit(x, start))


@all_variants
@given(setting=settings())
def test_marks_everywhere_are_single_steps(variant, setting):
    """Every step its own document: the recurrence is switched off."""
    unit, x = setting.unit(variant), setting.input()
    output, _ = unit(x, reset=torch.ones(setting.steps, setting.batch, dtype=torch.bool))
    assert_same(output, torch.cat([unit(x_t)[0] for x_t in x.split(1)]))


@all_variants
def test_first_mark_drops_the_forward_state_only(variant):
    """At t = 0 the walk forward enters a new document; the walk back is already over there."""
    unit, x = make(variant, bidirectional=True), randn(4, 2, 3)
    start = random_state(unit, 2)
    reset = torch.zeros(4, 2, dtype=torch.bool)
    reset[0] = True
    forward_dropped = states(lambda s: torch.stack([torch.zeros_like(s[0]), s[1]]), start)
    assert_same(unit(x, start, reset=reset), unit(x, forward_dropped))


@all_variants
def test_marks_with_a_chunked_stream(variant):
    """Chunks with marks inside, the state carried on."""
    unit = make(variant, num_layers=2)
    x, reset = randn(6, 2, 3), randn(6, 2, seed=9) > 0.3
    first, middle = unit(x[:3], reset=reset[:3])
    second, final = unit(x[3:], middle, reset=reset[3:])
    assert_same((torch.cat([first, second]), final), unit(x, reset=reset))


@all_variants
@given(case=documents(max_layers=1))
def test_gradients_stop_at_borders(variant, case):
    """Gradients are those of each document alone, too."""
    setting, lengths, reset = case
    unit, x = setting.unit(variant), setting.input().requires_grad_()
    start = random_state(unit, setting.batch)
    wanted = [x, *unit.parameters(), *(part.requires_grad_() for part in tensors(start))]
    expected = gradients(document_by_document(unit, x, lengths, reset, start), wanted)
    actual = gradients(unit(x, start, reset=reset, lengths=lengths), wanted)
    assert_same(actual, expected, atol=1e-10)


@all_variants
def test_nothing_flows_from_one_document_to_another(variant):
    """A NaN in one document leaves the neighbours' outputs untouched, before and after it."""
    unit, x = make(variant, num_layers=2, bidirectional=True), randn(6, 1, 3)
    reset = torch.zeros(6, 1, dtype=torch.bool)
    reset[2] = reset[4] = True
    clean, _ = unit(x, reset=reset)
    x[2:4] = float("nan")
    output, final = unit(x, reset=reset)
    assert_same(output[:2], clean[:2])
    assert_same(output[4:], clean[4:])
    assert output[2:4].isnan().all()
    assert not any(part.isnan().any() for part in tensors(final))
