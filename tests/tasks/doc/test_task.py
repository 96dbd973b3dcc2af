"""One step of learning, however many processes share it; and measuring."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lrn.tasks.doc.config import DocConfig
from lrn.tasks.doc.data import Codes, encode, frequent_words, read_cues
from lrn.tasks.doc.model import smoothed_loss
from lrn.tasks.doc.task import DocTrainee, classify, measure
from lrn.training.trainee import Step

SMALL = {"word_width": 8, "char_width": 4, "hidden": 6, "dropout": 0.0, "drop_words": 0.0, "longest": 30}


@pytest.fixture(scope="module")
def cues():
    return read_cues(100)


def trainee(cues, **settings):
    """In float64."""
    config = DocConfig(**SMALL | {"documents": 100} | settings)
    return DocTrainee(config, cues, Codes.of(cues, frequent_words(cues, 1)), None).double()


def learnt(student, work, *, epoch=0, rank=0, world=1):
    """The gradients with which a process takes a step, the learning rate, loss and tokens."""
    seen = {}

    def take_step(optimizer, rate):
        seen["gradients"] = [parameter.grad.clone() for parameter in student.model.parameters()]
        seen["rate"] = rate
        student.zero_grad()

    student._trainer = SimpleNamespace(world_size=world, global_rank=rank)
    student.optimizers, student.manual_backward = lambda: None, lambda loss: loss.backward()
    student.take_step = take_step
    loss, tokens = student.learn(Step(epoch, 0, 1, work))
    return SimpleNamespace(loss=loss, tokens=tokens, **seen)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_gradient_of_a_step(l2, cues):
    """Of the smoothed loss and half the squared norm of all weights, biases too."""
    student = trainee(cues, l2=l2, smoothing=0.1)
    work = np.array([3, 1, 7])
    found = learnt(student, work)
    documents = [cues.train.document(number, 30) for number in work]
    batch = encode(documents, student.table, cues.train.labels[work])
    loss = smoothed_loss(student.model(batch), batch.labels, 0.1)
    norm = sum(parameter.square().sum() for parameter in student.model.parameters())
    expected = torch.autograd.grad(loss + l2 / 2 * norm, list(student.model.parameters()))
    for ours, theirs in zip(found.gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert found.loss == pytest.approx(loss.item(), abs=1e-12)
    assert found.tokens == 90


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("count", [6, 5, 1])
def test_processes_average_to_the_gradient_of_one(world, count, cues):
    """However the documents divide, even if there are fewer than processes."""
    student = trainee(cues, l2=0.01)
    work = np.arange(10, 10 + count)
    whole = learnt(student, work)
    shares = [learnt(student, work, rank=rank, world=world).gradients for rank in range(world)]
    for expected, *parts in zip(whole.gradients, *shares, strict=True):
        torch.testing.assert_close(sum(parts) / world, expected, rtol=0, atol=1e-12)


def test_the_learning_rate_decays_every_epoch(cues):
    student = trainee(cues, lr=0.01, decay=0.5)
    rates = [learnt(student, np.array([0]), epoch=epoch).rate for epoch in (0, 1, 3)]
    assert rates == pytest.approx([0.01, 0.005, 0.00125])


def test_the_plan_has_no_validation_in_it(cues):
    student = trainee(cues, batch_size=16)
    planned = sorted(int(number) for work in student.plan(0) for number in work)
    assert planned == student.train_numbers.tolist()
    assert not set(planned) & set(student.valid_numbers.tolist())


@pytest.mark.parametrize("size", [1, 7, 64])
def test_classify_in_the_order_given(size, cues):
    student = trainee(cues).float()
    numbers = np.array([5, 90, 2, 2, 40, 77, 13])
    student.model.train()
    told = []
    with torch.no_grad():
        found = classify(student.model, cues.train, numbers, student.table, 50, told.append, size)
        assert student.model.training
        for row, number in enumerate(numbers):
            batch = encode([cues.train.document(number, 50)], student.table)
            expected = student.model.eval().probabilities(batch)[0]
            torch.testing.assert_close(found[row], expected, rtol=0, atol=1e-6)
    assert told[-1] == 1
    assert told == sorted(told)


def test_measure(cues):
    student = trainee(cues).float()
    numbers = np.arange(0, 100, 3)
    found = measure(student, cues.train, numbers)
    shares = classify(student.model, cues.train, numbers, student.table, 400)
    labels = cues.train.labels[numbers]
    right = shares.numpy()[np.arange(len(numbers)), labels]
    assert found["error"] == pytest.approx(100 * np.mean(right < 0.5))
    assert found["loss"] == pytest.approx(-np.log(right).mean(), abs=1e-6)
    assert 0 < found["error"] < 100
