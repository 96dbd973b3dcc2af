"""The classifier against its description, worked out a document at a time without padding or packing."""

import math
import random

import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import assert_same, randn
from units.test_parameters import COUNTS

from lrn.nn import smoothed_loss
from lrn.tasks.doc.config import PRESETS, DocConfig
from lrn.tasks.doc.data import (
    Codes,
    encode,
    encode_texts,
    frequent_words,
    read_cues,
)
from lrn.tasks.doc.documents import Builder
from lrn.tasks.doc.model import Classifier, count
from lrn.text.spelt import LONGEST_WORD
from lrn.text.vocabulary import SPECIALS
from lrn.units import UNITS

SMALL = {"word_width": 7, "char_width": 5, "hidden": 6}
WORDS = "a film that was not so good as they say in Oslo".split()
LONG = "pneumonoultramicroscopicsilicovolcanoconiosis"
TEXTS = [
    "not so good".split(),
    "a film that , they say , was GOOD in Oslo".split(),
    ["film"],
    ["zzz", LONG, LONG[:LONGEST_WORD], "good"],
    "so so so".split(),
]
EXACT = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module")
def codes():
    builder = Builder()
    builder.add("train", 0, WORDS * 4)
    builder.add("train", 1, [LONG] * 4)
    return Codes.of(builder.build(("bad", "fair", "good")), WORDS)


def classifier(codes, vectors=None, **settings):
    """In float64, with every weight large enough to matter."""
    config = DocConfig(**SMALL | settings)
    model = Classifier(config, len(codes.characters), len(codes.classes), len(codes.words), vectors)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(0.7 * randn(*parameter.shape, seed=number))
    return model.double()


# The description ----------------------------------------------------------------------------------


def affine(weights, name, x):
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def read(weights, x, suffix, g):
    """LRN over the rows of ``x``; its states."""
    h, states = torch.zeros(SMALL["hidden"], dtype=torch.float64), []
    for x_t in x:
        q, k, v = (weights[f"unit.weight_ih_l0{suffix}"] @ x_t + weights[f"unit.bias_ih_l0{suffix}"]).chunk(3)
        i, f = torch.sigmoid(k + h), torch.sigmoid(q - h)
        h = g(i * v + f * h)
        states.append(h)
    return states


def described(model, codes, words, pooling, g=torch.tanh):
    """The scores of one document."""
    weights = dict(model.named_parameters())
    table = (
        weights["input.word_vectors.weight"]
        if "input.word_vectors.weight" in weights
        else torch.cat([weights["input.word_vectors.learnt"], model.input.word_vectors.frozen])
    )
    inputs = []
    for word in words:
        found = next((form for form in (word, word.lower()) if form in codes.words), "<unk>")
        vector = table[codes.words.words.index(found)]
        places = torch.zeros(LONGEST_WORD, SMALL["char_width"], dtype=torch.float64)
        for place, character in enumerate(word[:LONGEST_WORD]):
            known = character if character in codes.characters else "<unk>"
            places[place] = weights["input.spelling.character_vectors.weight"][
                codes.characters.words.index(known)
            ]
        inputs.append(torch.cat([vector, affine(weights, "input.spelling.linear", places.max(0).values)]))
    forward = read(weights, inputs, "", g)
    if pooling == "last":
        return affine(weights, "output", forward[-1])
    backward = read(weights, inputs[::-1], "_reverse", g)
    s = torch.cat([forward[-1], backward[-1]])
    states = [torch.cat(pair) for pair in zip(forward, backward[::-1], strict=True)]
    scores = [
        weights["pooling.score.weight"][0]
        @ torch.tanh(affine(weights, "pooling.state", u) + affine(weights, "pooling.summary", s))
        for u in states
    ]
    total = sum(score.exp() for score in scores)
    pooled = sum(score.exp() / total * u for score, u in zip(scores, states, strict=True))
    return affine(weights, "output", pooled)


@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("activation", ["tanh", "identity"])
@pytest.mark.parametrize("given", [False, True], ids=["learnt vectors", "given vectors"])
def test_against_the_description(pooling, activation, given, codes):
    vectors = randn(len(codes.words) - len(SPECIALS), 7, seed=9) if given else None
    model = classifier(codes, vectors, pooling=pooling, activation=activation).eval()
    scores = model(encode_texts(TEXTS, codes))
    assert scores.shape == (len(TEXTS), 3)
    g = {"tanh": torch.tanh, "identity": lambda x: x}[activation]
    expected = [described(model, codes, words, pooling, g) for words in TEXTS]
    torch.testing.assert_close(scores, torch.stack(expected), **EXACT)


@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_document_alone_and_among_others(unit, pooling, codes):
    """Neither what else is in the batch nor where it stands matters."""
    model = classifier(codes, unit=unit, pooling=pooling).eval()
    together = model(encode_texts(TEXTS, codes))
    alone = [model(encode_texts([words], codes))[0] for words in TEXTS]
    torch.testing.assert_close(together, torch.stack(alone), **EXACT)
    torch.testing.assert_close(model(encode_texts(TEXTS[::-1], codes)), together.flip(0), **EXACT)


@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("unit", ["lstm", "sru"])
def test_the_summary_is_h_of_both_directions(unit, pooling, codes):
    """Of units that have c as well."""
    model = classifier(codes, unit=unit, pooling=pooling).eval()
    batch = encode_texts([TEXTS[1]], codes)
    (states,) = model.unit(model.embed(batch).unsqueeze(1))[0].unbind(1)
    summary = states[-1] if pooling == "last" else torch.cat([states[-1, :6], states[0, 6:]])
    if pooling == "attention":
        mask = torch.ones(1, len(states), dtype=torch.bool)
        summary = model.pooling(states.unsqueeze(0), summary.unsqueeze(0), mask)[0][0]
    torch.testing.assert_close(model(batch)[0], model.output(summary), **EXACT)


def test_probabilities(codes):
    model = classifier(codes).eval()
    batch = encode_texts(TEXTS, codes)
    shares = model.probabilities(batch)
    torch.testing.assert_close(shares, model(batch).softmax(1), **EXACT)
    assert not shares.requires_grad


def test_every_weight_gets_a_gradient(codes):
    for pooling in ("attention", "last"):
        model = classifier(codes, pooling=pooling)
        smoothed_loss(model(encode_texts(TEXTS, codes)), torch.tensor([0, 1, 2, 0, 1]), 0.1).backward()
        assert all(parameter.grad.any() for parameter in model.parameters())


# Training only ------------------------------------------------------------------------------------


def test_dropped_words_become_pad_and_keep_their_characters(codes):
    model = classifier(codes, drop_words=0.3, dropout=0.0)
    batch = encode_texts([WORDS * 200], codes)
    whole = model.eval().embed(batch)
    assert torch.equal(model.embed(batch), whole)
    torch.manual_seed(1)
    dropped = model.train().embed(batch)
    assert torch.equal(dropped[:, 7:], whole[:, 7:])
    pad = (dropped[:, :7] == model.input.word_vectors.weight[0]).all(1)
    assert torch.equal(dropped[~pad], whole[~pad])
    assert abs(pad.double().mean() - 0.3) < 5 * (0.3 * 0.7 / len(pad)) ** 0.5
    assert not torch.equal(model.embed(batch), dropped)


def test_no_words_are_dropped_unless_told(codes):
    model = classifier(codes, drop_words=0.0, dropout=0.0)
    batch = encode_texts(TEXTS, codes)
    trained = model.train()(batch)
    assert torch.equal(trained, model.eval()(batch))


def test_characters_get_half_of_the_dropout(codes):
    spelling = classifier(codes, char_width=400, drop_words=0.0, dropout=0.5).input.spelling
    with torch.no_grad():
        spelling.character_vectors.weight.fill_(1)
        spelling.linear.weight.copy_(torch.eye(400))
        spelling.linear.bias.zero_()
    batch = encode_texts([["a"]], codes)
    torch.manual_seed(1)
    spelt = spelling(batch.tokens)
    assert sorted(spelt.unique().tolist()) == pytest.approx([0, 1 / 0.75])
    assert abs((spelt == 0).double().mean() - 0.25) < 5 * (0.25 * 0.75 / 400) ** 0.5
    assert (spelling.eval()(batch.tokens) == 1).all()


# First weights, and how many ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("given", [False, True], ids=["learnt vectors", "given vectors"])
def test_first_weights(unit, given):
    torch.manual_seed(1)
    config = DocConfig(**PRESETS["paper"] | {"unit": unit})
    vectors = torch.full((4, 300), 5.0) if given else None
    model = Classifier(config, 145, 2, 0 if given else 60, vectors)
    for name, parameter in model.named_parameters():
        largest = parameter.abs().max().item()
        if "bias" in name:
            assert largest == 0, name
            continue
        bound = 0.08
        if name.endswith("_vectors.weight"):
            bound = math.sqrt(6 / sum(parameter.shape))
        assert 0.9 * bound < largest <= bound, name
        assert abs(parameter.mean().item()) < 5 * bound / math.sqrt(3 * parameter.numel()), name
    if given:
        assert (model.input.word_vectors.frozen == 5).all()


@pytest.mark.parametrize(
    ("unit", "exact"), [("lstm", 226694), ("gru", 175878), ("atr", 74374), ("sru", 194182), ("lrn", 151302)]
)
def test_counts_of_the_paper(unit, exact):
    assert count(DocConfig(**PRESETS["paper"] | {"unit": unit}), 145, 2) == exact


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("characters", "classes"), [(145, 5), (136, 10), (300, 2)])
def test_counts_by_the_formula(unit, characters, classes):
    both = count(DocConfig(**PRESETS["paper"] | {"unit": unit}), characters, classes)
    vectors = 900 + 32 * characters + 1056
    assert both == vectors + 2 * COUNTS[unit](332, 64) + 16576 + 129 * classes
    one = count(DocConfig(**PRESETS["paper"] | {"unit": unit, "pooling": "last"}), characters, classes)
    assert one == vectors + COUNTS[unit](332, 64) + 65 * classes


@pytest.mark.parametrize("unit", UNITS)
def test_count_is_that_of_the_model(unit, codes):
    model = classifier(codes, unit=unit)
    words = model.input.word_vectors.weight.numel() - len(SPECIALS) * SMALL["word_width"]
    counted = count(DocConfig(unit=unit, **SMALL), len(codes.characters), len(codes.classes))
    assert sum(parameter.numel() for parameter in model.parameters()) == words + counted


# The forward direction alone ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["lrn", "glrn", "elrn"])
@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_forward_unit(unit, pooling, activation, codes):
    model = classifier(codes, unit=unit, pooling=pooling, activation=activation).eval()
    x = model.embed(encode_texts([TEXTS[1]], codes)).unsqueeze(1)
    alone = model.forward_unit()
    assert (type(alone), alone.activation, alone.bidirectional) == (type(model.unit), activation, False)
    assert_same(alone(x)[0], model.unit(x)[0][..., : SMALL["hidden"]])


@pytest.mark.parametrize("unit", ["olrn", "atr", "sru", "lstm", "gru"])
def test_only_lrn_has_a_forward_unit(unit, codes):
    with pytest.raises(ValueError, match=f"unit is {unit.upper()}; the analysis is of LRN, gLRN and eLRN"):
        classifier(codes, unit=unit).forward_unit()


# It learns ----------------------------------------------------------------------------------------


def obvious(documents=60, words=12):
    """Documents in one word of which the label stands, somewhere."""
    draw = random.Random(1)
    builder = Builder()
    for number in range(documents):
        text = [f"w{draw.randrange(20)}" for _ in range(draw.randint(words - 4, words + 4))]
        text[draw.randrange(len(text))] = ("awful", "nice", "superb")[number % 3]
        builder.add("train", number % 3, text)
    return builder.build(("1", "2", "3"), source="a test")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("pooling", ["attention", "last"])
def test_overfits_sixty_documents(unit, pooling):
    documents = obvious()
    codes = Codes.of(documents, documents.types)
    table, part = codes.table(documents.types), documents.train
    torch.manual_seed(1)
    config = DocConfig(
        unit=unit, pooling=pooling, dropout=0.0, drop_words=0.0, word_width=16, char_width=4, hidden=16
    )
    model = Classifier(config, len(codes.characters), 3, len(codes.words))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    batch = encode([part.document(number) for number in range(len(part))], table, part.labels)
    for step in range(400):
        optimizer.zero_grad()
        smoothed_loss(model(batch), batch.labels, 0.1).backward()
        optimizer.step()
        if step % 10 == 9 and torch.equal(model.probabilities(batch).argmax(1), batch.labels):
            return
    raise AssertionError("some document is still labelled wrongly")


@pytest.mark.parametrize(
    ("unit", "given", "expected"),
    [
        ("lrn", False, [0.69305, 0.69311, 0.69317, 0.69301]),
        ("lrn", True, [0.69317, 0.69074, 0.68903, 0.68476]),
        ("lstm", False, [0.69314, 0.69315, 0.69318, 0.69315]),
        ("lstm", True, [0.69276, 0.69261, 0.69241, 0.69144]),
    ],
)
def test_the_first_losses_stay_what_they_are(unit, given, expected):
    """Written down once: first weights, dropped words and the order of everything are part of a result."""
    cues = read_cues(100)
    codes = Codes.of(cues, frequent_words(cues, 2))
    torch.manual_seed(1)
    vectors = torch.randn(len(codes.words) - len(SPECIALS), 7) if given else None
    config = DocConfig(unit=unit, **SMALL, dropout=0.0, drop_words=0.3)
    model = Classifier(config, len(codes.characters), 2, len(codes.words), vectors)
    optimizer = torch.optim.SGD(model.parameters(), 5.0)
    part = cues.train
    batch = encode([part.document(n, 20) for n in range(16)], codes.table(cues.types), part.labels[:16])
    losses = []
    for _ in expected:
        optimizer.zero_grad()
        loss = smoothed_loss(model(batch), batch.labels, 0.0)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == pytest.approx(expected, abs=2e-5)


class Doubles(torch.nn.Module):
    """In place of a unit: each packed step once a direction, and of the first steps the state."""

    def __init__(self, directions):
        super().__init__()
        self.directions = directions

    def forward(self, packed):
        first = packed.data[: len(packed.sorted_indices)]
        return packed._replace(data=packed.data.repeat(1, self.directions)), first.expand(
            self.directions, -1, -1
        )


@pytest.mark.accelerator
@pytest.mark.parametrize("pooling", ["attention", "last"])
@pytest.mark.parametrize("given", [False, True])
def test_on_another_device(pooling, given, codes):
    """Loss, gradients and probabilities: nothing is made here, and nothing is read back."""
    batch = encode_texts(TEXTS, codes)
    config = DocConfig(word_width=7, char_width=5, hidden=12, pooling=pooling, dropout=0.1, drop_words=0.1)
    with elsewhere() as move:
        with DEVICE:
            vectors = torch.randn(len(codes.words) - len(SPECIALS), 7) if given else None
            model = Classifier(config, len(codes.characters), 3, len(codes.words), vectors)
            labels = torch.zeros(len(TEXTS), dtype=torch.long)
        model.unit = Doubles(2 if pooling == "attention" else 1)
        here = move(batch)
        loss = smoothed_loss(model(here), labels, 0.1)
        loss.backward()
        shares = model.probabilities(here)
        devices = {parameter.grad.device for parameter in model.parameters()}
    assert {loss.device, shares.device, *devices} == {DEVICE}
