"""The model is what the paper and its code say: state, tying, initialisation, dropouts, regularisation."""

import math

import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import assert_same, parts, randn
from tasks.lm.cases import WORDS, log_probabilities_of, model, small, text

import lrn
from lrn.tasks.lm.config import LMConfig
from lrn.tasks.lm.data import batchify
from lrn.tasks.lm.evaluate import mean_loss
from lrn.tasks.lm.model import Features, LanguageModel, detach, regularisation
from lrn.units import CLASSES

units = pytest.mark.parametrize("unit", lrn.UNITS)
LATENT = {"experts": 3}


@units
def test_shapes(unit):
    made = model(unit=unit, **LATENT)
    features, state = made(text(14).view(7, 2))
    assert features.raw.shape == features.dropped.shape == (7, 2, 5)
    assert [part.shape for layer in state for part in parts(layer)] == [
        (1, 2, width) for width in (6, 6, 5) for _ in range(2 if unit in ("lstm", "sru") else 1)
    ]
    assert made.log_probabilities(features).shape == (7, 2, WORDS)
    assert made.losses(features, text(14).view(7, 2)).shape == (7, 2)


@pytest.mark.parametrize(("layers", "widths"), [(1, [(4, 5)]), (2, [(4, 6), (6, 5)])])
def test_other_numbers_of_layers(layers, widths):
    made = model(layers=layers)
    assert [(layer.input_size, layer.hidden_size) for layer in made.layers] == widths
    assert made(text(6).view(3, 2))[0].raw.shape == (3, 2, 5)


@units
def test_residual(unit):
    """Where a layer's output is as wide as its input, both are added; the state is the layer's own."""
    plain, made, words = model(unit=unit), model(unit=unit, residual=True), text(8).view(4, 2)
    assert made.state_dict().keys() == plain.state_dict().keys()
    made.load_state_dict(plain.state_dict())
    x, states = plain.embedding(words), []
    for layer in plain.layers:
        output, state = layer(x)
        x = output + x if layer.input_size == layer.hidden_size else output
        states.append(state)
    features, found = made(words)
    assert_same((features.raw, *found), (x, *states))
    assert [layer.residual for layer in made.layers] == [False, True, False]


@units
def test_two_segments_are_one_whole(unit):
    made, words = model(unit=unit), text(18).view(9, 2)
    whole, end = made(words)
    first, state = made(words[:4])
    second, after = made(words[4:], detach(state))
    assert_same(torch.cat([first.raw, second.raw]), whole.raw)
    assert_same(after, end)
    assert not torch.allclose(made(words[4:])[0].raw, second.raw)  # the state has a say


@units
def test_detached_state_stops_the_gradient(unit):
    made, words = model(unit=unit), text(8).view(4, 2)
    _, state = made(words)
    assert all(part.requires_grad for layer in state for part in parts(layer))
    assert not any(part.requires_grad for layer in detach(state) for part in parts(layer))
    assert_same(detach(state), state)


# Embedding and decoder are one -----------------------------------------------------------------------


def test_tied():
    made = model(**LATENT)
    tables = [name for name, value in made.named_parameters() if value.shape == (WORDS, 4)]
    assert tables == ["embedding.weight"]


def test_gradient_of_the_table_is_the_sum_of_both_uses():
    made, words, target = model(**LATENT), text(8).view(4, 2), text(8, seed=1).view(4, 2)
    made.loss(made(words)[0], target).backward()
    table = made.embedding.weight
    read, written = (table.detach().clone().requires_grad_() for _ in range(2))
    x = torch.nn.functional.embedding(words, read)
    for layer in made.layers:
        x, _ = layer(x)
    made.head.loss(x, written, target).backward()
    assert read.grad.abs().max() > 0
    assert_same(table.grad, read.grad + written.grad)


def test_loss_is_the_mean_of_the_log_probabilities():
    made, words, target = model(**LATENT), text(8).view(4, 2), text(8, seed=1).view(4, 2)
    features, _ = made(words)
    each, _ = log_probabilities_of(made, words, target)
    assert_same(made.losses(features, target), -each)
    assert_same(made.loss(features, target), -each.mean())


def test_one_expert_is_the_plain_softmax():
    made, words = model(experts=1), text(8).view(4, 2)
    features, _ = made(words)
    latent = torch.tanh(features.raw @ made.head.latent.weight.t() + made.head.latent.bias)
    plain = torch.softmax(latent @ made.embedding.weight.t() + made.head.bias, -1)
    assert made.head.prior is None
    assert_same(made.log_probabilities(features), (plain + 1e-8).log())


# Initialisation (section 3) --------------------------------------------------------------------------


def glorot(rows, columns):
    return math.sqrt(6 / (rows + columns))


def bounds(unit, n, h):
    """Of each stretch of each matrix: ``W [n, gates h]``, with the hidden state's rows where it has them."""
    if not CLASSES[unit].hidden_gates:
        columns = CLASSES[unit].gates * h
        return {"weight_ih_l0": [(columns, glorot(n, columns))]}
    if unit == "atr":
        return {"weight_ih_l0": [(h, glorot(n, h))], "weight_hh_l0": [(h, glorot(h, h))]}
    stretches = [(2 * h, glorot(n + h, 2 * h)), (h, glorot(n + h, h))]  # GRU's gates, its candidate
    if unit == "lstm":
        stretches = [(4 * h, glorot(n + h, 4 * h))]
    return {"weight_ih_l0": stretches, "weight_hh_l0": stretches}


@units
def test_initialisation(unit):
    torch.manual_seed(1)
    made = LanguageModel(small(unit=unit, embedding=40, hidden=60, last=50), words=300)
    for layer, (n, h) in zip(made.layers, [(40, 60), (60, 60), (60, 50)], strict=True):
        expected = bounds(unit, n, h)
        for name, parameter in layer.named_parameters():
            if name not in expected:
                assert torch.all(parameter == float(name.startswith("v_"))), name
                continue
            assert parameter.shape[0] == sum(rows for rows, _ in expected[name])
            pieces = parameter.split([rows for rows, _ in expected[name]])
            for piece, (_, bound) in zip(pieces, expected[name], strict=True):
                assert_uniform(piece, bound)
    assert_uniform(made.embedding.weight, 0.1)
    assert torch.all(made.head.bias == 0)
    for linear in (made.head.latent.weight, made.head.latent.bias):
        assert_uniform(linear, 1 / math.sqrt(50), room=0.2)


def test_first_word_vectors_by_setting():
    torch.manual_seed(1)
    assert_uniform(LanguageModel(small(init=0.5), words=300).embedding.weight, 0.5)


def assert_uniform(values, bound, room=0.03):
    """Fills (−bound, bound) evenly, and no more."""
    assert values.abs().max() <= bound
    assert values.max() > (1 - room) * bound
    assert values.min() < -(1 - room) * bound
    if values.numel() > 1000:
        assert float(values.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_sru_has_vectors():
    names = {name for name, _ in model(unit="sru").layers[0].named_parameters()}
    assert {"v_r_l0", "v_f_l0"} <= names


# Dropouts --------------------------------------------------------------------------------------------

DROPS = ("drop_words", "drop_input", "drop_hidden", "drop_output", "drop_latent", "drop_weights")


@units
@pytest.mark.parametrize("drop", DROPS)
def test_each_dropout_acts_in_training_alone(unit, drop):
    torch.manual_seed(1)
    dropped, plain = model(unit=unit, **{drop: 0.5}), model(unit=unit)
    words = text(40).view(20, 2)

    def probabilities(made):
        return made.log_probabilities(made(words)[0])

    assert_same(probabilities(dropped), probabilities(plain))
    dropped.train()
    assert not torch.allclose(probabilities(dropped), probabilities(dropped))
    plain.train()
    assert_same(probabilities(plain), probabilities(plain))


@units
def test_weight_drop_takes_every_matrix_and_nothing_else(unit):
    made = model(unit=unit, drop_weights=0.5)
    for layer in made.layers:
        matrices = {name.partition(".")[0] for name, _ in layer.parametrizations.named_children()}
        plain = lrn.make_unit(unit, layer.input_size, layer.hidden_size)
        assert matrices == {name for name, value in plain.named_parameters() if value.dim() == 2}


@units
def test_one_mask_within_a_call(unit):
    """Every matrix is drawn once a call, however often the unit reads it."""
    made = model(unit=unit, drop_weights=0.5).train()
    drawn = []
    for layer in made.layers:
        for parametrization in layer.parametrizations.values():
            parametrization[0].register_forward_hook(lambda *_: drawn.append(1))
    made(text(12).view(6, 2))
    assert len(drawn) == sum(len(layer.parametrizations) for layer in made.layers)


def test_weight_drop_is_inverted_dropout():
    """In training the layer is the plain layer with half of the matrix gone, the rest doubled."""
    made = model(layers=1, drop_weights=0.5).train()
    weight = made.layers[0].parametrizations.weight_ih_l0.original
    drawn = []
    made.layers[0].parametrizations.weight_ih_l0[0].register_forward_hook(lambda *a: drawn.append(a[2]))
    words = text(12).view(6, 2)
    features, _ = made(words)
    (used,) = drawn
    kept = used != 0
    assert 0 < kept.sum() < kept.numel()
    assert_same(used, torch.where(kept, 2 * weight, 0.0))
    plain = model(layers=1)
    plain.layers[0].weight_ih_l0.data.copy_(used)
    assert_same(features.raw, plain(words)[0].raw)


def test_output_dropout_leaves_the_raw_output():
    made = model(drop_output=0.5).train()
    features, _ = made(text(12).view(6, 2))
    assert_same(features.raw, model()(text(12).view(6, 2))[0].raw)
    kept = features.dropped != 0
    assert_same(features.dropped, torch.where(kept, 2 * features.raw, 0.0))
    assert bool((kept == kept[:1]).all())  # one mask for all of time


# Regularisation --------------------------------------------------------------------------------------


def test_regularisation_against_the_formulas():
    raw, dropped = randn(5, 2, 3), randn(5, 2, 3, seed=2)
    ar = sum(float(v) ** 2 for v in dropped.flatten()) / 30
    steps = [(raw[t + 1] - raw[t]).flatten() for t in range(4)]
    tar = sum(float(v) ** 2 for step in steps for v in step) / 24
    total = regularisation(Features(raw, dropped), ar=2.0, tar=0.7)
    assert float(total) == pytest.approx(2 * ar + 0.7 * tar, rel=1e-12)


def test_regularisation_of_one_step_and_of_none():
    features = Features(randn(1, 2, 3), randn(1, 2, 3, seed=2))
    assert_same(regularisation(features, 1.0, 1.0), features.dropped.pow(2).mean())
    assert float(regularisation(features, 0.0, 0.0)) == 0


# Learning --------------------------------------------------------------------------------------------


@units
def test_learns_a_text_by_heart(unit):
    """200 words to a perplexity below 1.5, read as evaluation reads it."""
    torch.manual_seed(1)
    made = LanguageModel(small(unit=unit, embedding=32, hidden=64, last=32, layers=2), words=40)
    words = text(200, 40)
    columns = batchify(words, 4)
    optimizer = torch.optim.Adam(made.parameters(), 0.02)
    for _ in range(100):
        optimizer.zero_grad()
        made.loss(made(columns[:-1])[0], columns[1:]).backward()
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
    assert math.exp(mean_loss(made, words, 4, length=30)) < 1.5


@pytest.mark.accelerator
@pytest.mark.parametrize("unit", lrn.UNITS)
def test_on_another_device(unit):
    """Two segments with the state between them: nothing is made here, and nothing is read back."""
    config = LMConfig(
        unit=unit,
        embedding=4,
        hidden=5,
        last=4,
        layers=2,
        experts=2,
        drop_words=0.1,
        drop_latent=0.1,
        drop_weights=0.1,
    )
    with elsewhere():
        with DEVICE:
            model = LanguageModel(config, words=10)
            text = torch.zeros(9, 3, dtype=torch.long)
        _, state = model(text[:4])
        features, _ = model(text[4:8], detach(state))
        loss = model.loss(features, text[5:]) + regularisation(features, 1.0, 1.0)
        loss.backward()
        devices = {parameter.grad.device for parameter in model.parameters()}
        log_probabilities = model.log_probabilities(features)
    assert {loss.device, log_probabilities.device, *devices} == {DEVICE}
