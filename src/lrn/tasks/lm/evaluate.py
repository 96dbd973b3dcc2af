"""Perplexity of a text, as it stands and under dynamic evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from lrn.tasks.lm.data import batchify, fixed_segments
from lrn.tasks.lm.model import LanguageModel, State, detach
from lrn.text.lines import Progress, ignore


@contextmanager
def in_eval(model: LanguageModel) -> Iterator[None]:
    """Without dropout, for the time being."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)


def device_of(model: LanguageModel) -> torch.device:
    """Where the model is."""
    return model.embedding.weight.device


def mean_loss(
    model: LanguageModel, stream: Tensor, columns: int, *, length: int = 70, progress: Progress = ignore
) -> float:
    """Mean negative log-probability over the ``stream``, read in ``columns`` side by side, state carried.

    The first word of each column is read, not predicted, and not counted.
    """
    text = batchify(stream, columns).to(device_of(model))
    state: State | None = None
    total, count = 0.0, 0
    with in_eval(model), torch.no_grad():
        for segment in fixed_segments(text.shape[0], length):
            here = slice(segment.start, segment.start + segment.length)
            target = text[here.start + 1 : here.stop + 1]
            features, state = model(text[here], state)
            total += float(model.losses(features, target).sum(dtype=torch.float64))
            count += target.numel()
            progress(here.stop / (text.shape[0] - 1))
    return total / count


@dataclass(frozen=True)
class Dynamic:
    """Dynamic evaluation (Krause et al., 2018): the model goes on learning from the text it is tested on.

    ``θ ← θ + λ D ⊙ (θ₀ − θ) − η g / (M + ε)``, where M is the root of the summed squares of the gradients on
    the training text, and ``D = M / Σ mean(M)``, at most 1/λ.

    Args:
        rate: η, the learning rate.
        decay: λ, the pull back to the trained weights.
        epsilon: ε.
        length: words a segment; each segment is scored before the model learns from it.
        columns: columns of the training text for its statistics.
    """

    rate: float = 0.002
    decay: float = 0.02
    epsilon: float = 0.001
    length: int = 5
    columns: int = 100


def gradient_statistics(
    model: LanguageModel, stream: Tensor, dynamic: Dynamic, progress: Progress = ignore
) -> list[Tensor]:
    """M of every parameter: the root of the sum over all segments of the squared gradient."""
    text = batchify(stream, dynamic.columns).to(device_of(model))
    parameters = list(model.parameters())
    squares = [torch.zeros_like(parameter) for parameter in parameters]
    state: State | None = None
    with in_eval(model), torch.enable_grad():
        for segment in fixed_segments(text.shape[0], dynamic.length):
            loss, state = _loss(model, text, segment.start, segment.length, state)
            gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
            torch._foreach_addcmul_(squares, gradients, gradients)
            progress((segment.start + segment.length) / (text.shape[0] - 1))
    torch._foreach_sqrt_(squares)
    return squares


def dynamic_loss(
    model: LanguageModel,
    stream: Tensor,
    statistics: list[Tensor],
    dynamic: Dynamic,
    progress: Progress = ignore,
) -> float:
    """Mean negative log-probability under dynamic evaluation; the model is left as it was.

    A shorter last segment counts by its share of the usual length.
    """
    parameters: list[Tensor] = list(model.parameters())
    start = [parameter.detach().clone() for parameter in parameters]
    scale = sum(float(m.mean()) for m in statistics)
    pull = [(m / scale).clamp(max=1 / dynamic.decay) * dynamic.decay for m in statistics]
    inverse = [1 / (m + dynamic.epsilon) for m in statistics]
    text = batchify(stream, 1).to(device_of(model))
    state: State | None = None
    total, weight = 0.0, 0.0
    try:
        with in_eval(model):
            for segment in fixed_segments(text.shape[0], dynamic.length):
                with torch.enable_grad():
                    loss, state = _loss(model, text, segment.start, segment.length, state)
                    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
                share = segment.length / dynamic.length
                total, weight = total + share * loss.item(), weight + share
                with torch.no_grad():
                    back = torch._foreach_sub(start, parameters)
                    torch._foreach_addcmul_(parameters, back, pull)
                    torch._foreach_addcmul_(parameters, gradients, inverse, -dynamic.rate)
                torch.clear_autocast_cache()  # which has the weights as they were
                if not math.isfinite(total):
                    raise ValueError(
                        f"dynamic evaluation diverged (rate {dynamic.rate}, decay {dynamic.decay}, "
                        f"epsilon {dynamic.epsilon}); try a smaller rate"
                    )
                progress((segment.start + segment.length) / (text.shape[0] - 1))
    finally:
        with torch.no_grad():
            torch._foreach_copy_(parameters, start)
        torch.clear_autocast_cache()
    return total / weight


def _loss(
    model: LanguageModel, text: Tensor, start: int, length: int, state: State | None
) -> tuple[Tensor, State]:
    features, after = model(text[start : start + length], state)
    return model.loss(features, text[start + 1 : start + length + 1]), detach(after)
