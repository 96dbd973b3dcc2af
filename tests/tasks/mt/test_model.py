"""The model against its definition, a sentence and a step at a time, in float64."""

import pytest
import torch
import torch.nn.functional as F
from tasks.mt.cases import model_of, sentences

from lrn.names import UNITS
from lrn.nn import TwoCells
from lrn.tasks.mt.data import pair_batch, source_batch
from lrn.units.unit import hidden, map_state

EXACT = {"rtol": 0, "atol": 1e-10}
SOURCES, TARGETS = (3, 5, 1, 0), (4, 2, 6, 1)


def normed(module, x):
    """A layer's last step, written out."""
    if isinstance(module, torch.nn.Identity):
        return x
    if isinstance(module, torch.nn.RMSNorm):
        return x / (x.square().mean(-1, keepdim=True) + 1e-8).sqrt() * module.weight
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-8).sqrt() * module.weight + module.bias


def after(residual, x, y):
    return normed(residual.norm, x + y @ residual.map.weight.T + residual.map.bias)


def nothing(unit):
    zero = torch.zeros(1, 1, unit.hidden_size, dtype=torch.float64)
    return (zero, zero) if unit.parts == 2 else zero


def read_source(model, tokens):
    """The memory of one sentence ``[S, H]``, and the last state ``[H]``."""
    encoder = model.encoder
    x = [model.source.weight[token] + model.common for token in (*tokens, 2)]
    state, ahead = nothing(encoder.ahead), []
    for word in x:
        _, state = encoder.ahead.step(word[None], state)
        ahead.append(hidden(state)[0, 0])
    state, back = nothing(encoder.ahead), [None] * len(x)
    for place in reversed(range(len(x))):
        _, state = encoder.back.lower.step(x[place][None], state)
        _, state = encoder.back.upper.step(ahead[place][None], state)
        back[place] = hidden(state)[0, 0]
    x = [after(encoder.residuals[0], word, y) for word, y in zip(x, back, strict=True)]
    for layer, residual in zip(encoder.layers, encoder.residuals[1:], strict=True):
        state, said = nothing(layer), []
        for word in x:
            _, state = layer.step(word[None], state)
            said.append(hidden(state)[0, 0])
        x = [after(residual, word, y) for word, y in zip(x, said, strict=True)]
    return torch.stack(x), hidden(state)[0, 0]


def look(walk, query, memory):
    """What a state sees of a memory, head by head."""
    query, keys, size = walk.query(query), walk.keys(memory), len(walk.score) - 1
    found, shares = [], []
    for start in range(0, len(query), size):
        mine = slice(start, start + size)
        scores = torch.tanh(query[mine] + keys[:, mine]) @ walk.score[:-1] + walk.score[-1]
        shares.append(scores.softmax(0))
        found.append(shares[-1] @ memory[:, mine])
    return torch.cat(found), torch.stack(shares)


def plainly(model, source, target):
    """The scores ``[T, types]`` and attention of one pair."""
    decoder = model.decoder
    memory, last = read_source(model, source)
    states = []
    for begin in decoder.begin:
        parts = begin(last).chunk(decoder.parts)
        states.append(tuple(part[None, None] for part in parts) if len(parts) == 2 else parts[0][None, None])
    scores, looked = [], []
    for place in range(len(target) + 1):
        before = target[place - 1] if place else None
        x = model.target.weight[before] + model.common if place else torch.zeros_like(model.common)
        _, state = decoder.first.lower.step(x[None], states[0])
        context, shares = look(decoder.first, hidden(state)[0, 0], memory)
        _, states[0] = decoder.first.upper.step(context[None], state)
        x = after(decoder.residuals[0], x, hidden(states[0])[0, 0])
        for number, layer in enumerate(decoder.layers, 1):
            _, state = layer.lower.step(x[None], states[number])
            _, states[number] = layer.upper.step(context[None], state)
            x = after(decoder.residuals[number], x, hidden(states[number])[0, 0])
        said = torch.tanh(decoder.readout(torch.cat([x, context])))
        scores.append(said @ model.target.weight.T)
        looked.append(shares)
    return torch.stack(scores), looked


def rows_of(packed, packing):
    """A batch's packed steps by sentence."""
    padded = packing.pad(packed)
    return [row[:length] for row, length in zip(padded, packing.lengths.tolist(), strict=True)]


@torch.no_grad()
@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_batch(unit, norm):
    model = model_of(unit, norm=norm)
    sources, targets = sentences(*SOURCES), sentences(*TARGETS, seed=2)
    batch = pair_batch(sources, targets)
    _, weights = model.read(batch)
    found = rows_of(model(batch), batch.target)
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        scores, looked = plainly(model, source, target)
        torch.testing.assert_close(found[number], scores, **EXACT)
        row = int(batch.target.back[number])
        for step, shares in enumerate(looked):
            torch.testing.assert_close(weights[step][row][:, : len(source) + 1], shares, **EXACT)


@torch.no_grad()
@pytest.mark.parametrize(("encoder", "decoder"), [(1, 1), (1, 3), (3, 1)])
def test_any_number_of_layers(encoder, decoder):
    model = model_of(encoder_layers=encoder, decoder_layers=decoder)
    sources, targets = sentences(*SOURCES), sentences(*TARGETS, seed=2)
    batch = pair_batch(sources, targets)
    for found, source, target in zip(rows_of(model(batch), batch.target), sources, targets, strict=True):
        torch.testing.assert_close(found, plainly(model, source, target)[0], **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("unit", UNITS)
def test_step_by_step_as_when_translating(unit):
    model = model_of(unit)
    sources, targets = sentences(*SOURCES), sentences(*[3] * 4, seed=2)
    opened = model.open(source_batch(sources))
    memory, states = opened.memory(range(4)), opened.states
    inputs = [None, *torch.tensor([target.tolist() for target in targets]).T]
    for step, tokens in enumerate(inputs):
        scores, states = model.step(tokens, memory, states)
        for row in range(4):
            expected = plainly(model, sources[row], targets[row])[0][step]
            torch.testing.assert_close(scores[row], expected, **EXACT)


@torch.no_grad()
def test_a_memory_of_some_sentences():
    """In another order, and one several times."""
    model = model_of()
    sources = sentences(*SOURCES)
    opened = model.open(source_batch(sources))
    rows = [2, 0, 0, 3]
    states = [map_state(lambda s: s[:, rows], state) for state in opened.states]
    scores, _ = model.step(None, opened.memory(rows), states)
    for row, number in enumerate(rows):
        torch.testing.assert_close(scores[row], plainly(model, sources[number], [])[0][0], **EXACT)


@pytest.mark.parametrize("unit", ["lrn", "olrn", "gru", "sru"])
def test_gradients_of_both_ways_to_walk(unit, monkeypatch):
    """Layers that walk at once, and the same step by step."""
    model = model_of(unit)
    batch = pair_batch(sentences(*SOURCES), sentences(*TARGETS, seed=2))
    found = []
    for _ in range(2):
        model.zero_grad()
        F.cross_entropy(model(batch), batch.labels).backward()
        found.append([parameter.grad.clone() for parameter in model.parameters()])
        monkeypatch.setattr(TwoCells, "walks_at_once", False)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_every_weight_learns():
    """But the score's bias, which the softmax cancels."""
    model = model_of()
    batch = pair_batch(sentences(5, 3), sentences(4, 6, seed=2))
    F.cross_entropy(model(batch), batch.labels).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_first_weights():
    model = model_of(spread=0.0, norm="layer")
    for name, parameter in model.named_parameters():
        if "bias" in name or "offset" in name:
            assert not parameter.any(), name
        elif "norm" in name or "scale" in name:
            assert (parameter == 1).all(), name
        else:
            assert 0 < parameter.abs().max() <= 0.08 * (1024 / 8) ** 0.5, name
