"""What leaves the inference model: words and characters of two sentences in, the probabilities of labels
out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from lrn.nn import padded
from lrn.recurrence import padded_memory
from lrn.tasks.nli.config import LABELS
from lrn.tasks.nli.data import EMPTY, Pairs
from lrn.tasks.nli.model import InferenceModel
from lrn.tasks.portable import Example, Graph, Port, Portable, some, together_and_alone
from lrn.tasks.spelt import spelt_ports, spelt_rows, spelt_text
from lrn.text.spelt import LONGEST_WORD
from lrn.units import hidden
from lrn.units.unit import UserState

if TYPE_CHECKING:
    from lrn.tasks.nli.task import LoadedModel


class PaddedInference(nn.Module):
    """The inference model on padded pairs."""

    def __init__(self, model: InferenceModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        premise_words: Tensor,
        premise_characters: Tensor,
        premise_lengths: Tensor,
        hypothesis_words: Tensor,
        hypothesis_characters: Tensor,
        hypothesis_lengths: Tensor,
    ) -> tuple[Tensor]:
        model = self.model
        premises = padded.word_input(model.input, premise_words, premise_characters, LONGEST_WORD)
        hypotheses = padded.word_input(model.input, hypothesis_words, hypothesis_characters, LONGEST_WORD)
        there = padded.real(premises, premise_lengths)
        states, state = padded.run(model.premise, premises, premise_lengths)  # [B, P, 2 * H]
        memory = padded_memory(model.walk.keys(states), states, there)
        walked = padded.attentive(model.walk, hypotheses, hypothesis_lengths, memory, self._first(state))
        before, _ = padded.run(model.premise_after, states, premise_lengths)
        after, _ = padded.run(model.hypothesis_after, walked, hypothesis_lengths)
        pooled = [
            padded.pooling(model.premise_pooling, before, there),
            padded.pooling(model.hypothesis_pooling, after, padded.real(after, hypothesis_lengths)),
        ]
        return (model.output(torch.cat(pooled, -1)).softmax(-1),)

    def _first(self, state: UserState) -> UserState:
        """The state with which the hypotheses begin."""
        ended = torch.cat(list(hidden(state)), -1)  # [B, 2 * H]
        first = torch.tanh(self.model.first(ended)).unsqueeze(0)
        parts = first.chunk(self.model.walk.lower.parts, -1)  # of [1, B, H]
        return parts[0] if len(parts) == 1 else (parts[0], parts[1])


def portable(loaded: LoadedModel, data: Pairs) -> Portable:
    """The inference model with some of the test pairs."""
    table, part = loaded.kept.table(data), data.test

    def example(numbers: Sequence[int]) -> Example:
        said = loaded.model(loaded.kept.batch(data, "test", np.array(numbers))).softmax(-1)
        sides = (spelt_rows(table, [rows[n] for n in numbers]) for rows in (part.premises, part.hypotheses))
        return Example(tuple(tensor for side in sides for tensor in side), (said,))

    graph = Graph(
        "",
        "Says whether hypotheses follow from premises.",
        PaddedInference(loaded.model),
        (
            *spelt_ports("pairs", "premise_steps", "premise_"),
            *spelt_ports("pairs", "hypothesis_steps", "hypothesis_"),
        ),
        (Port("probabilities", ("pairs", len(LABELS)), "The probability of each label."),),
        together_and_alone(some((part.premises.lengths + part.hypotheses.lengths).tolist()), example),
    )
    codes = loaded.kept.codes
    return Portable(
        (graph,),
        {"words": codes.words.words, "characters": codes.characters.words, "labels": LABELS},
        (
            "Cut sentences into tokens as the Penn Treebank does, as SNLI's own parses are: punctuation and "
            "clitics apart (ca n't, dog 's), brackets as -LRB- and -RRB-, quotation marks as `` and ''. Case "
            "is kept.",
            f"A sentence without tokens is the token {EMPTY}.",
            *spelt_text(LONGEST_WORD),
        ),
        ("The label of a pair is that of the largest probability; its name stands in vocabularies.labels.",),
    )
