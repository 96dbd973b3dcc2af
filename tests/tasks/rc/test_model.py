"""The reading model: against the formulas in float64 one question at a time, in batches, and its counts."""

import math

import pytest
import torch
from tasks.rc.cases import FEATURES, LAYERS, PARAGRAPHS, QUESTIONS, SMALL, batch, codes, model

from lrn.names import UNITS
from lrn.tasks.rc.config import PRESETS, RCConfig
from lrn.tasks.rc.data import Context
from lrn.tasks.rc.model import ReadingModel, count

every_unit = pytest.mark.parametrize("unit", UNITS)


# Against the formulas -----------------------------------------------------------------------------


def reset_gru(cell, x, h):
    """A step of TensorFlow's GRU cell."""
    size = len(h)
    gates = torch.sigmoid(
        cell.weight_ih[: 2 * size] @ x + cell.weight_hh[: 2 * size] @ h + cell.bias[: 2 * size]
    )
    r, u = gates[:size], gates[size:]
    n = torch.tanh(
        cell.weight_ih[2 * size :] @ x + cell.weight_hh[2 * size :] @ (r * h) + cell.bias[2 * size :]
    )
    return u * h + (1 - u) * n


def spelt(spelling, word, known):
    table = spelling.character_vectors.weight
    letters = [table[number] for number in known.characters.encode(list(word[:16]))]
    ends = []
    for cell, walk in ((spelling.forwards, letters), (spelling.backwards, letters[::-1])):
        h = torch.zeros(cell.hidden_size, dtype=torch.float64)
        for letter in walk:
            h = reset_gru(cell, letter, h)
        ends.append(h)
    return torch.cat(ends)


def both_ways(layer, x):
    """The states of both directions over a single sequence, ``[T, 2 * H]``."""
    ahead, _ = layer.forwards(x.unsqueeze(1))
    back, _ = layer.backwards(x.flip(0).unsqueeze(1))
    return torch.cat([ahead[:, 0], back[:, 0].flip(0)], -1)


def gated(attention, x, memory):
    queries = torch.relu(x @ attention.query.weight.t())
    keys = torch.relu(memory @ attention.key.weight.t())
    weights = (queries @ keys.t() / math.sqrt(keys.shape[1])).softmax(1)
    read = torch.cat([x, weights @ memory], 1)
    return read * torch.sigmoid(read @ attention.gate.weight.t()), weights


def pooled(pooling, states):
    scores = torch.tanh(states @ pooling.state.weight.t() + pooling.state.bias) @ pooling.score.weight[0]
    return scores.softmax(0) @ states


def pointed(pointer, state, memory):
    weight = torch.cat([pointer.state.weight, pointer.memory.weight], 1)

    def scores(state):
        rows = torch.cat([state.expand(len(memory), -1), memory], 1)
        return torch.tanh(rows @ weight.t()) @ pointer.score.weight[0]

    first = scores(state)
    return first, scores(reset_gru(pointer.cell, first.softmax(0) @ memory, state))


def mixed(mix, layers):
    return mix.scale * (mix.weight.softmax(0)[:, None, None] * layers).sum(0)


def plain(net, paragraph, question, context=None):
    """Scores of every word of one paragraph to begin and to end the answer, and the attention."""
    known = codes()
    texts = []
    for number, words in enumerate((paragraph, question)):
        vectors = [
            torch.cat(
                [net.input.word_vectors.weight[known.number(word)], spelt(net.input.spelling, word, known)]
            )
            for word in words
        ]
        x = torch.stack(vectors)
        if context is not None:
            x = torch.cat([x, mixed(net.mixes[0], context[number])], 1)
        states = []
        for layer in net.encoder:
            x = both_ways(layer, x)
            states.append(x)
        texts.append(torch.cat(states, 1))
    p, q = texts
    read, looked = gated(net.attention, p, q)
    attended = both_ways(net.attended, read)
    match = both_ways(net.match, gated(net.self_attention, attended, attended)[0])
    if context is not None:
        match = torch.cat([match, mixed(net.mixes[1], context[0])], 1)
        if net.pool_elmo:
            q = torch.cat([q, mixed(net.mixes[1], context[1])], 1)
    first, last = pointed(net.pointer, pooled(net.pooling, q[:, -2 * SMALL["hidden"] :]), match)
    return first, last, looked


@every_unit
def test_it_is_what_the_formulas_say(unit):
    net = model(unit=unit).eval()
    reading = net.read(batch(), look=True)
    for row, (paragraph, question) in enumerate(zip(PARAGRAPHS, QUESTIONS, strict=True)):
        first, last, looked = plain(net, paragraph, question)
        size = len(paragraph)
        torch.testing.assert_close(reading.first[row, :size], first, rtol=0, atol=1e-12)
        torch.testing.assert_close(reading.last[row, :size], last, rtol=0, atol=1e-12)
        torch.testing.assert_close(reading.looked[row], looked, rtol=0, atol=1e-12)
        assert (reading.first[row, size:] == -torch.inf).all()
        assert (reading.last[row, size:] == -torch.inf).all()


def by_row(layers, packing):
    """A context's layers of each sequence, ``[L, T, F]``."""
    return layers[:, packing.by_row].split(packing.lengths.tolist(), 1)


@pytest.mark.parametrize("pool_elmo", [True, False])
def test_so_it_is_with_a_contextual_encoder(pool_elmo):
    net = model(LAYERS, pool_elmo=pool_elmo).eval()
    given = batch(layers=LAYERS)
    reading = net(given)
    texts = by_row(given.context.paragraphs, given.paragraphs)
    asked = by_row(given.context.questions, given.questions)
    for row, (paragraph, question) in enumerate(zip(PARAGRAPHS, QUESTIONS, strict=True)):
        first, last, _ = plain(net, paragraph, question, (texts[row], asked[row]))
        torch.testing.assert_close(reading.first[row, : len(paragraph)], first, rtol=0, atol=1e-12)
        torch.testing.assert_close(reading.last[row, : len(paragraph)], last, rtol=0, atol=1e-12)


def test_the_pooled_columns_are_those_of_the_features():
    """Which is what the released code does; so the question's states act through the attention alone."""
    given = batch(layers=LAYERS)
    net = model(LAYERS, pool_elmo=True).eval()
    other = Context(given.context.paragraphs, given.context.questions + 1)
    before, fixed = net(given).first, model(LAYERS, pool_elmo=False).eval()
    assert not torch.equal(before, fixed(given).first)
    object.__setattr__(given, "context", other)
    assert not torch.equal(before, net(given).first)


def test_a_model_with_features_wants_them():
    with pytest.raises(ValueError, match="the batch has none of it"):
        model(LAYERS)(batch())


# In batches ---------------------------------------------------------------------------------------


@every_unit
def test_padding_changes_nothing(unit):
    """A question in a batch comes out as it does alone."""
    net = model(unit=unit).eval()
    together = net(batch())
    for row, (paragraph, question) in enumerate(zip(PARAGRAPHS, QUESTIONS, strict=True)):
        alone = net(batch([paragraph], [question]))
        for one, all_ in ((alone.first, together.first), (alone.last, together.last)):
            torch.testing.assert_close(one[0], all_[row, : len(paragraph)], rtol=0, atol=1e-13)


def spans(given, rows):
    object.__setattr__(given, "spans", torch.tensor(rows))
    return given


def test_the_loss_is_the_mean_over_questions():
    net = model().eval()
    rows = [[0, 13], [0, 0], [1, 1]]  # the first and the last word, a paragraph of one word, one inside
    found = []
    for (paragraph, question), (start, end) in zip(
        zip(PARAGRAPHS, QUESTIONS, strict=True), rows, strict=True
    ):
        first, last, _ = plain(net, paragraph, question)
        found.append(-first.log_softmax(0)[start] - last.log_softmax(0)[end])
    loss = net.loss(spans(batch(), rows))
    torch.testing.assert_close(loss, torch.stack(found).mean(), rtol=0, atol=1e-12)


def test_one_mask_serves_a_whole_sequence_and_its_question():
    """With an input that is everywhere the same, the units of the encoder read the same at every step."""
    net, given = model(dropout=0.5).train(), batch()
    seen = []
    for layer in net.encoder:
        for unit in (layer.forwards, layer.backwards):
            unit.register_forward_pre_hook(lambda _, args: seen.append(args[0].data))
    words = torch.ones(len(given.both.rows), net.encoder[0].forwards.input_size, dtype=torch.float64)
    net._encode(words, given)
    for read in seen[:2]:
        for row in range(3):
            paragraph, question = (read[given.both.rows == number] for number in (row, row + 3))
            assert (paragraph == paragraph[0]).all()
            assert torch.equal(question, paragraph[:1].expand_as(question))
            assert set(paragraph[0].tolist()) == {0.0, 2.0}
    assert not torch.equal(seen[0], seen[1])  # each direction has its own


def test_gradients_reach_every_weight():
    net = model(LAYERS, pool_elmo=False).train()
    net.loss(spans(batch(layers=LAYERS), [[0, 1], [0, 0], [2, 3]])).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


# Parameters ---------------------------------------------------------------------------------------

COUNTS = {"lstm": 2_665_065, "gru": 2_308_065, "atr": 1_594_815, "sru": 2_441_565, "lrn": 2_139_315}
WITH_ELMO = {"lstm": 3_817_073, "gru": 3_306_473, "atr": 2_286_023, "sru": 3_593_573, "lrn": 3_137_723}


@pytest.mark.parametrize("unit", COUNTS)
def test_the_papers_counts(unit):
    config = RCConfig(**PRESETS["paper"], unit=unit)
    assert count(config, characters=1_530) == COUNTS[unit]
    with_elmo = RCConfig(**PRESETS["paper-elmo"], unit=unit)
    assert count(with_elmo, characters=1_530, layers=3, features=1_024) == WITH_ELMO[unit]


def test_the_count_is_that_of_a_model():
    known = codes()
    net = ReadingModel(RCConfig(**SMALL), len(known.characters), vectors=torch.zeros(7, 6))
    counted = count(RCConfig(**SMALL), len(known.characters))
    assert sum(parameter.numel() for parameter in net.parameters()) == counted
    more = ReadingModel(
        RCConfig(**SMALL), len(known.characters), vectors=torch.zeros(7, 6), layers=2, features=FEATURES
    )
    with_features = count(RCConfig(**SMALL), len(known.characters), layers=2, features=FEATURES)
    assert sum(parameter.numel() for parameter in more.parameters()) == with_features > counted


def test_words_without_a_vector_have_zeros():
    net = ReadingModel(RCConfig(**SMALL), 9, vectors=torch.ones(2, 6))
    assert net.input.word_vectors(torch.arange(5)).sum(1).tolist() == [0, 0, 0, 6, 6]


def test_first_weights():
    """As in the released code: Glorot's rule, biases of 1 for the gates of GRUs, small characters."""
    torch.manual_seed(1)
    net = ReadingModel(RCConfig(**PRESETS["paper"], unit="lstm"), 1_530, vectors=torch.zeros(1, 300))
    for cell in (net.pointer.cell, net.input.spelling.forwards, net.input.spelling.backwards):
        size = cell.hidden_size
        assert (cell.bias[: 2 * size] == 1).all()
        assert (cell.bias[2 * size :] == 0).all()
    table = net.input.spelling.character_vectors.weight
    assert (table[:2] == 0).all()
    assert 0.0095 < table[2:].std() < 0.0105

    def bound(weight, fan_in, fan_out):
        limit = math.sqrt(6 / (fan_in + fan_out))
        assert 0.98 * limit < weight.abs().max() <= limit

    unit = net.encoder[0].forwards
    i, f, g, o = unit.weight_ih_l0.split(75)
    bound(torch.cat([i, f, o]), 500, 225)
    bound(g, 500, 75)
    bound(unit.weight_hh_l0[150:225], 75, 75)
    bound(net.attention.gate.weight, 900, 900)
    bound(net.pointer.memory.weight, 300, 75)
    bound(net.pointer.cell.weight_ih[:300], 300, 300)
    bound(net.pointer.cell.weight_hh[300:], 300, 150)
    sru = ReadingModel(RCConfig(**PRESETS["paper"], unit="sru"), 1_530, vectors=torch.zeros(1, 300))
    bound(sru.match.backwards.v_f_l0, 1, 75)
