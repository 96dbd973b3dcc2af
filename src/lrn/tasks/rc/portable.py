"""What leaves the reading model: paragraphs and questions in, where the answers begin and end out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from lrn.nn import BothWays, best_spans, padded
from lrn.tasks.portable import Example, Graph, Port, Portable, some, together_and_alone
from lrn.tasks.rc.data import LONGEST_WORD, Dataset
from lrn.tasks.rc.model import ReadingModel
from lrn.tasks.spelt import spelt_characters, spelt_ports, spelt_rows

if TYPE_CHECKING:
    from lrn.tasks.rc.task import LoadedModel


class PaddedReading(nn.Module):
    """The reading model on padded paragraphs and questions.

    ``longest`` is how many tokens an answer may have.
    """

    def __init__(self, model: ReadingModel, longest: int) -> None:
        super().__init__()
        self.model, self.longest = model, longest

    def forward(
        self,
        paragraph_words: Tensor,
        paragraph_characters: Tensor,
        paragraph_lengths: Tensor,
        question_words: Tensor,
        question_characters: Tensor,
        question_lengths: Tensor,
    ) -> tuple[Tensor, ...]:
        model = self.model
        paragraphs = self._encoded(paragraph_words, paragraph_characters, paragraph_lengths)  # [B, T, 6 * H]
        questions = self._encoded(question_words, question_characters, question_lengths)  # [B, S, 6 * H]
        there, asked = padded.real(paragraphs, paragraph_lengths), padded.real(questions, question_lengths)
        read = padded.gated_attention(model.attention, paragraphs, questions, asked)
        attended = padded.both_ways(model.attended, read, paragraph_lengths)  # [B, T, 2 * H]
        itself = padded.gated_attention(model.self_attention, attended, attended, there)
        match = padded.both_ways(model.match, itself, paragraph_lengths)  # [B, T, 2 * H]
        state = padded.pooling(model.pooling, questions[:, :, -model.pooled :], asked)  # [B, 2 * H]
        first, last = padded.pointed(model.pointer, state, match, there)  # [B, T]
        begin, end, best = padded.best_span(first.log_softmax(-1), last.log_softmax(-1), self.longest)
        return begin, end, best.exp(), first.softmax(-1), last.softmax(-1)

    def _encoded(self, words: Tensor, characters: Tensor, lengths: Tensor) -> Tensor:
        """The states of all layers of the encoder."""
        x, states = padded.word_input(self.model.input, words, characters, LONGEST_WORD), []
        for layer in self.model.encoder:
            assert isinstance(layer, BothWays)
            x = padded.both_ways(layer, x, lengths)
            states.append(x)
        return torch.cat(states, -1)


def portable(loaded: LoadedModel, data: Dataset) -> Portable:
    """The reading model with some of the test questions."""
    longest, table, part = loaded.config.longest_answer, loaded.kept.table(data), data.test

    def example(numbers: Sequence[int]) -> Example:
        reading = loaded.model(loaded.kept.batch(data, "test", np.array(numbers)))
        first, last = reading.first, reading.last  # [B, T]
        begin, end, best = best_spans(first.log_softmax(-1), last.log_softmax(-1), longest)
        spans = begin[:, 0], end[:, 0], best[:, 0].exp()
        paragraphs = spelt_rows(table, [part.paragraphs[part.about[number]] for number in numbers])
        questions = spelt_rows(table, [part.questions[number] for number in numbers])
        behind = (0, paragraphs[0].shape[1] - first.shape[1])
        shares = (nn.functional.pad(scores.softmax(-1), behind) for scores in (first, last))
        return Example((*paragraphs, *questions), (*spans, *shares))

    graph = Graph(
        "",
        "Finds the answers to questions about paragraphs.",
        PaddedReading(loaded.model, longest),
        (
            *spelt_ports("questions", "paragraph_steps", "paragraph_"),
            *spelt_ports("questions", "question_steps", "question_"),
        ),
        (
            Port("begin", ("questions",), "The first token of the best answer, counted from 0."),
            Port("end", ("questions",), "The last token of the best answer, which belongs to it."),
            Port("probability", ("questions",), "How probable that answer is."),
            Port("begins", ("questions", "paragraph_steps"), "How probable it is to begin at each token."),
            Port("ends", ("questions", "paragraph_steps"), "How probable it is to end at each token."),
        ),
        together_and_alone(some(part.lengths.tolist()), example),
    )
    codes = loaded.kept.codes
    return Portable(
        (graph,),
        {"words": codes.words.words, "characters": codes.characters.words},
        (
            "In the text, write '' and `` as a quotation mark and a blank; cut it into tokens by spaCy's "
            "rules for English (spacy.lang.en.English().tokenizer), and keep where each begins and ends.",
            "The number of a word is its place, from 0, in vocabularies.words; if it is not there, that of "
            "its lower case, else of itself capitalised, else of its upper case; else 1, which is <unk>.",
            spelt_characters(LONGEST_WORD),
        ),
        (
            "The answer is what stands in the text from where token begin begins to where token end ends.",
            f"It is the span of at most {longest} tokens with the largest product of begins and ends.",
        ),
        {"longest_answer": longest},
    )
