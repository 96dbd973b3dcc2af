"""Losses."""

from __future__ import annotations

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
