"""What a trained language model is good for: going on with a text, and scoring texts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from lrn.tasks.lm.config import PredictConfig
from lrn.tasks.lm.data import encode_file
from lrn.tasks.lm.evaluate import device_of, in_eval, mean_loss
from lrn.tasks.lm.model import LanguageModel, State
from lrn.text.builtin import tokenise
from lrn.text.vocabulary import END, UNKNOWN, Vocabulary


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
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be a number and not negative, got {temperature}")
    for name, value in {"top_k": top_k, "words": words}.items():
        if value < 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    if not prompt:
        raise ValueError("the prompt must have at least one word")
    return _words(model, prompt, words, temperature, top_k, torch.Generator().manual_seed(seed), banned)


def _words(
    model: LanguageModel,
    prompt: list[int],
    words: int,
    temperature: float,
    top_k: int,
    generator: torch.Generator,
    banned: tuple[int, ...],
) -> Iterator[int]:
    state: State | None = None
    for _ in range(words):
        scores, state = _scores(model, prompt, state)
        scores[list(banned)] = -math.inf
        word = _draw(scores, temperature, top_k, generator)
        yield word
        prompt = [word]


def _scores(model: LanguageModel, words: list[int], state: State | None) -> tuple[Tensor, State]:
    """Log-probabilities of the word that follows, and the state after ``words``."""
    with in_eval(model), torch.no_grad():  # not around a yield, which would leave both to the caller
        features, state = model(torch.tensor(words, device=device_of(model)).unsqueeze(1), state)
        features.dropped = features.dropped[-1:]
        return model.log_probabilities(features)[0, 0].cpu(), state  # drawing is the host's


def _draw(scores: Tensor, temperature: float, top_k: int, generator: torch.Generator) -> int:
    if not temperature:
        return int(scores.argmax())
    best, numbers = scores.double().topk(min(top_k or len(scores), len(scores)))
    weights = torch.softmax((best - best[0]) / temperature, -1)
    return int(numbers[torch.multinomial(weights, 1, generator=generator)])


def score_file(model: LanguageModel, vocabulary: Vocabulary, path: Path) -> tuple[int, float]:
    """Number of words that were predicted, and their perplexity."""
    stream = encode_file(path, vocabulary)
    return len(stream) - 1, math.exp(mean_loss(model, stream, 1))


def run(model: LanguageModel, vocabulary: Vocabulary, options: PredictConfig) -> None:
    """Print a continuation of the prompt, or the perplexity of each file."""
    if options.prompt is None:
        for file in options.files:
            words, perplexity = score_file(model, vocabulary, Path(file))
            print(f"{perplexity:12.3f}  {words:9,} words  {file}", flush=True)
        return
    split = options.prompt.split()
    tokens = [t for w in split for t in ([w] if w in vocabulary else tokenise(w))]
    unknown = () if options.unknown or UNKNOWN not in vocabulary else tuple(vocabulary.encode([UNKNOWN]))
    drawn = continue_text(
        model,
        vocabulary.encode(tokens),
        words=options.words,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        banned=unknown,
    )
    print(options.prompt, end="", flush=True)
    blank = " "
    for number in drawn:
        word = vocabulary.decode([number])[0]
        print("\n" if word == END else blank + word, end="", flush=True)
        blank = "" if word == END else " "
    print()
