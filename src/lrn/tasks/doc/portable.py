"""What leaves the classifier: words and characters of documents in, the probabilities of the classes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lrn.nn import padded
from lrn.tasks.doc.data import cut_lengths, encode
from lrn.tasks.doc.documents import Documents
from lrn.tasks.doc.model import Classifier
from lrn.tasks.portable import Example, Graph, Port, Portable, some, together_and_alone
from lrn.tasks.spelt import spelt_ports, spelt_rows, spelt_text
from lrn.text.spelt import LONGEST_WORD
from lrn.units import hidden

if TYPE_CHECKING:
    from lrn.tasks.doc.task import LoadedClassifier


class PaddedClassifier(nn.Module):
    """The classifier on padded documents."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, characters: Tensor, lengths: Tensor) -> tuple[Tensor]:
        model = self.model
        vectors = padded.word_input(model.input, words, characters, LONGEST_WORD)  # [B, T, width]
        states, state = padded.run(model.unit, vectors, lengths)  # [B, T, D * H]
        summary = torch.cat(list(hidden(state)), -1)  # [B, D * H]
        if model.pooling_kind == "attention":
            summary, _ = model.pooling(states, summary, padded.real(words, lengths))
        return (model.output(summary).softmax(-1),)


def portable(loaded: LoadedClassifier, data: Documents) -> Portable:
    """The classifier with some of the test documents."""
    codes, table, longest = loaded.kept.codes, loaded.kept.table(data), loaded.config.longest_test

    def example(numbers: Sequence[int]) -> Example:
        documents = [data.test.document(number, longest) for number in numbers]
        said = loaded.model.probabilities(encode(documents, table))
        return Example(spelt_rows(table, documents), (said,))

    classes = len(codes.classes)
    graph = Graph(
        "",
        "Classifies documents.",
        PaddedClassifier(loaded.model),
        spelt_ports("documents", "steps"),
        (Port("probabilities", ("documents", classes), "The probability of each class."),),
        together_and_alone(some(cut_lengths(data.test, longest).tolist()), example),
    )
    cut = f"Of a document the first {longest} tokens count." if longest else "All tokens of a document count."
    return Portable(
        (graph,),
        {
            "words": codes.words.words,
            "characters": codes.characters.words,
            "classes": codes.classes.words,
        },
        (
            "Drop control and format characters; cut the text at blanks, with every punctuation character "
            "(all of ASCII that is no letter, digit or blank, too) and every CJK ideograph a token of its "
            "own. Case is kept.",
            cut,
            *spelt_text(LONGEST_WORD),
        ),
        (
            "The class of a document is the one of the largest probability; its name stands in "
            "vocabularies.classes.",
        ),
        {"longest_text": longest},
    )
