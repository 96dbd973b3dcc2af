"""What a model reads of a token, against plain look-ups a token at a time."""

import numpy as np
import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import assert_same, randn
from torch import nn

import lrn
from lrn.nn import FrozenWords, SpellingGRU, SpellingPool, SpellingRNN, WordDropout, WordInput
from lrn.text.batches import Packing, Tokens, padded

WORDS, CHARACTERS = 7, 6
SPELLINGS = [[1, 2, 3], [4], [5, 5], [2, 1, 4]]  # numbers of characters
GRID = [[3, 0, 2, 1], [0, 1, 0, 0]]  # which of them a token is spelt like
EXACT = {"rtol": 0, "atol": 1e-12}


def random_weights(module):
    with torch.no_grad():
        for number, parameter in enumerate(module.double().parameters()):
            parameter.copy_(randn(*parameter.shape, seed=number))
    return module


def tokens(packed=False):
    words, spellings = torch.tensor([[6, 2, 5, 1], [2, 4, 0, 0]]), torch.tensor(GRID)
    packing = Packing.of([4, 2])
    if packed:
        words, spellings = packing.pack(words).data, packing.pack(spellings).data
    lengths = [len(spelling) for spelling in SPELLINGS]
    return Tokens(words, spellings, padded(SPELLINGS), Packing.of(lengths))


def pool(dropout=0.0):
    return random_weights(SpellingPool(nn.Embedding(CHARACTERS, 3), dropout))


def read(unit="lrn"):
    layer = lrn.make_unit(unit, 3, 2, bidirectional=True, batch_first=True)
    return random_weights(SpellingRNN(nn.Embedding(CHARACTERS, 3), layer))


@pytest.mark.parametrize("unit", lrn.UNITS)
def test_the_last_states_of_a_layer_over_the_characters(unit):
    spelling = read(unit)
    found = spelling(tokens())
    assert found.shape == (4, 4)
    for spelt, numbers in zip(found, SPELLINGS, strict=True):
        states, _ = spelling.unit(spelling.character_vectors(torch.tensor([numbers])))
        expected = torch.cat([states[0, -1, :2], states[0, 0, 2:]])
        torch.testing.assert_close(spelt, expected, **EXACT)


def test_the_largest_of_the_characters():
    """Zeros behind the last one count, as far as there are any."""
    spelling = pool()
    found = spelling(tokens())
    table = spelling.character_vectors.weight
    for spelt, numbers in zip(found, SPELLINGS, strict=True):
        places = [table[number] for number in numbers] + [torch.zeros_like(table[0])] * (3 - len(numbers))
        torch.testing.assert_close(spelt, spelling.linear(torch.stack(places).amax(0)), **EXACT)


def test_characters_are_dropped_out_in_training_only():
    spelling = SpellingPool(nn.Embedding(CHARACTERS, 400), 0.25)
    nn.init.ones_(spelling.character_vectors.weight)
    nn.init.zeros_(spelling.linear.bias)
    with torch.no_grad():
        spelling.linear.weight.copy_(torch.eye(400))
    torch.manual_seed(1)
    single = spelling(tokens())[1]
    assert sorted(single.unique().tolist()) == pytest.approx([0, 1 / 0.75])
    assert abs((single == 0).double().mean() - 0.25) < 5 * (0.25 * 0.75 / 400) ** 0.5
    assert (spelling.eval()(tokens()) == 1).all()


def test_characters_that_nobody_packed():
    given = tokens()
    with pytest.raises(ValueError, match="how they are packed"):
        read()(Tokens(given.words, given.spellings, given.characters))


@pytest.mark.parametrize("spelling", [pool, read])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("features", [False, True])
def test_a_vector_a_token(spelling, frozen, features):
    table = FrozenWords(3, randn(WORDS - 3, 5)) if frozen else nn.Embedding(WORDS, 5)
    model = random_weights(WordInput(table, spelling(), WordDropout(0.0, becomes=0)))
    more = randn(2, 4, 6, seed=8) if features else None
    found = model(tokens(), more)
    vectors = torch.cat([table.learnt, table.frozen]) if frozen else table.weight
    spelt = model.spelling(tokens())
    for place in np.ndindex(2, 4):
        expected = [vectors[tokens().words[place]], spelt[GRID[place[0]][place[1]]]]
        torch.testing.assert_close(found[place], torch.cat([*expected, *([more[place]] if features else [])]))
    packing = Packing.of([4, 2])
    packed = model(tokens(packed=True), packing.pack(more).data if features else None)
    assert_same(packed, packing.pack(found).data)


def test_every_weight_gets_a_gradient():
    model = WordInput(nn.Embedding(WORDS, 5), read(), WordDropout(0.0, becomes=0)).double()
    features = randn(2, 4, 6).requires_grad_()
    model(tokens(), features).sin().sum().backward()
    assert all(parameter.grad.any() for parameter in model.parameters())
    assert features.grad.all()


def test_words_are_dropped_before_they_are_looked_up():
    model = WordInput(nn.Embedding(WORDS, 5).double(), pool(), WordDropout(0.999, becomes=3))
    torch.manual_seed(1)
    dropped, whole = model.train()(tokens()), model.eval()(tokens())
    assert torch.equal(dropped[..., 5:], whole[..., 5:])
    assert torch.equal(dropped[0, :, :5], model.word_vectors.weight[3].expand(4, 5))
    assert torch.equal(dropped[1, 2:, :5], whole[1, 2:, :5])  # padding


def test_weights_come_in_the_order_they_are_used():
    """The order in which gradients are summed for clipping, so a change is one of results."""
    model = WordInput(nn.Embedding(WORDS, 5), read(), WordDropout(0.0, becomes=0))
    assert [name for name, _ in model.named_parameters()] == [
        "word_vectors.weight",
        "spelling.character_vectors.weight",
        "spelling.unit.weight_ih_l0",
        "spelling.unit.bias_ih_l0",
        "spelling.unit.weight_ih_l0_reverse",
        "spelling.unit.bias_ih_l0_reverse",
    ]
    assert [name for name, _ in pool().named_parameters()] == [
        "character_vectors.weight",
        "linear.weight",
        "linear.bias",
    ]


@pytest.mark.accelerator
@pytest.mark.parametrize("packed", [False, True])
def test_on_another_device(packed):
    made = tokens(packed)
    with elsewhere() as move:
        given = move(made)
        with DEVICE:
            model = WordInput(
                FrozenWords(3, torch.randn(WORDS - 3, 5)),
                SpellingPool(nn.Embedding(CHARACTERS, 3), 0.5),
                WordDropout(0.5, becomes=0),
            )
            features = torch.randn(*given.words.shape, 6)
        found = model(given, features)
        found.sum().backward()
        gradients = [parameter.grad.device for parameter in model.parameters()]
    assert found.shape == (*given.words.shape, 14)
    assert {found.device, *gradients} == {DEVICE}


class Copies(nn.Module):
    """In place of a unit."""

    def forward(self, packed):
        first = packed.data[: len(packed.sorted_indices)]
        return packed, torch.stack([first, first])


@pytest.mark.accelerator
def test_a_recurrent_layer_on_another_device():
    made = tokens()
    with elsewhere() as move:
        with DEVICE:
            spelling = SpellingRNN(nn.Embedding(CHARACTERS, 3), Copies())
        found = spelling(move(made))
        found.sum().backward()
        assert spelling.character_vectors.weight.grad.device == found.device == DEVICE


# A GRU over characters ----------------------------------------------------------------------------


def gru(dropout=0.0):
    return random_weights(SpellingGRU(nn.Embedding(CHARACTERS, 3), hidden=2, dropout=dropout))


def test_gru_runs_over_every_spelling_alone():
    spelling = gru().eval()
    found = spelling(tokens())
    for row, numbers in enumerate(SPELLINGS):
        vectors = spelling.character_vectors(torch.tensor(numbers))
        states = []
        for cell, walk in ((spelling.forwards, vectors), (spelling.backwards, vectors.flip(0))):
            h = torch.zeros(1, 2, dtype=torch.float64)
            for vector in walk:
                h = cell.step(cell.project(vector.unsqueeze(0)), h)
            states.append(h[0])
        torch.testing.assert_close(found[row], torch.cat(states), **EXACT)


def test_gru_drops_the_same_of_all_characters_of_a_spelling():
    torch.manual_seed(1)
    spelling = gru(0.5).train()
    with torch.no_grad():
        spelling.character_vectors.weight.fill_(1)
    seen = []
    spelling.forwards.project = lambda x: (
        seen.append(x) or nn.functional.linear(x, spelling.forwards.weight_ih, spelling.forwards.bias)
    )
    batch = tokens()
    spelling(batch)
    read = batch.character_packing.pad(seen[0])
    for row, numbers in enumerate(SPELLINGS):
        own = read[row, : len(numbers)]
        assert torch.equal(own, own[:1].expand_as(own))
        assert set(own.flatten().tolist()) <= {0.0, 2.0}
    assert len({tuple(row.tolist()) for row in read[:, 0]}) > 1


def test_gru_needs_to_know_the_packing():
    with pytest.raises(ValueError, match="how they are packed"):
        gru()(Tokens(*torch.zeros(2, 1, 1, dtype=torch.int64), padded(SPELLINGS)))
