"""The reading model: R-Net (Wang et al., 2017) as the paper's released code has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn import (
    BothWays,
    FrozenWords,
    GatedAttention,
    LockedPooling,
    Pointer,
    ScalarMix,
    SequenceDropout,
    SpellingGRU,
    WordDropout,
    WordInput,
    glorot_apart,
)
from lrn.tasks.rc.config import RCConfig
from lrn.units import make_unit
from lrn.units.unit import Unit

if TYPE_CHECKING:
    from lrn.tasks.rc.data import QuestionBatch

LAYERS = 3  # of the encoder


@dataclass(frozen=True)
class Reading:
    """What reading a batch gives.

    Args:
        first: scores ``[B, T]`` of every token to begin the answer at, −∞ behind a paragraph's end.
        last: the same to end it at.
        looked: how much each paragraph's tokens looked at its question's, ``[T, S]`` each, if asked for.
    """

    first: Tensor
    last: Tensor
    looked: Sequence[Tensor] = ()


class ReadingModel(nn.Module):
    """A model that reads paragraphs with questions in mind, and points at where the answers begin and end.

    Args:
        characters: how many characters have a number.
        words: how many words have a vector, if the vectors are to be learnt.
        vectors: the vectors of all words but the special ones, which have zeros, if they are given.
        layers: layers of a contextual encoder; 0 if there is none.
        features: their width.
    """

    def __init__(
        self,
        config: RCConfig,
        characters: int,
        words: int = 0,
        vectors: Tensor | None = None,
        layers: int = 0,
        features: int = 0,
    ) -> None:
        super().__init__()
        width, size, p = (
            config.word_width if vectors is None else vectors.shape[1],
            config.hidden,
            config.dropout,
        )
        self.pooled, self.pool_elmo = 2 * size, config.pool_elmo
        self.input = WordInput(
            _learnt(words, width) if vectors is None else _given(vectors),
            SpellingGRU(_character_vectors(characters, config.char_width), config.char_hidden, p),
            WordDropout(0.0, becomes=0),
        )
        inside = width + 2 * config.char_hidden + features
        self.encoder = nn.ModuleList(
            _layer(config, inside if layer == 0 else 2 * size) for layer in range(LAYERS)
        )
        self.attention = GatedAttention(LAYERS * 2 * size, size, p)
        self.attended = _layer(config, 2 * LAYERS * 2 * size)
        self.self_attention = GatedAttention(2 * size, size, p)
        self.match = _layer(config, 2 * 2 * size)
        self.pooling = LockedPooling(2 * size, size, p)
        self.pointer = Pointer(2 * size + features, 2 * size, size, p)
        self.mixes = nn.ModuleList(ScalarMix(layers) for _ in range(2 if layers else 0))
        self.drop_features = SequenceDropout(config.elmo_dropout)

    def forward(self, batch: QuestionBatch) -> Reading:
        """Read a batch."""
        return self.read(batch)

    def read(self, batch: QuestionBatch, look: bool = False) -> Reading:
        """Read a batch; with ``look`` the reading also says what of the questions was looked at."""
        early, late = self._features(batch)
        states = self._encode(self.input(batch.tokens, early), batch)  # [N + M, 6 * H]
        paragraphs = states.index_select(0, batch.paragraph_places)  # [N, 6 * H]
        questions = states.index_select(0, batch.question_places)  # [M, 6 * H]
        asked = (paragraphs, batch.paragraphs, questions, batch.questions)
        looked = self.attention.weights(*asked) if look else ()
        attended = self.attended(self.attention(*asked), batch.paragraphs)  # [N, 2 * H]
        itself = (attended, batch.paragraphs, attended, batch.paragraphs)
        match = self.match(self.self_attention(*itself), batch.paragraphs)  # [N, 2 * H]
        pooled = questions[:, -self.pooled :]  # what the last layer says
        if late is not None:
            match = torch.cat([match, late.index_select(0, batch.paragraph_places)], -1)
            if self.pool_elmo:
                whole = torch.cat([questions, late.index_select(0, batch.question_places)], -1)
                pooled = whole[:, -self.pooled :]  # in the released code these are columns of the features
        state, _ = self.pooling(pooled, batch.questions)  # [B, 2 * H]
        first, last = self.pointer(state, match, batch.paragraphs)  # [B, T]
        return Reading(first, last, looked)

    def loss(self, batch: QuestionBatch) -> Tensor:
        """The mean over a batch of what is lost on both ends of the answers."""
        reading = self.read(batch)
        first, last = batch.spans.unbind(1)
        return F.cross_entropy(reading.first, first) + F.cross_entropy(reading.last, last)

    def _encode(self, words: Tensor, batch: QuestionBatch) -> Tensor:
        """The states of all layers of the encoder; a paragraph and its question are read through one mask."""
        states = []
        for layer in self.encoder:
            assert isinstance(layer, BothWays)
            ahead, back = layer.masks(len(batch.paragraphs.order), words)
            words = layer(words, batch.both, (_twice(ahead), _twice(back)))  # [N + M, 2 * H]
            states.append(words)
        return torch.cat(states, -1)

    def _features(self, batch: QuestionBatch) -> tuple[Tensor | None, Tensor | None]:
        """The two mixes of a contextual encoder's layers, ``[N + M, F]`` as both are packed."""
        if not self.mixes:
            return None, None
        if batch.context is None:
            raise ValueError("this model reads what a contextual encoder says, and the batch has none of it")
        layers = torch.cat([batch.context.paragraphs, batch.context.questions], 1)  # [L, N + M, F]
        layers = layers.index_select(1, batch.joint)
        early, late = (self.drop_features(mix(layers), batch.both) for mix in self.mixes)
        return early, late


def _twice(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.repeat(2, 1)


def _layer(config: RCConfig, width: int) -> BothWays:
    return BothWays(_unit(config, width), _unit(config, width), config.dropout)


def _unit(config: RCConfig, width: int) -> Unit:
    unit = make_unit(config.unit, width, config.hidden)
    glorot_apart(unit)
    return unit


def _learnt(words: int, width: int) -> nn.Embedding:
    vectors = nn.Embedding(words, width)
    nn.init.normal_(vectors.weight, std=0.1)
    return vectors


def _given(vectors: Tensor) -> FrozenWords:
    from lrn.text.vocabulary import SPECIALS

    return FrozenWords(0, torch.cat([vectors.new_zeros(len(SPECIALS), vectors.shape[1]), vectors]))


def _character_vectors(characters: int, width: int) -> nn.Embedding:
    vectors = nn.Embedding(characters, width)
    nn.init.normal_(vectors.weight, std=0.01)
    with torch.no_grad():
        vectors.weight[:2] = 0  # none, and unknown ones
    return vectors


def count(config: RCConfig, characters: int, layers: int = 0, features: int = 0) -> int:
    """Count parameters as the paper does: all that are trained, which word vectors are not."""
    with torch.device("meta"):
        vectors = torch.empty(1, config.word_width)
        model = ReadingModel(config, characters, vectors=vectors, layers=layers, features=features)
    return sum(parameter.numel() for parameter in model.parameters())
