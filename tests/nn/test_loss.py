"""The cross entropy with smoothed labels."""

import math

import pytest
import torch
from helpers import randn

from lrn.nn import smoothed_loss


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
