"""What leaves on padded sequences is what the modules compute, whatever lies in the padding."""

import pytest
import torch
from helpers import make, randn

import lrn
from lrn.nn import (
    CRF,
    AttentiveRecurrence,
    BothWays,
    GatedAttention,
    LockedPooling,
    Pointer,
    SelfPooling,
    SpellingGRU,
    SpellingPool,
    SpellingRNN,
    TwoCells,
    best_spans,
    padded,
)
from lrn.recurrence import padded_memory
from lrn.text.batches import Packing, RowPacking, Tokens

LENGTHS = torch.tensor([4, 1, 3])
OTHERS = torch.tensor([2, 5, 1])


def rows(lengths, width, seed=1):
    """Sequences with numbers in their padding that must not count, and one step more of it than needed."""
    x = randn(len(lengths), int(lengths.max()) + 1, width, seed=seed)
    return torch.where(padded.real(x, lengths).unsqueeze(-1), x, 100.0)


def packed(x, packing):
    return packing.pack(x[:, : packing.mask.shape[1]]).data


def same(found, expected, lengths):
    """Where steps are real."""
    mask = padded.real(expected, lengths)
    torch.testing.assert_close(found[:, : expected.shape[1]][mask], expected[mask], rtol=0, atol=1e-12)


def both(width):
    return BothWays(make("lrn", width, 5), make("lrn", width, 5, seed=1))


@pytest.mark.parametrize("name", lrn.UNITS)
@pytest.mark.parametrize("batch_first", [True, False])
def test_run(name, batch_first):
    unit = make(name, 3, 5, bidirectional=True, batch_first=batch_first)
    x, packing = rows(LENGTHS, 3), Packing.of(LENGTHS.tolist())
    output, state = padded.run(unit, x, LENGTHS)
    expected, last = unit(packing.packed(packed(x, packing)))
    same(output, packing.pad(expected.data), LENGTHS)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-12)


def test_both_ways():
    layer, x, packing = both(3), rows(LENGTHS, 3), RowPacking.of(LENGTHS.tolist())
    same(padded.both_ways(layer, x, LENGTHS), packing.pad(layer(packed(x, packing), packing)), LENGTHS)


@pytest.mark.parametrize("kind", ["pool", "rnn", "gru"])
def test_spelling(kind):
    """Of words of all lengths up to the longest, of which nothing is behind the last character."""
    table = torch.nn.Embedding(9, 4).double()
    module = {
        "pool": lambda: SpellingPool(table),
        "rnn": lambda: SpellingRNN(table, make("lrn", 4, 3, bidirectional=True, batch_first=True)),
        "gru": lambda: SpellingGRU(table, 3),
    }[kind]().double()
    characters = torch.tensor([[3, 1, 2, 8], [5, 0, 0, 0], [7, 7, 0, 0]])
    words = torch.arange(3)
    given = Tokens(words, words, characters, Packing.of([4, 1, 2]))
    found = padded.spelling(module, characters, longest=4)
    torch.testing.assert_close(found, module(given), rtol=0, atol=1e-12)
    wider = torch.nn.functional.pad(characters, (0, 2))
    torch.testing.assert_close(padded.spelling(module, wider, longest=4), found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [SelfPooling, LockedPooling])
def test_pooling(kind):
    module, x, packing = kind(6, 4).double(), rows(LENGTHS, 6), RowPacking.of(LENGTHS.tolist())
    found = padded.pooling(module, x, padded.real(x, LENGTHS))
    torch.testing.assert_close(found, module(packed(x, packing), packing)[0], rtol=0, atol=1e-12)


def test_gated_attention():
    module, x, memory = GatedAttention(6, 4).double(), rows(LENGTHS, 6), rows(OTHERS, 6, seed=2)
    first, second = RowPacking.of(LENGTHS.tolist()), RowPacking.of(OTHERS.tolist())
    expected = module(packed(x, first), first, packed(memory, second), second)
    found = padded.gated_attention(module, x, memory, padded.real(memory, OTHERS))
    same(found, first.pad(expected), LENGTHS)


def test_pointer_and_spans():
    module, memory, state = Pointer(6, 4, 3).double(), rows(LENGTHS, 6), randn(3, 4)
    packing = RowPacking.of(LENGTHS.tolist())
    expected = module(state, packed(memory, packing), packing)
    found = padded.pointed(module, state, memory, padded.real(memory, LENGTHS))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours[:, :4], theirs, rtol=0, atol=1e-12)
        assert bool((ours[:, 4:] == -torch.inf).all())
    logarithms = [scores.log_softmax(-1) for scores in found]
    for longest in (1, 2, 9):
        spans = padded.best_span(*logarithms, longest)
        for ours, theirs in zip(spans, best_spans(*logarithms, longest), strict=True):
            torch.testing.assert_close(ours, theirs[:, 0])


@pytest.mark.parametrize("name", lrn.UNITS)
def test_two_cells(name):
    layer = TwoCells(make(name, 3, 5), make(name, 4, 5, seed=1))
    x, y, packing = rows(LENGTHS, 3), rows(LENGTHS, 4, seed=2), Packing.of(LENGTHS.tolist())
    empty = torch.zeros(1, 3, 5).double()
    first = (empty, empty) if layer.lower.parts == 2 else empty
    expected, last = layer(packed(x, packing), packed(y, packing), packing.batch_sizes.tolist(), first)
    output, state = padded.two_cells(layer, x, y, LENGTHS)
    same(output, packing.pad(expected), LENGTHS)
    pairs = zip(*(s if isinstance(s, tuple) else (s,) for s in (state, last)), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs[:, packing.back], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lrn", "sru"])
def test_attentive(name):
    walk = AttentiveRecurrence(make(name, 3, 4), make(name, 6, 4, seed=1), 6, heads=2).double()
    x, states = rows(LENGTHS, 3), rows(OTHERS, 6, seed=2)
    packing, others = Packing.of(LENGTHS.tolist()), Packing.of(OTHERS.tolist())
    places, starts = others.one_by_one(packing.order)
    h = randn(1, 3, 4, seed=3)
    first = (h, h) if walk.lower.parts == 2 else h
    ordered = (
        tuple(part[:, packing.order] for part in first) if isinstance(first, tuple) else h[:, packing.order]
    )
    memory = walk.open(packed(states, others)[places], starts, 5)
    expected = walk(packed(x, packing), packing.batch_sizes.tolist(), memory, ordered)
    there = padded_memory(walk.keys(states), states, padded.real(states, OTHERS))
    same(padded.attentive(walk, x, LENGTHS, there, first), packing.pad(expected.output), LENGTHS)


@pytest.mark.parametrize("allowed", [False, True])
def test_viterbi(allowed):
    """As the CRF itself decodes, with and without rules of what may follow what."""
    rules = torch.rand(7, 7, generator=torch.Generator().manual_seed(1)) > 0.3 if allowed else None
    crf = CRF(6, rules).double()
    with torch.no_grad():
        crf.start.copy_(randn(6, seed=8))
        crf.end.copy_(randn(6, seed=9))
    for seed in range(5):
        emissions = rows(LENGTHS, 6, seed=seed)
        mask = padded.real(emissions, LENGTHS)
        assert torch.equal(padded.viterbi(crf, emissions, mask), crf.decode(emissions, mask))
