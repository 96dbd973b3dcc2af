"""The cross entropy with smoothed labels."""

import math

import pytest
import torch
from helpers import randn

from lrn.nn import smoothed_loss, smoothed_losses


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


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3, 0.6, 0.95])
def test_the_losses_of_every_row(classes, smoothing):
    """The same as of a batch of that row alone, and so are the gradients."""
    scores = (2 * randn(7, classes)).requires_grad_()
    labels = torch.arange(7) % classes
    found = smoothed_losses(scores, labels, smoothing)
    expected = torch.stack([smoothed_loss(scores[n : n + 1], labels[n : n + 1], smoothing) for n in range(7)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    weights = randn(7, seed=2)
    gradients = [torch.autograd.grad((losses * weights).sum(), scores)[0] for losses in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-13)


def test_losses_in_half_precision():
    scores = randn(3, 50).bfloat16()
    assert smoothed_losses(scores, torch.arange(3), 0.1).dtype == torch.float32
