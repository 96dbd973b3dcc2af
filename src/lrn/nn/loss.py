"""Losses."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def smoothed_loss(scores: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the cross entropy with ``smoothing`` shared by all wrong classes, less what cannot be helped.

    >>> scores = torch.tensor([[30.0, -30.0]])
    >>> round(float(smoothed_loss(scores, torch.tensor([0]), 0.0)), 6)
    0.0
    """
    if not smoothing:
        return F.cross_entropy(scores, labels)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))  # bfloat16 is too coarse
    classes = scores.shape[1]
    shares = torch.full_like(scores, smoothing / (classes - 1))
    shares.scatter_(1, labels.unsqueeze(1), 1 - smoothing)
    return F.kl_div(scores.log_softmax(1), shares, reduction="batchmean")


def smoothed_losses(scores: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the same of every row by itself, ``[N]``, and without another table as large as the scores.

    >>> scores = torch.randn(5, 7)
    >>> labels = torch.tensor([0, 6, 3, 3, 1])
    >>> losses = smoothed_losses(scores, labels, 0.1)
    >>> torch.allclose(losses.mean(), smoothed_loss(scores, labels, 0.1))
    True
    """
    if not smoothing:
        return F.cross_entropy(scores, labels, reduction="none")
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))  # bfloat16 is too coarse
    classes = scores.shape[1]
    # torch shares its smoothing among all classes, the right one included
    among_all = smoothing * classes / (classes - 1)
    if among_all > 1:  # the right one is to be the least likely, which torch does not know
        return torch.stack(
            [smoothed_loss(*row, smoothing) for row in zip(scores.split(1), labels.split(1), strict=True)]
        )
    losses = F.cross_entropy(scores, labels, reduction="none", label_smoothing=among_all)
    entropy = -(1 - smoothing) * math.log(1 - smoothing) - smoothing * math.log(smoothing / (classes - 1))
    return losses - entropy
