"""The cross entropy with smoothed labels."""

import math

import pytest
import torch
from helpers import randn

from lrn.nn import loss, smoothed_loss, smoothed_softmax_loss


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3, 0.6, 0.95])
def test_smoothed_loss(classes, smoothing):
    scores = 2 * randn(7, classes)
    labels = torch.arange(7) % classes
    target = torch.full((7, classes), smoothing / (classes - 1), dtype=torch.float64)
    target[torch.arange(7), labels] = 1 - smoothing
    crossed = -(target * scores.log_softmax(1)).sum(1).mean()
    entropy = -sum(p * math.log(p) for p in target[0].tolist() if p)
    found = smoothed_loss(scores, labels, smoothing)
    torch.testing.assert_close(found, crossed - entropy, rtol=0, atol=1e-12)
    if smoothing:
        assert abs(smoothed_loss(target.log(), labels, smoothing)) < 1e-12  # there is nothing better
    assert found > 0


def test_what_cannot_be_helped():
    """Of two classes at 0.1, as the released code has it."""
    scores, labels = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([0])
    assert smoothed_loss(scores, labels, 0.1).item() == pytest.approx(math.log(2) - 0.3251, abs=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_scores_in_bfloat16(smoothing):
    scores, labels = randn(64, 2, dtype=torch.bfloat16), torch.arange(64) % 2
    with torch.autocast("cpu", torch.bfloat16):
        found = smoothed_loss(scores, labels, smoothing)
    torch.testing.assert_close(found, smoothed_loss(scores.float(), labels, smoothing), rtol=0, atol=1e-6)


def test_gradient_of_the_loss():
    scores = randn(4, 3).requires_grad_()
    labels = torch.tensor([0, 2, 1, 1])
    assert torch.autograd.gradcheck(lambda s: smoothed_loss(s, labels, 0.1), (scores,))


# The softmax and its loss at once -----------------------------------------------------------------

CHUNKS = {"a row": 1, "three rows": 3 * 5, "whole": 1 << 40, "as it is": loss.CHUNK}


def rows(words=5, dtype=torch.float64):
    x, table = randn(7, 4, dtype=dtype), randn(words, 4, seed=2, dtype=dtype)
    return x.requires_grad_(), table.requires_grad_(), torch.arange(7) % words


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3, 0.6, 0.95])
def test_the_loss_of_a_softmax_is_that_of_its_scores(smoothing, chunk, monkeypatch):
    """Row by row, whatever a chunk holds; and so are both gradients."""
    monkeypatch.setattr(loss, "CHUNK", CHUNKS[chunk])
    x, table, labels = rows()
    weights = randn(7, seed=3)
    total, each = smoothed_softmax_loss(x, table, labels, smoothing, weights)
    scores = x @ table.T
    expected = torch.stack([smoothed_loss(scores[n : n + 1], labels[n : n + 1], smoothing) for n in range(7)])
    torch.testing.assert_close(each, expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(total, (expected * weights).sum(), rtol=0, atol=1e-13)
    assert not each.requires_grad
    found, wanted = (
        torch.autograd.grad(value, (x, table), torch.tensor(3.0, dtype=torch.float64))
        for value in (total, (expected * weights).sum())
    )
    for gradient, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-13)


def test_one_of_two_gradients():
    x, table, labels = rows()
    weights = torch.ones(7, dtype=torch.float64)
    for gone, left in ((x, table), (table, x)):
        gone.requires_grad_(False)
        total, _ = smoothed_softmax_loss(x, table, labels, 0.1, weights)
        (found,) = torch.autograd.grad(total, left)
        gone.requires_grad_()
        expected = torch.autograd.grad(7 * smoothed_loss(x @ table.T, labels, 0.1), left)[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def test_a_word_that_is_all_but_impossible_has_a_finite_loss():
    x, table = torch.eye(2, dtype=torch.float32) * 1e4, torch.eye(2)
    total, each = smoothed_softmax_loss(x, table, torch.tensor([1, 0]), 0.1, torch.ones(2))
    assert torch.isfinite(total)
    torch.testing.assert_close(each, torch.full([2], 9e3), rtol=1e-4, atol=0)


def test_the_loss_of_a_softmax_under_autocast():
    x, table, labels = rows(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = smoothed_softmax_loss(x.bfloat16(), table, labels, 0.1, torch.ones(7))
    assert total.dtype == torch.float32
    expected = 7 * smoothed_loss(x.bfloat16().float() @ table.T, labels, 0.1)
    torch.testing.assert_close(total, expected, rtol=0, atol=1e-5)
    total.backward()


def test_without_gradients_none_is_worked_out():
    x, table, labels = rows()
    with torch.no_grad():
        total, _ = smoothed_softmax_loss(x, table, labels, 0.1, torch.ones(7))
    assert not total.requires_grad
