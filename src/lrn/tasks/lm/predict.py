"""What a trained language model is good for: going on with a text, and scoring texts."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from lrn.report.views import Bars, Mark, Marks, Shade, Shades, View
from lrn.tasks.asking import Answer
from lrn.tasks.lm.config import LMConfig, PredictConfig
from lrn.tasks.lm.data import encode_file, unknown_share
from lrn.tasks.lm.evaluate import device_of, in_eval, mean_loss
from lrn.tasks.lm.model import LanguageModel, State
from lrn.text.builtin import tokenise
from lrn.text.vocabulary import END, SPECIALS, UNKNOWN, Vocabulary

NEXT = 10  # words that may follow to say the probability of


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


def score_file(model: LanguageModel, vocabulary: Vocabulary, path: Path) -> tuple[int, float, float]:
    """Number of words that were predicted, their perplexity, and the share of unknown ones."""
    stream = encode_file(path, vocabulary)
    return len(stream) - 1, math.exp(mean_loss(model, stream, 1)), unknown_share(stream, vocabulary)


def run(model: LanguageModel, vocabulary: Vocabulary, options: PredictConfig) -> None:
    """Print a continuation of the prompt, or the perplexity of each file."""
    if options.prompt is None:
        for file in options.files:
            words, perplexity, unknown = score_file(model, vocabulary, Path(file))
            print(f"{perplexity:12.3f}  {words:9,} words  {file}", flush=True)
            if unknown:
                _warn(f"{file}: {unknown:.1%} of its words are unknown to the model{_doubt(unknown)}")
        return
    tokens = tokens_of(options.prompt, vocabulary)
    unknown_words = [word for word in tokens if word not in vocabulary]
    if unknown_words and UNKNOWN in vocabulary:
        shown = ", ".join(dict.fromkeys(unknown_words))
        _warn(f"{len(unknown_words)} of {len(tokens)} words of the prompt are unknown to the model: {shown}")
    written = continuation(model, vocabulary, options.prompt, options)
    print(options.prompt, end="", flush=True)
    for piece in written:
        print(piece, end="", flush=True)
    print()


def _doubt(share: float) -> str:
    """The end of a warning about unknown words, which are all the same word to the model."""
    return f", and easy to foresee as {UNKNOWN}: its perplexity is lower than the text deserves" * (
        share >= 0.1
    )


def _warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tokens_of(text: str, vocabulary: Vocabulary) -> list[str]:
    """The words of a text; those that the model does not know are taken apart."""
    return [t for w in text.split() for t in ([w] if w in vocabulary else tokenise(w))]


def continuation(
    model: LanguageModel, vocabulary: Vocabulary, prompt: str, options: PredictConfig
) -> Iterator[str]:
    """What follows a prompt, word by word with the blanks between them; a line that ends is a line break."""
    drawn = continue_text(
        model,
        vocabulary.encode(tokens_of(prompt, vocabulary)),
        words=options.words,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        banned=_banned(vocabulary, options),
    )
    return _written(vocabulary, drawn)


def _banned(vocabulary: Vocabulary, options: PredictConfig) -> tuple[int, ...]:
    return () if options.unknown or UNKNOWN not in vocabulary else tuple(vocabulary.encode([UNKNOWN]))


def _written(vocabulary: Vocabulary, numbers: Iterator[int]) -> Iterator[str]:
    blank = " "
    for number in numbers:
        word = vocabulary.decode([number])[0]
        yield "\n" if word == END else blank + word
        blank = "" if word == END else " "


# Answers --------------------------------------------------------------------------------------------


def answer(
    model: LanguageModel, vocabulary: Vocabulary, prompt: str, options: PredictConfig, details: bool = False
) -> Answer:
    """How a text may go on, the words that are likeliest to come next, and how well it was foreseen itself.

    ``perplexity`` is that of all words but the first, None if there is but one; ``unknown`` of the words are
    not in the vocabulary. With ``details``: the text's ``tokens``, and the probability of each after those
    before it, None of the first.
    """
    written = "".join(continuation(model, vocabulary, prompt, options))
    tokens = tokens_of(prompt, vocabulary)
    losses, scores = _foreseen(model, vocabulary.encode(tokens))
    scores[list(_banned(vocabulary, options))] = -math.inf
    best = scores.topk(min(NEXT, len(scores)))
    words = vocabulary.decode(best.indices.tolist())
    mean = sum(losses) / len(losses) if losses else None
    found: Answer = {
        "prompt": prompt,
        "continuation": written,
        "next": [
            {"word": word, "probability": math.exp(score)}
            for word, score in zip(words, best.values.tolist(), strict=True)
            if score > -math.inf
        ],
        "words": len(tokens),
        "unknown": sum(token not in vocabulary or token == UNKNOWN for token in tokens),
        "perplexity": None if mean is None else math.exp(min(mean, 700)),
    }
    more = {"tokens": tokens, "probabilities": [None, *(math.exp(-loss) for loss in losses)]}
    return found | (more if details else {})


def _foreseen(model: LanguageModel, words: list[int]) -> tuple[list[float], Tensor]:
    """What is lost on each word but the first, and the log-probabilities of the word after the last."""
    with in_eval(model), torch.no_grad():
        text = torch.tensor(words, device=device_of(model)).unsqueeze(1)  # [T, 1]
        features, _ = model(text)
        dropped, losses = features.dropped, []
        if len(words) > 1:
            features.dropped = dropped[:-1]
            losses = model.losses(features, text[1:]).flatten().tolist()
        features.dropped = dropped[-1:]
        return losses, model.log_probabilities(features)[0, 0].float().cpu()


def views(answer: Answer) -> list[View]:
    """The text going on, the next words by their probabilities, and which words of the text were foreseen."""
    rest = [share for share in answer["probabilities"] if share is not None]
    shades = [
        Shade(
            token,
            0.0 if share is None else round(share, 4),
            "" if share is None else f"probability {share:.4f}",
        )
        for token, share in zip(answer["tokens"], answer["probabilities"], strict=True)
    ]
    said: str = answer["continuation"]
    blank = " " if said.startswith(" ") else ""
    shown: list[View] = [
        Marks("continuation", [Mark(answer["prompt"] + blank), Mark(said[len(blank) :], "", 0)], large=True),
        Bars.of("next word", {one["word"]: one["probability"] for one in answer["next"]}),
    ]
    if rest:
        note = f"The stronger the colour, the surer the model was. Perplexity {answer['perplexity']:,.1f}."
        if answer["unknown"]:
            note += f" {answer['unknown']} of {answer['words']} words are unknown to it."
        shown.append(Shades("how expected each word is", shades, note))
    return shown


def example(config: LMConfig, vocabulary: Vocabulary) -> str:
    """The beginning of a text like those that the model was trained on, as far as its settings tell."""
    text = "return the number of" if config.data is None else "the company said it will"
    if all(token in vocabulary for token in tokens_of(text, vocabulary)):
        return text
    # A vocabulary is in the order of the training text: its first words began it
    return " ".join([word for word in vocabulary.words if word not in SPECIALS][:4])
