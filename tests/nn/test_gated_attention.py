"""Gated dot attention: against its formula, one sequence at a time, and its dropout."""

import math

import pytest
import torch

from lrn.nn import GatedAttention
from lrn.text.batches import RowPacking

STEPS, PLACES = [3, 1, 4], [2, 5, 1]


@pytest.fixture
def attention():
    torch.manual_seed(1)
    return GatedAttention(6, 4).double()


def given(seed=2):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 4, 6, generator=draw, dtype=torch.float64)
    memory = torch.randn(3, 5, 6, generator=draw, dtype=torch.float64)
    packing, places = RowPacking.of(STEPS), RowPacking.of(PLACES)
    return x, memory, (packing.pack(x).data, packing, places.pack(memory).data, places)


def plain(attention, x, memory):
    """Of a whole padded batch, with the mask that the released code has."""
    queries = torch.relu(x @ attention.query.weight.t())
    keys = torch.relu(memory @ attention.key.weight.t())
    scores = queries @ keys.transpose(1, 2) / math.sqrt(4)
    real = torch.arange(5) < torch.tensor(PLACES)[:, None]
    weights = (scores - 1e30 * ~real.unsqueeze(1)).softmax(-1)
    read = torch.cat([x, weights @ memory], -1)
    return read * torch.sigmoid(read @ attention.gate.weight.t()), weights


def test_it_is_what_the_formula_says(attention):
    x, memory, packed = given()
    expected, weights = plain(attention, x, memory)
    found = packed[1].pad(attention(*packed))
    for row, (steps, places) in enumerate(zip(STEPS, PLACES, strict=True)):
        torch.testing.assert_close(found[row, :steps], expected[row, :steps], rtol=0, atol=1e-14)
        looked = attention.weights(*packed)[row]
        torch.testing.assert_close(looked, weights[row, :steps, :places], rtol=0, atol=1e-14)


def test_gradients(attention):
    _, _, (x, packing, memory, places) = given()
    x, memory = x.requires_grad_(), memory.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: attention(a, packing, b, places), (x, memory))


def test_a_sequence_may_look_at_itself(attention):
    _, _, (x, packing, _, _) = given()
    weights = attention.weights(x, packing, x, packing)
    assert [tuple(each.shape) for each in weights] == [(n, n) for n in STEPS]
    assert all((each.diagonal() > 0).all() for each in weights)  # its own place is not masked


def test_dropout_spares_what_is_found():
    """Only what is compared, and what the gate is computed from, is dropped out."""
    torch.manual_seed(1)
    attention = GatedAttention(6, 4, dropout=0.5).double().train()
    with torch.no_grad():
        attention.gate.weight.zero_()  # a gate of one half
        attention.query.weight.zero_()  # the mean of all memory
    _, memory, packed = given()
    found = packed[1].pad(attention(*packed))
    for row, (steps, places) in enumerate(zip(STEPS, PLACES, strict=True)):
        mean = memory[row, :places].mean(0).expand(steps, -1)
        torch.testing.assert_close(2 * found[row, :steps, 6:], mean, rtol=0, atol=1e-14)


def test_nothing_is_kept_for_padding(attention):
    """The weights that are kept for going back are as many as the lengths say."""
    _, _, packed = given()
    kept = []

    def pack(tensor):
        kept.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        attention(*(value.requires_grad_() if isinstance(value, torch.Tensor) else value for value in packed))
    wanted = {(steps, places) for steps, places in zip(STEPS, PLACES, strict=True)}
    assert wanted <= set(kept)
    assert not [shape for shape in kept if len(shape) == 3]
