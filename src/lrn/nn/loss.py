"""Losses."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.nn.softmax import CHUNK, without_autocast


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


def smoothed_softmax_loss(
    x: Tensor, table: Tensor, labels: Tensor, smoothing: float, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the weighted sum of the smoothed losses of ``softmax(x·tableᵀ)``, and each of them, ``[N]``,
    which passes no gradient on.

    The scores ``[N, words]`` are never there for all rows: they are worked out chunk by chunk, and while a
    chunk is at hand its gradient is worked out too, so that backward has nothing left to compute.

    Args:
        x: ``[N, width]``.
        table: ``[words, width]``.
        labels: ``[N]``, the right word of each row.
        smoothing: shared by all wrong words.
        weights: ``[N]``, of the rows in the sum.

    >>> x, table, labels = torch.randn(5, 3), torch.randn(7, 3), torch.tensor([0, 6, 3, 3, 1])
    >>> total, each = smoothed_softmax_loss(x, table, labels, 0.1, torch.full([5], 1 / 5))
    >>> torch.allclose(total, smoothed_loss(x @ table.T, labels, 0.1)), each.shape
    (True, torch.Size([5]))
    """
    with without_autocast(x.device.type):
        return _SoftmaxLoss.apply(  # type: ignore[no-any-return, no-untyped-call]
            x.to(table.dtype), table, labels, smoothing, weights, CHUNK, torch.is_grad_enabled()
        )


class _SoftmaxLoss(torch.autograd.Function):
    """With p the softmax of a row and q its smoothed label, the gradient by the row's scores is p − q."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        table: Tensor,
        labels: Tensor,
        smoothing: float,
        weights: Tensor,
        chunk: int,
        wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        wanted = wanted and any(ctx.needs_input_grad[:2])  # which are True under no_grad too
        rows, words = x.shape[0], table.shape[0]
        wrong = smoothing / (words - 1) if smoothing else 0.0  # q of every wrong word
        right = 1 - smoothing - wrong  # what q of the right one is beyond that
        losses = x.new_empty(rows)
        grad_x, grad_table = (torch.empty_like(x), torch.zeros_like(table)) if wanted else (None, None)
        size = max(1, chunk // words)
        buffer = x.new_empty(2, min(size, rows), words)
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            vectors, goal = x[part], labels[part].unsqueeze(1)
            scores, logs = buffer[:, : len(vectors)]  # [rows of the chunk, words] each
            torch.mm(vectors, table.t(), out=scores)
            torch.log_softmax(scores, 1, out=logs)
            losses[part] = -right * logs.gather(1, goal).squeeze(1)
            if smoothing:
                losses[part] -= wrong * logs.sum(1)
            if grad_x is None or grad_table is None:
                continue
            error = logs.exp_().sub_(wrong).scatter_add_(1, goal, logs.new_full(goal.shape, -right))
            weight = weights[part].unsqueeze(1)
            torch.mm(error, table, out=grad_x[part]).mul_(weight)
            grad_table.addmm_(error.t(), vectors * weight)
        if smoothing:
            losses += (right + wrong) * math.log(right + wrong) + smoothing * math.log(wrong)
        ctx.save_for_backward(grad_x, grad_table)
        ctx.mark_non_differentiable(losses)
        return (losses * weights).sum(), losses

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
        return *(value * grad for value in ctx.saved_tensors), *(None,) * 5
