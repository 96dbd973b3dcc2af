"""What leaves the language model: words and a state in, the probabilities of the next words and a state
out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lrn.nn import padded
from lrn.tasks import portable as leaving
from lrn.tasks.lm.data import Corpus
from lrn.tasks.lm.model import LanguageModel
from lrn.tasks.portable import Example, Graph, Port, Portable
from lrn.text.vocabulary import END, UNKNOWN
from lrn.units.unit import Unit

if TYPE_CHECKING:
    from lrn.tasks.lm.task import LoadedModel

LENGTHS = (12, 7, 3)  # of the texts that are tried


class PaddedReader(nn.Module):
    """The language model on padded texts, or on a word at a time."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        for layer in model.layers:
            for name in list(getattr(layer, "parametrizations", [])):  # weight drop, which is over
                parametrize.remove_parametrizations(layer, name)

    @property
    def units(self) -> list[Unit]:
        """The layers."""
        return [layer for layer in self.model.layers if isinstance(layer, Unit)]

    def forward(self, words: Tensor, lengths: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        table = self.model.embedding.weight
        x = F.embedding(words, table).transpose(0, 1)  # [T, B, embedding]
        after = []
        for layer, state in zip(self.units, leaving.states_of(self.units, states), strict=True):
            x, last = layer(x, state, lengths=lengths)
            after.append(last)
        found = self.model.head(x, table).transpose(0, 1)  # [B, T, words]
        mask = padded.real(words, lengths).unsqueeze(-1)
        return found.masked_fill(~mask, 0), *leaving.flat(after)


def portable(loaded: LoadedModel, data: Corpus) -> Portable:
    """The language model with some of the test text."""
    words, module = loaded.kept.vocabulary, PaddedReader(loaded.model)
    units = module.units
    before, after = leaving.state_ports(units, "texts")
    graph = Graph(
        "",
        "Reads texts, or a word of each at a time, and says what comes next.",
        module,
        (
            Port("words", ("texts", "steps"), "The number of each word; anything behind the last."),
            Port("lengths", ("texts",), "How many words of each text are to be read, at least 1."),
            *before,
        ),
        (
            Port(
                "log_probabilities",
                ("texts", "steps", len(words)),
                "The logarithm of the probability that a word of the vocabulary follows; 0 behind the last.",
            ),
            *after,
        ),
        _examples(loaded.model, data.test, units),
    )
    return Portable(
        (graph,),
        {"words": words.words},
        (
            f"Words are what stands between blanks; {END} is the word at the end of every line.",
            "The number of a word is its place, from 0, in vocabularies.words"
            + (f"; that of one that is not there is that of {UNKNOWN}." if UNKNOWN in words else "."),
            "A text begins with states of zeros; to go on with it, give the states back that came out.",
        ),
        ("To go on with a text, draw the next word by the probabilities behind its last word, and read it.",),
    )


def _examples(model: LanguageModel, text: Tensor, units: list[Unit]) -> tuple[Example, ...]:
    """Three texts of different lengths, one of them by itself, and a further word of each."""
    lengths = [min(length, len(text)) for length in LENGTHS]
    starts = [min(n * len(text) // 3, len(text) - length) for n, length in enumerate(lengths)]
    rows = [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    said = [_said(model, row) for row in rows]
    words = leaving.padded([row.tolist() for row in rows])
    found = words.new_zeros(*words.shape, model.words, dtype=torch.float32)
    for place, (logarithms, _) in zip(found, said, strict=True):
        place[: len(logarithms)] = logarithms
    first = [torch.zeros(3, part.shape[1]) for part in said[0][1]]
    states = [torch.cat(parts) for parts in zip(*(state for _, state in said), strict=True)]
    next_words = words[:, :1]
    features, after = model(next_words.t(), leaving.states_of(units, states))
    further = model.log_probabilities(features).transpose(0, 1)
    alone = said[0][0].unsqueeze(0)
    return (
        Example((words, torch.tensor(lengths), *first), (found, *states)),
        Example((words[:1], torch.tensor(lengths[:1]), *(part[:1] for part in first)), (alone, *said[0][1])),
        Example((next_words, torch.ones(3, dtype=torch.int64), *states), (further, *leaving.flat(after))),
    )


def _said(model: LanguageModel, row: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """What the run says of one text: logarithms ``[T, words]``, and the states after it."""
    features, state = model(row.unsqueeze(1))
    return model.log_probabilities(features)[:, 0], leaving.flat(state)
