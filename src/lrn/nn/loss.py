"""Losses."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.nn.softmax import CHUNK, exponentiate, without_autocast
from lrn.recurrence import products


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
        weights: ``[N]``, of the rows in the sum; constants, of which no gradient is taken.

    >>> x, table, labels = torch.randn(5, 3), torch.randn(7, 3), torch.tensor([0, 6, 3, 3, 1])
    >>> total, each = smoothed_softmax_loss(x, table, labels, 0.1, torch.full([5], 1 / 5))
    >>> torch.allclose(total, smoothed_loss(x @ table.T, labels, 0.1)), each.shape
    (True, torch.Size([5]))
    """
    with without_autocast(x.device.type):
        return _SoftmaxLoss.apply(  # type: ignore[no-any-return, no-untyped-call]
            x.to(table.dtype), table, labels, smoothing, weights.detach(), CHUNK, torch.is_grad_enabled()
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
        whole = table.sum(0)  # [width]: its product with x is the sum of all scores
        size = max(1, chunk // words)
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            vectors, goal, weight = x[part], labels[part].unsqueeze(1), weights[part].unsqueeze(1)
            powers = products.product(vectors, table.t())  # [rows of the chunk, words]: the scores, still
            at_goal = powers.gather(1, goal)
            top, total = exponentiate(powers)
            log_total = top + total.log()
            loss = right * (log_total - at_goal)
            if smoothing:
                loss += wrong * (words * log_total - torch.mv(vectors, whole).unsqueeze(1))
            losses[part] = loss.squeeze(1)
            if grad_x is None or grad_table is None:
                continue
            # p is powers / total. What every word has of q is taken off at the end, for all of them at once.
            powers.scatter_add_(1, goal, -right * total)
            scale = weight / total
            products.product_into(grad_x[part], powers, table).mul_(scale).sub_(wrong * whole * weight)
            products.add_product(grad_table, powers.t(), vectors * scale)
        if grad_table is not None and smoothing:
            grad_table -= wrong * torch.mv(x.t(), weights)
        if smoothing:
            losses += (right + wrong) * math.log(right + wrong) + smoothing * math.log(wrong)
        ctx.save_for_backward(grad_x, grad_table)
        ctx.mark_non_differentiable(losses)
        return (losses * weights).sum(), losses

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
        return *(value * grad for value in ctx.saved_tensors), *(None,) * 5
