"""The inference model: a hypothesis is read word by word with attention to its premise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lrn.nn import (
    Affine,
    AttentiveRecurrence,
    Dropout,
    FrozenWords,
    SelfPooling,
    SpellingPool,
    WordDropout,
    WordInput,
)
from lrn.tasks.nli.config import LABELS, NLIConfig
from lrn.text.vocabulary import SPECIALS
from lrn.units import hidden, make_unit
from lrn.units.unit import Unit, UserState

if TYPE_CHECKING:
    from lrn.tasks.nli.data import Context, PairBatch
    from lrn.text.bert import Encoder


class InferenceModel(nn.Module):
    """A model that says whether a hypothesis follows from a premise.

    Both sentences' words are looked up and spelt; the premise is encoded; the hypothesis is read by an
    :class:`AttentiveRecurrence` that begins where the premise ended; both are encoded once more and pooled.

    Args:
        characters: how many characters have a number.
        words: how many words have a vector, if the vectors are to be learnt.
        vectors: the vectors of all words but the three special ones, if they are given.
        features: width of contextual features; 0 if there are none.
        bert: what computes them, if it is trained with the model.
    """

    def __init__(
        self,
        config: NLIConfig,
        characters: int,
        words: int = 0,
        vectors: Tensor | None = None,
        features: int = 0,
        bert: Encoder | None = None,
    ) -> None:
        super().__init__()
        width, size = config.word_width if vectors is None else vectors.shape[1], config.hidden
        norm = None if config.norm == "none" else config.norm
        self.input = WordInput(
            nn.Embedding(words, width) if vectors is None else FrozenWords(len(SPECIALS), vectors),
            SpellingPool(nn.Embedding(characters, config.char_width), config.dropout / 2),
            WordDropout(0.0, becomes=0),
        )
        inside = width + config.char_width + features
        self.dropout = Dropout(config.dropout)
        self.premise = _both_ways(config, inside)
        lower = make_unit(config.unit, inside, size, norm=norm)
        self.first = Affine(2 * size, lower.parts * size, norm=norm)
        self.walk = AttentiveRecurrence(
            lower, make_unit(config.unit, 2 * size, size, norm=norm), 2 * size, config.heads, norm
        )
        self.premise_after = _both_ways(config, 2 * size + features)
        self.hypothesis_after = _both_ways(config, size + features)
        self.premise_pooling = SelfPooling(2 * size, size, config.dropout)
        self.hypothesis_pooling = SelfPooling(2 * size, size, config.dropout)
        self.output = Affine(4 * size + features, len(LABELS), norm=norm)
        self._begin(0.08 * math.sqrt(300 / size))
        self.bert = bert  # after all others have drawn their first weights: it has its own

    def _begin(self, bound: float) -> None:
        """Draw the first weights as the released code does: the characters' by Glorot's rule, biases 0.

        Its bound is 0.08 in the paper's width of 300; a narrower model needs larger ones to begin to learn.
        """
        for name, parameter in self.named_parameters():
            if name.endswith("character_vectors.weight"):
                nn.init.xavier_uniform_(parameter)
            elif "bias" in name:
                nn.init.zeros_(parameter)
            elif "norm" not in name and not name.endswith("scale"):
                nn.init.uniform_(parameter, -bound, bound)

    def forward(self, batch: PairBatch) -> Tensor:
        """Return the scores of all labels, ``[B, labels]``."""
        return self.read(batch)[0]

    def read(self, batch: PairBatch) -> tuple[Tensor, list[Tensor]]:
        """Return the scores ``[B, labels]``, and for each step over the hypotheses the weights with which the
        words of the premises were attended to, ``[rows, heads, P]``."""
        context = self._context(batch)
        features = None if context is None else torch.cat([context.premises, context.hypotheses])
        words = self.input(batch.tokens, features)  # [N + M, I]
        premises, hypotheses = words.split([len(batch.premises.places), len(batch.hypotheses.places)])
        states, state = self.premise(batch.premises.packed(premises))  # [N, 2 * H]
        walked = self.walk(
            hypotheses,
            batch.hypotheses.batch_sizes.tolist(),
            self.walk.open(
                states.data.index_select(0, batch.memory), batch.starts, len(batch.premises.batch_sizes)
            ),
            self._first_state(state, batch),
        )  # [M, H]
        before, after = self.dropout(states.data), self.dropout(walked.output)
        if context is not None:
            before = torch.cat([before, context.premises], -1)
            after = torch.cat([after, context.hypotheses], -1)
        before, _ = self.premise_after(batch.premises.packed(before))  # [N, 2 * H]
        after, _ = self.hypothesis_after(batch.hypotheses.packed(after))  # [M, 2 * H]
        pooled = [
            self.premise_pooling(before.data, batch.premises)[0],  # [B, 2 * H]
            self.hypothesis_pooling(after.data, batch.hypotheses)[0],  # [B, 2 * H]
        ]
        if context is not None:
            pooled.append(context.pairs)
        return self.output(torch.cat(pooled, -1)), walked.weights

    def _context(self, batch: PairBatch) -> Context | None:
        """What BERT says, which the batch brings along or which is computed with it."""
        from lrn.tasks.nli.data import Context  # here, since parameters are counted without numpy

        found = batch.context
        if self.bert is not None and batch.pieces is not None:
            premises, hypotheses, pairs = self.bert(batch.pieces)  # [B, P, F], [B, H, F], [B, F]
            found = Context(batch.premises.pack(premises).data, batch.hypotheses.pack(hypotheses).data, pairs)
        if found is None:
            return None
        return Context(self.dropout(found.premises), self.dropout(found.hypotheses), found.pairs)

    def _first_state(self, state: UserState, batch: PairBatch) -> UserState:
        """The state with which the hypotheses begin, in the order in which they are packed."""
        ended = torch.cat(list(hidden(state)), -1)  # [B, 2 * H]
        first = torch.tanh(self.first(ended)).index_select(0, batch.hypotheses.order)  # [B, parts * H]
        parts = first.unsqueeze(0).chunk(self.walk.lower.parts, -1)  # of [1, B, H]
        return parts[0] if len(parts) == 1 else (parts[0], parts[1])


def _both_ways(config: NLIConfig, width: int) -> Unit:
    norm = None if config.norm == "none" else config.norm
    return make_unit(config.unit, width, config.hidden, bidirectional=True, norm=norm)


def count(config: NLIConfig, characters: int) -> int:
    """Count parameters as the paper does: of the word vectors only the three special ones."""
    with torch.device("meta"):
        model = InferenceModel(config, characters, vectors=torch.empty(1, config.word_width))
    return sum(parameter.numel() for parameter in model.parameters())
