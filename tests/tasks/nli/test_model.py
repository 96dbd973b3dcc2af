"""The model against a plain re-computation, and a batch against its pairs alone; in float64."""

import numpy as np
import pytest
import torch
from tasks.nli.cases import learner

from lrn.names import UNITS
from lrn.tasks.nli.data import read_builtin
from lrn.units.unit import hidden

EXACT = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module")
def pairs():
    return read_builtin(100)


def bold(model):
    """With weights so large that every part makes a difference."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64) / 2)
    return model.eval()


def batch_of(student, numbers):
    return student.kept.batch(student.data, "train", np.array(numbers))


def pooled(pooling, states):
    """``[T, W]`` of one sentence to ``[W]``."""
    scores = torch.stack([pooling.score(torch.tanh(pooling.state(u)))[0] for u in states])
    return (scores.softmax(0)[:, None] * states).sum(0)


def plainly(model, student, number):
    """The scores of one pair, sentence by sentence and step by step, without packing."""
    batch = batch_of(student, [number])
    words = model.input(batch.tokens)
    premise, hypothesis = words.split([len(batch.premises.places), len(batch.hypotheses.places)])
    states, state = model.premise(premise[:, None])
    memory = states[:, 0]
    first = torch.tanh(model.first(torch.cat(list(hidden(state)[:, 0]))))[None, None]
    carried = tuple(first.chunk(2, -1)) if model.walk.lower.parts == 2 else first
    size, outputs = len(model.walk.score) - 1, []
    for word in hypothesis:
        _, carried = model.walk.lower.step(word[None], carried)
        query = model.walk.query(hidden(carried)[0, 0])
        context = []
        for head in range(memory.shape[1] // size):
            mine = slice(head * size, (head + 1) * size)
            keys = model.walk.keys(memory)[:, mine]
            weights = (torch.tanh(query[mine] + keys) @ model.walk.score[:-1]).softmax(0)
            context.append(weights @ memory[:, mine])
        _, carried = model.walk.upper.step(torch.cat(context)[None], carried)
        outputs.append(hidden(carried)[0, 0])
    after, _ = model.hypothesis_after(torch.stack(outputs)[:, None])
    before, _ = model.premise_after(memory[:, None])
    both = [pooled(model.premise_pooling, before[:, 0]), pooled(model.hypothesis_pooling, after[:, 0])]
    return model.output(torch.cat(both))


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
@pytest.mark.parametrize("unit", UNITS)
def test_the_definition(unit, norm, pairs):
    student = learner(pairs, unit=unit, norm=norm)
    model = bold(student.model)
    with torch.no_grad():
        found = model(batch_of(student, [3, 1, 4]))
        for row, number in zip(found, [3, 1, 4], strict=True):
            torch.testing.assert_close(row, plainly(model, student, number), **EXACT)


@pytest.mark.parametrize("unit", UNITS)
def test_a_batch_is_its_pairs_alone(unit, pairs):
    student = learner(pairs, unit=unit)
    model = bold(student.model)
    with torch.no_grad():
        whole = model(batch_of(student, range(8)))
        alone = torch.cat([model(batch_of(student, [number])) for number in range(8)])
    torch.testing.assert_close(whole, alone, **EXACT)


def test_one_word_sentences(pairs):
    """Of one word all is attended to."""
    student = learner(pairs)
    model = bold(student.model)
    batch = student.kept.batch_of_words([["some"], ["<eos>"]], [["no"], ["some", "no"]])
    with torch.no_grad():
        scores, weights = model.read(batch)
    assert scores.isfinite().all()
    assert all(torch.equal(looked, torch.ones_like(looked)) for looked in weights)


def test_dropout_is_for_training_alone(pairs):
    student = learner(pairs, dropout=0.5)
    model, batch = bold(student.model), batch_of(student, [0, 1])
    assert torch.equal(model(batch), model(batch))
    model.train()
    assert not torch.equal(model(batch), model(batch))


def test_every_weight_learns(pairs):
    student = learner(pairs, norm="rms")
    model = bold(student.model)
    model(batch_of(student, range(8))).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_first_weights(pairs):
    """Those of a narrower model are larger."""
    for width, bound in ((300, 0.08), (48, 0.2)):
        model = learner(pairs, norm="rms", hidden=width).model
        assert 0.95 * bound < model.walk.query.weight.abs().max() <= bound
    assert not model.output.bias.any()
    assert (model.output.scale == 1).all()
    assert (model.premise.norm_ih_l0 == 1).all()
