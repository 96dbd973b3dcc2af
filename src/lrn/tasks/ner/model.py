"""The tagger: words and their characters, a bidirectional recurrent layer, a CRF (Lample et al., 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lrn.nn import CRF, Dropout, Linear, SpellingRNN, WordDropout, WordInput, glorot_fused
from lrn.tasks.ner.config import NERConfig
from lrn.tasks.ner.schemes import allowed_transitions
from lrn.units import make_unit
from lrn.units.unit import Unit

if TYPE_CHECKING:
    from lrn.tasks.ner.data import Codes, SentenceBatch


class Tagger(nn.Module):
    """A tagger of the words of sentences.

    >>> from lrn.tasks.ner.data import Codes, Sentence, encode
    >>> codes = Codes.of([Sentence(("Anna", "sleeps"), ("B-PER", "O"))])
    >>> tagger = Tagger(NERConfig(), codes).eval()
    >>> [len(tags) for tags in tagger.tag(encode([["Anna", "sleeps"]], codes))]
    [2]
    """

    def __init__(self, config: NERConfig, codes: Codes) -> None:
        super().__init__()
        self.codes = codes
        self.input = WordInput(
            nn.Embedding(len(codes.words), config.word_width, padding_idx=0),
            SpellingRNN(
                _character_vectors(len(codes.characters), config.char_width),
                _layer(config.unit, config.char_width, config.char_hidden),
            ),
            WordDropout(config.drop_words, becomes=len(codes.words) - 1),  # so that <unk> is learnt
        )
        self.dropout = Dropout(config.dropout)
        self.context = _layer(config.unit, config.word_width + 2 * config.char_hidden, config.hidden)
        self.dense = Linear(2 * config.hidden, config.dense)
        tags = codes.tags.words
        self.emission = Linear(config.dense, len(tags))
        allowed = torch.tensor(allowed_transitions(tags)) if config.constrain else None
        if allowed is not None:
            allowed[:, 0] = False  # <pad> is no tag for a word
        self.crf = CRF(len(tags), allowed)
        for layer in (self.dense, self.emission):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def emissions(self, batch: SentenceBatch) -> Tensor:
        """Return the scores of every word's tags, ``[B, T, tags]``."""
        words = self.dropout(self.input(batch.tokens))  # [B, T, width]
        packed, _ = self.context(batch.packing.pack(words))  # [N, 2 * H]
        context = batch.packing.pad(packed.data)  # [B, T, 2 * H]
        scores: Tensor = self.emission(torch.tanh(self.dense(context)))  # [B, T, tags]
        return scores

    def loss(self, batch: SentenceBatch) -> Tensor:
        """Return the mean over sentences of the negative log-likelihood a word."""
        likelihood = self.crf.log_likelihood(self.emissions(batch), batch.tags, batch.mask)  # [B]
        return -(likelihood / batch.mask.sum(1)).mean()

    @torch.no_grad()
    def tag(self, batch: SentenceBatch) -> list[list[str]]:
        """Return the best tags of each sentence."""
        best = self.crf.decode(self.emissions(batch), batch.mask).tolist()
        lengths = batch.lengths.tolist()
        names = self.codes.tags.words
        return [[names[tag] for tag in row[:length]] for row, length in zip(best, lengths, strict=True)]

    @property
    def word_vectors(self) -> nn.Embedding:
        """The table of word vectors."""
        table = self.input.word_vectors
        assert isinstance(table, nn.Embedding)
        return table

    def load_vectors(self, vectors: Tensor) -> None:
        """Start from these word vectors, ``[words, width]``."""
        with torch.no_grad():
            self.word_vectors.weight.copy_(vectors)


def _character_vectors(characters: int, width: int) -> nn.Embedding:
    vectors = nn.Embedding(characters, width, padding_idx=0)
    nn.init.uniform_(vectors.weight, -0.05, 0.05)
    return vectors


def _layer(name: str, width: int, hidden: int) -> Unit:
    """Make both directions of a unit. In this task's released code ATR has no tanh, as in ATR's own paper."""
    more = {"activation": "identity"} if name == "atr" else {}
    unit = make_unit(name, width, hidden, bidirectional=True, batch_first=True, **more)
    glorot_fused(unit)
    return unit


def count(config: NERConfig, characters: int, tags: int) -> int:
    """Count parameters as the paper does: without the word vectors."""
    with torch.device("meta"):
        inside = config.word_width + 2 * config.char_hidden
        units = [
            _layer(config.unit, config.char_width, config.char_hidden),
            _layer(config.unit, inside, config.hidden),
        ]
    total = characters * config.char_width + sum(p.numel() for unit in units for p in unit.parameters())
    total += (2 * config.hidden + 1) * config.dense + (config.dense + 1) * tags
    return total + tags * tags + 2 * tags
