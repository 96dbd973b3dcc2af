"""The tagger: padding and packing do not matter, counts are the paper's, and it can learn."""

import pytest
import torch
from accelerator import DEVICE, elsewhere
from torch import nn

from lrn.tasks.ner.config import NERConfig
from lrn.tasks.ner.data import Codes, encode, read_builtin
from lrn.tasks.ner.model import Tagger, count
from lrn.tasks.ner.score import score
from lrn.units import UNITS

SMALL = {"word_width": 10, "char_width": 6, "char_hidden": 5, "hidden": 8, "dense": 8}


@pytest.fixture(scope="module")
def data():
    return read_builtin(60)


def tagged(model, sentences):
    """The tags that a model gives all sentences, in one batch."""
    return model.eval().tag(encode([s.words for s in sentences], model.codes))


def scored(model, sentences):
    found = score([s.tags for s in sentences], tagged(model, sentences))["all"]
    model.train()
    return found


def tagger(data, unit="lrn", **settings):
    torch.manual_seed(1)
    return Tagger(NERConfig(unit=unit, **SMALL | settings), Codes.of(data.train))


@pytest.mark.parametrize(
    ("unit", "exact"), [("lstm", 245155), ("gru", 192405), ("atr", 87155), ("sru", 160655), ("lrn", 128655)]
)
def test_counts_of_the_paper(unit, exact):
    assert count(NERConfig(unit=unit), characters=517, tags=10) == exact


@pytest.mark.parametrize("unit", UNITS)
def test_count_is_that_of_the_model(unit, data):
    model = tagger(data, unit)
    without_words = sum(p.numel() for p in model.parameters()) - model.word_vectors.weight.numel()
    assert without_words == count(
        NERConfig(unit=unit, **SMALL), len(model.codes.characters), len(model.codes.tags)
    )


@pytest.mark.parametrize("unit", UNITS)
def test_a_sentence_alone_and_among_others(unit, data):
    """Emissions of a word do not depend on what else is in the batch."""
    model = tagger(data, unit).eval().double()
    sentences = [s.words for s in data.train[:5]]
    together = model.emissions(encode(sentences, model.codes))
    for row, words in enumerate(sentences):
        alone = model.emissions(encode([words], model.codes))
        torch.testing.assert_close(together[row, : len(words)], alone[0], rtol=1e-10, atol=1e-10)


def test_constrained_tags_are_always_valid(data):
    model = tagger(data, constrain=True).eval()
    for tags in tagged(model, data.test):
        for before, tag in zip(["O", *tags], tags, strict=False):
            assert tag != "<pad>"
            assert not tag.startswith("I-") or before[2:] == tag[2:]


def test_dropped_words_are_unknown_ones(data):
    model = tagger(data, drop_words=0.999, dropout=0.0)
    batch = encode([s.words for s in data.train[:4]], model.codes)
    unknown = encode([["§§"] * len(s.words) for s in data.train[:4]], model.codes)
    torch.nn.init.zeros_(model.input.spelling.character_vectors.weight)  # all words are spelt alike
    torch.manual_seed(3)
    dropped = model.emissions(batch)
    torch.testing.assert_close(dropped, model.eval().emissions(unknown))


@pytest.mark.parametrize("unit", UNITS)
def test_overfits_fifty_sentences(unit, data):
    model = tagger(data, unit, dropout=0.0, word_width=24, hidden=24, char_hidden=12)
    sentences = data.train[:50]
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    batch = encode([s.words for s in sentences], model.codes, [s.tags for s in sentences])
    for step in range(200):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
        if step % 10 == 9 and scored(model, sentences).f1 == 100:
            break
    assert scored(model, sentences).f1 == 100


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("lrn", [2.28828, 1.21072, 1.04504, 1.01157]), ("lstm", [1.95447, 1.11685, 1.06610, 1.04264])],
)
def test_the_first_losses_stay_what_they_are(unit, expected, data):
    """Written down once: first weights, dropped words and the order of everything are part of a result."""
    model = tagger(data, unit, drop_words=0.3, dropout=0.0)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    batch = encode([s.words for s in data.train], model.codes, [s.tags for s in data.train])
    losses = []
    for _ in expected:
        optimizer.zero_grad()
        loss = model.loss(batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == pytest.approx(expected, abs=2e-5)


class Doubles(nn.Module):
    """In place of a bidirectional unit: each packed step twice, and of the first steps the state."""

    def forward(self, packed):
        first = packed.data[: len(packed.sorted_indices)]
        return packed._replace(data=packed.data.repeat(1, 2)), torch.stack([first, first])


@pytest.mark.accelerator
def test_on_another_device(data):
    """Loss, gradients and tags: nothing is made here, and nothing is read back."""
    codes = Codes.of(data.train)
    sentences = data.train[:5]
    batch = encode([s.words for s in sentences], codes, [s.tags for s in sentences])
    config = NERConfig(word_width=4, char_width=3, char_hidden=3, hidden=10, dense=8, drop_words=0.3)
    with elsewhere() as move:
        with DEVICE:
            model = Tagger(config, codes)
        model.input.spelling.unit = model.context = Doubles()
        here = move(batch)
        loss = model.loss(here)
        loss.backward()
        best = model.crf.decode(model.emissions(here), here.mask)
        devices = {parameter.grad.device for parameter in model.parameters()}
    assert {loss.device, best.device, *devices} == {DEVICE}
