"""What a trained language model is good for: going on with a text, and scoring texts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from lrn.tasks.lm.data import encode_file
from lrn.tasks.lm.evaluate import in_eval, mean_loss
from lrn.tasks.lm.model import LanguageModel, State
from lrn.text.vocabulary import Vocabulary


def continue_text(
    model: LanguageModel,
    prompt: list[int],
    *,
    words: int,
    temperature: float = 1.0,
    top_k: int = 0,
    seed: int = 1,
    banned: tuple[int, ...] = (),
) -> Iterator[int]:
    """Word after word, each drawn from the model's prediction.

    ``temperature`` 0 takes the likeliest word; ``top_k`` draws from that many likeliest only, 0 from all.
    """
    if temperature < 0:
        raise ValueError(f"temperature must not be negative, got {temperature}")
    if top_k < 0:
        raise ValueError(f"top_k must not be negative, got {top_k}")
    if not prompt:
        raise ValueError("the prompt must have at least one word")
    generator = torch.Generator().manual_seed(seed)
    read = torch.tensor(prompt).unsqueeze(1)
    state: State | None = None
    with in_eval(model), torch.no_grad():
        for _ in range(words):
            features, state = model(read, state)
            features.dropped = features.dropped[-1:]
            scores = model.log_probabilities(features)[0, 0]
            scores[list(banned)] = -math.inf
            word = _draw(scores, temperature, top_k, generator)
            yield word
            read = torch.tensor([[word]])


def _draw(scores: Tensor, temperature: float, top_k: int, generator: torch.Generator) -> int:
    if not temperature:
        return int(scores.argmax())
    if 0 < top_k < len(scores):
        scores = scores.masked_fill(scores < scores.topk(top_k).values[-1], -math.inf)
    return int(torch.multinomial(torch.softmax(scores / temperature, -1), 1, generator=generator))


def score_file(model: LanguageModel, vocabulary: Vocabulary, path: Path) -> tuple[int, float]:
    """Number of words that were predicted, and their perplexity."""
    stream = encode_file(path, vocabulary)
    return len(stream) - 1, math.exp(mean_loss(model, stream, 1))
