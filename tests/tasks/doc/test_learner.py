"""Learning of the classifier, however many processes share it, and its score."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tasks.doc.cases import learner
from tasks.trainings import learnt, loop_of

from lrn.nn import smoothed_loss
from lrn.tasks.doc import task
from lrn.tasks.doc.config import DocConfig, EvaluateConfig
from lrn.tasks.doc.data import Codes, encode, frequent_words, read_cues, split
from lrn.tasks.doc.task import TASK, Kept, classify
from lrn.training.learner import Place, Step


@pytest.fixture(scope="module")
def cues():
    return read_cues(100)


# Steps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_gradient_of_a_step(l2, cues):
    """Of the smoothed loss and half the squared norm of all weights, biases too."""
    student = learner(cues, l2=l2, smoothing=0.1)
    piece = np.array([3, 1, 7])
    found = learnt(student, piece)
    documents = [cues.train.document(number, 30) for number in piece]
    batch = encode(documents, student.table, cues.train.labels[piece])
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
    student, piece = learner(cues, l2=0.01), np.arange(10, 10 + count)
    expected = learnt(student, piece)
    parts = [learnt(student, piece, place=Place(rank, world)) for rank in range(world)]
    for whole, *shares in zip(expected.gradients, *(part.gradients for part in parts), strict=True):
        torch.testing.assert_close(sum(shares) / world, whole, rtol=0, atol=1e-12)
    assert sum(part.loss for part in parts) / world == pytest.approx(expected.loss, abs=1e-12)
    assert {part.tokens for part in parts} == {expected.tokens}


def test_the_learning_rate_decays_every_epoch(cues):
    """By the schedule that is the classifier's own unless another is asked for."""
    loop = loop_of(learner(cues, lr=0.01, decay=0.5, schedule=DocConfig.schedule))
    rates = []
    for epoch in (0, 1, 3):
        loop.take(Step(epoch, 0, 1, [np.array([0])]))
        rates.append(loop.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.01, 0.005, 0.00125])


def test_the_plan_has_no_validation_in_it(cues):
    student = learner(cues, batch_size=16)
    planned = sorted(int(number) for piece in student.plan(0) for number in piece)
    train, valid = split(cues, student.config.seed)
    assert planned == train.tolist()
    assert not set(planned) & set(valid.tolist())


@pytest.mark.parametrize("sizes", [(8, 8), (8, 3)])
def test_the_norm_counts_once_for_several_batches(sizes, cues):
    student, piece = learner(cues, l2=0.1), np.arange(sum(sizes))
    expected = learnt(student, piece).gradients
    found = learnt(student, piece[: sizes[0]], piece[sizes[0] :]).gradients
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


# Scoring ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 64])
def test_classify_in_the_order_given(size, cues, monkeypatch):
    monkeypatch.setattr(task, "DOCUMENTS", size)
    student = learner(cues, longest_test=50)
    model, numbers = student.model.float().eval(), np.array([5, 90, 2, 2, 40, 77, 13])
    told = []
    found = classify(student.loaded, cues, "train", numbers, told.append)
    for row, number in enumerate(numbers):
        batch = encode([cues.train.document(number, 50)], student.table)
        torch.testing.assert_close(found[row], model.probabilities(batch)[0], rtol=0, atol=1e-6)
    assert told[-1] == 1
    assert told == sorted(told)


def test_every_set_of_documents_has_its_own_table(cues):
    """Even where one set takes the place in memory of another that is gone."""
    kept = Kept(Codes.of(cues, frequent_words(cues, 1)))
    for count in range(1, 9):
        documents = SimpleNamespace(types=[cues.types[n] for n in range(count)])
        assert len(kept.table(documents).tokens(np.arange(count)).words) == count
        assert kept.table(documents) is kept.table(documents)
        del documents


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_score(part, cues):
    student = learner(cues)
    student.model.float()
    found = TASK.score(student.loaded, cues, EvaluateConfig(part=part))
    assert student.model.training  # as it was
    train, valid = split(cues, student.config.seed)
    numbers = {"train": train, "valid": valid, "test": np.arange(200)}[part]
    shares = classify(student.loaded, cues, part, numbers, lambda share: None)
    labels = (cues.test if part == "test" else cues.train).labels[numbers]
    right = shares.numpy()[np.arange(len(numbers)), labels]
    assert found.counts == {"documents": len(numbers)}
    assert found.figures["error"] == pytest.approx(100 * np.mean(right < 0.5))
    assert found.figures["loss"] == pytest.approx(-np.log(right).mean(), abs=1e-6)
    assert 0 < found.figures["error"] < 100
