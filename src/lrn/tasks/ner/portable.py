"""What leaves the tagger: words and characters of sentences in, the scores of tags and the best tags out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn import padded
from lrn.tasks.ner.data import Dataset, encode
from lrn.tasks.ner.model import Tagger
from lrn.tasks.ner.predict import TOKEN
from lrn.tasks.portable import Example, Graph, Port, Portable, some, together_and_alone
from lrn.tasks.spelt import spelt, spelt_ports

if TYPE_CHECKING:
    from lrn.tasks.ner.task import LoadedTagger


class PaddedTagger(nn.Module):
    """The tagger on padded sentences."""

    def __init__(self, model: Tagger) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, characters: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        model, mask = self.model, padded.real(words, lengths)
        vectors = padded.word_input(model.input, words, characters, longest=0)  # all characters count
        context, _ = padded.run(model.context, vectors, lengths)  # [B, T, 2 * H]
        scores = model.emission(torch.tanh(model.dense(context)))  # [B, T, tags]
        scores = scores.masked_fill(~mask.unsqueeze(-1), 0)
        return scores, padded.viterbi(model.crf, scores, mask)


def portable(loaded: LoadedTagger, data: Dataset) -> Portable:
    """The tagger with some of the test sentences."""
    codes, model = loaded.kept.codes, loaded.model

    def example(numbers: Sequence[int]) -> Example:
        sentences = [data.test[number].words for number in numbers]
        batch = encode(sentences, codes)
        scores = model.emissions(batch)
        said = scores.masked_fill(~batch.mask.unsqueeze(-1), 0), model.crf.decode(scores, batch.mask)
        inputs = spelt(
            [codes.words.encode([word.lower() for word in words]) for words in sentences],
            [[codes.characters.encode(list(word)) for word in words] for words in sentences],
        )
        behind = inputs[0].shape[1] - batch.mask.shape[1]
        return Example(inputs, (F.pad(said[0], (0, 0, 0, behind)), F.pad(said[1], (0, behind))))

    count = len(codes.tags)
    graph = Graph(
        "",
        "Tags the words of sentences.",
        PaddedTagger(model),
        spelt_ports("sentences", "steps"),
        (
            Port(
                "emissions",
                ("sentences", "steps", count),
                "The score of every tag for every token; 0 behind the end.",
            ),
            Port(
                "tags",
                ("sentences", "steps"),
                "The number of every token's tag in the best sequence; 0 behind the end.",
            ),
        ),
        together_and_alone(some([len(sentence.words) for sentence in data.test]), example),
    )
    start, transition, end = (part.tolist() for part in model.crf._scores())
    return Portable(
        (graph,),
        {"words": codes.words.words, "characters": codes.characters.words, "tags": codes.tags.words},
        (
            "Cut a sentence into words and punctuation as CoNLL-2003 has them: with the regular expression "
            "of settings.token, for example.",
            "The number of a word is the place, from 0, of its lower case in vocabularies.words, or that "
            "of <unk> there.",
            "The number of a character is its place, from 0, in vocabularies.characters, or that of <unk> "
            "there; all characters of a token count, as they are.",
        ),
        (
            "The name of a tag stands in vocabularies.tags; number 0, which a model that has hardly learnt "
            "may say, is O.",
            "Tags are in IOB2: B-X begins an entity of type X, I-X goes on with it, O is none.",
            "The best sequence is that of the largest sum of emissions and of settings.start, "
            "settings.transition (from row to column) and settings.end; what is forbidden has −1,000,000 "
            "there.",
        ),
        {
            "token": TOKEN,
            "start": start,
            "transition": transition,
            "end": end,
        },
    )
