"""The classifier: word and character vectors, a recurrent layer, attentive pooling, a linear layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lrn.nn import AttentivePooling, FrozenWords, Linear, SpellingPool, WordDropout, WordInput, keep_at_first
from lrn.tasks.doc.config import DocConfig
from lrn.text.vocabulary import SPECIALS
from lrn.units import LRN, hidden, make_unit, unit_class
from lrn.units.unit import Unit

if TYPE_CHECKING:
    from lrn.tasks.doc.data import DocumentBatch


class Classifier(nn.Module):
    """A classifier of documents.

    Args:
        characters: how many characters have a number.
        classes: how many classes there are.
        words: how many words have a vector, if the vectors are to be learnt.
        vectors: the vectors of all words but the three special ones, if they are given.
    """

    def __init__(
        self, config: DocConfig, characters: int, classes: int, words: int = 0, vectors: Tensor | None = None
    ) -> None:
        super().__init__()
        self.pooling_kind = config.pooling
        width = config.word_width if vectors is None else vectors.shape[1]
        self.input = WordInput(
            nn.Embedding(words, width) if vectors is None else FrozenWords(len(SPECIALS), vectors),
            SpellingPool(nn.Embedding(characters, config.char_width), config.dropout / 2),
            WordDropout(config.drop_words, becomes=0),  # the word becomes <pad>, whose vector is learnt
        )
        self.unit = _layer(config, width + config.char_width)
        if config.pooling == "attention":
            self.pooling = AttentivePooling(2 * config.hidden, config.hidden, config.dropout)
        self.output = Linear(config.hidden * (2 if config.pooling == "attention" else 1), classes)
        self._begin(config.keep)

    def _begin(self, keep: float) -> None:
        """Draw the first weights as the released code does."""
        for name, parameter in self.named_parameters():
            if name.endswith("_vectors.weight"):
                nn.init.xavier_uniform_(parameter)
            elif "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -0.08, 0.08)
        if keep:
            keep_at_first(self.unit, keep)

    def forward(self, batch: DocumentBatch) -> Tensor:
        """Return the scores of all classes, ``[B, classes]``."""
        return self.read(batch)[0]

    def read(self, batch: DocumentBatch) -> tuple[Tensor, Tensor | None]:
        """Return the scores ``[B, classes]``, and the weights with which the states of all words were pooled,
        ``[B, T]``; None where the last state decides."""
        states, state = self.unit(batch.packing.packed(self.embed(batch)))  # [N, D * H]
        h = hidden(state)  # [D, B, H]
        summary = torch.cat(list(h), -1)  # [B, D * H]
        weights: Tensor | None = None
        if self.pooling_kind == "attention":
            padded = batch.packing.pad(states.data)  # [B, T, 2 * H]
            summary, weights = self.pooling(padded, summary, batch.packing.mask)  # [B, 2 * H], [B, T]
        scores: Tensor = self.output(summary)  # [B, classes]
        return scores, weights

    def embed(self, batch: DocumentBatch) -> Tensor:
        """Return what the layer reads of every word, ``[N, width]``: its vector and that of its spelling."""
        vectors: Tensor = self.input(batch.tokens)
        return vectors

    @torch.no_grad()
    def probabilities(self, batch: DocumentBatch) -> Tensor:
        """Return the probabilities of each document's classes, ``[B, classes]``."""
        shares: Tensor = self(batch).softmax(-1)
        return shares

    def forward_unit(self) -> LRN:
        """Return the layer's forward direction alone, for :mod:`lrn.analysis`: LRN and its relatives only."""
        unit = self.unit
        if not isinstance(unit, LRN):
            raise ValueError(
                f"this run's unit is {type(unit).__name__}; the analysis is of LRN, gLRN and eLRN"
            )
        alone = type(unit)(unit.input_size, unit.hidden_size, activation=unit.activation)
        alone.to(self.output.weight)  # where the model is, in its precision
        alone.load_state_dict({name: unit.state_dict()[name] for name in alone.state_dict()})
        return alone


def _layer(config: DocConfig, width: int) -> Unit:
    more = {"activation": config.activation} if unit_class(config.unit).activations else {}
    return make_unit(config.unit, width, config.hidden, bidirectional=config.pooling == "attention", **more)


def count(config: DocConfig, characters: int, classes: int) -> int:
    """Count parameters as the paper does: of the word vectors only the three special ones."""
    with torch.device("meta"):
        model = Classifier(config, characters, classes, vectors=torch.empty(1, config.word_width))
    return sum(parameter.numel() for parameter in model.parameters())
