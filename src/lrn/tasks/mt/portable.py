"""What leaves the translation model: an encoder, which reads sentences, and a step of the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from lrn.nn import padded
from lrn.recurrence import padded_memory
from lrn.tasks import portable as leaving
from lrn.tasks.mt.codes import END_NUMBER, UNKNOWN_NUMBER, Codes
from lrn.tasks.mt.data import Corpus, source_batch
from lrn.tasks.mt.model import Translator
from lrn.tasks.mt.search import FURTHER
from lrn.tasks.portable import Example, Graph, Port, Portable
from lrn.text.subwords import MORE
from lrn.text.vocabulary import SPECIALS
from lrn.units.unit import Unit, hidden

if TYPE_CHECKING:
    from lrn.tasks.mt.task import LoadedModel

NOTHING = -1  # what the decoder reads at the first step


class PaddedEncoder(nn.Module):
    """What reads padded sentences."""

    def __init__(self, model: Translator) -> None:
        super().__init__()
        self.model = model

    def forward(self, pieces: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        model, encoder = self.model, self.model.encoder
        x = model.source(pieces) + model.common  # [B, S, H]
        ahead, _ = padded.run(encoder.ahead, x, lengths)
        y, state = padded.two_cells(
            encoder.back, padded.turned(x, lengths), padded.turned(ahead, lengths), lengths
        )
        last = hidden(state)[0]  # [B, H]
        x = encoder.residuals[0](x, padded.turned(y, lengths))
        for layer, residual in zip(encoder.layers, encoder.residuals[1:], strict=True):
            assert isinstance(layer, Unit)
            y, state = padded.run(layer, x, lengths)
            last = hidden(state)[0]
            x = residual(x, y)
        there = padded.real(pieces, lengths).unsqueeze(-1)
        values = x.masked_fill(~there, 0)
        keys = model.decoder.first.keys(values).masked_fill(~there, 0)
        return keys, values, *leaving.flat(model.decoder.states(last))


class DecoderStep(nn.Module):
    """A step of the decoder."""

    def __init__(self, model: Translator) -> None:
        super().__init__()
        self.model = model

    @property
    def units(self) -> list[Unit]:
        """A cell of each layer, which say what the layers' states are like."""
        first = self.model.decoder.first.lower
        return [first] * (1 + len(self.model.decoder.layers))

    def forward(
        self, piece: Tensor, lengths: Tensor, keys: Tensor, values: Tensor, *states: Tensor
    ) -> tuple[Tensor, ...]:
        model = self.model
        memory = padded_memory(keys, values, padded.real(keys, lengths))
        x = model.target(piece.clamp_min(0)) + model.common
        x = x.masked_fill((piece < 0).unsqueeze(1), 0)
        said, after = model.decoder.step(x, memory, leaving.states_of(self.units, states))
        return model.scores(said).log_softmax(-1), *leaving.flat(after)


def portable(loaded: LoadedModel, data: Corpus) -> Portable:
    """The translation model with some sentences of the validation part."""
    model, codes = loaded.model, loaded.kept.codes
    step = DecoderStep(model)
    lines = [line for line in data.part("valid").sources if line.strip()]
    lengths = [len(line.split()) for line in lines]
    chosen = [lines[number] for number in leaving.some(lengths)] if lines else [""] * 3
    sentences = _Sentences(model, [codes.source.encode(line) for line in chosen])
    before, after = leaving.state_ports(step.units, "sentences")
    width, types = model.target.embedding_dim, len(codes.target.vocabulary)
    count = Port("lengths", ("sentences",), "How many pieces each sentence has, with its end.")
    seen = (
        Port("keys", ("sentences", "steps", width), "What the decoder compares with, of each piece."),
        Port("values", ("sentences", "steps", width), "What the decoder reads, of each piece."),
    )
    graphs = (
        Graph(
            "encoder",
            "Reads sentences that are to be translated.",
            PaddedEncoder(model),
            (
                Port("pieces", ("sentences", "steps"), "The numbers of the pieces; 0 behind the end."),
                count,
            ),
            (
                *seen,
                *(
                    Port(port.name, port.axes, f"What the decoder begins with as {port.name}.")
                    for port in before
                ),
            ),
            sentences.encoded(),
        ),
        Graph(
            "decoder",
            "Goes one piece further in the translations of sentences.",
            step,
            (
                Port("piece", ("sentences",), f"The latest piece of each translation; {NOTHING} at first."),
                count,
                *seen,
                *before,
            ),
            (
                Port(
                    "log_probabilities",
                    ("sentences", types),
                    "The logarithm of the probability that a piece follows.",
                ),
                *after,
            ),
            sentences.decoded(step.units),
        ),
    )
    return Portable(graphs, *_words(codes))


class _Sentences:
    """Some sentences, and what the run says of them."""

    def __init__(self, model: Translator, rows: Sequence[list[int]]) -> None:
        self.model, self.rows = model, [[*row, END_NUMBER] for row in rows]
        self.opened = model.open(source_batch([np.array(row, np.int32) for row in rows]))
        self.lengths = torch.tensor(self.opened.lengths)
        self.pieces = leaving.padded(self.rows)
        self.keys, self.values = (
            _laid(part, self.opened.lengths, self.pieces.shape[1])
            for part in (self.opened.keys, self.opened.values)
        )
        self.states = leaving.flat(self.opened.states)

    def encoded(self) -> tuple[Example, ...]:
        """All in one batch, and the first by itself."""
        first = self.opened.lengths[0]
        return (
            Example((self.pieces, self.lengths), (self.keys, self.values, *self.states)),
            Example(
                (self.pieces[:1, :first], self.lengths[:1]),
                (self.keys[:1, :first], self.values[:1, :first], *(part[:1] for part in self.states)),
            ),
        )

    def decoded(self, units: Sequence[Unit]) -> tuple[Example, ...]:
        """The first two steps, which say what is most probable."""
        memory = self.opened.memory(range(len(self.rows)))
        piece, states = torch.full((len(self.rows),), NOTHING), self.states
        found = []
        for _ in range(2):
            given = None if bool((piece == NOTHING).all()) else piece
            scores, after = self.model.step(given, memory, leaving.states_of(units, states))
            said = scores.log_softmax(-1), *leaving.flat(after)
            found.append(Example((piece, self.lengths, self.keys, self.values, *states), said))
            piece, states = scores.argmax(-1), said[1:]
        return tuple(found)


def _laid(rows: Tensor, lengths: Sequence[int], steps: int) -> Tensor:
    """Sequences one behind the other, ``[N, W]``, as padded ones, ``[B, S, W]``."""
    found = rows.new_zeros(len(lengths), steps, rows.shape[1])
    for place, row in zip(found, rows.split(list(lengths)), strict=True):
        place[: len(row)] = row
    return found


def _words(
    codes: Codes,
) -> tuple[dict[str, Sequence[str]], tuple[str, ...], tuple[str, ...], dict[str, object]]:
    """Vocabularies, how sentences become numbers and numbers sentences, and what both need."""
    source, target = codes.source, codes.target
    cut = {
        "raw": f"Cut a sentence into words as Moses does for {source.language}, without escaping.",
        "tokenised": "Words are what stands between blanks.",
        "segmented": "Pieces of words are what stands between blanks.",
    }[source.text]
    pieces: tuple[str, ...] = ()
    settings: dict[str, object] = {
        "languages": [source.language, target.language],
        "end": END_NUMBER,
        "never": [number for number in range(len(SPECIALS)) if number != END_NUMBER],
        "further": FURTHER,
    }
    if source.subwords is not None:
        pieces = (
            "Cut each word into pieces by the merges of settings.bpe, which is a file of Hugging Face's "
            f"tokenizers; write {MORE} behind a piece that does not end its word.",
            "A piece that vocabularies.source does not have is cut into the two that it was joined of, and "
            "so on, down to letters.",
        )
        settings["bpe"] = source.subwords.to_json()
    text = (
        cut,
        *pieces,
        "The number of a piece is its place, from 0, in vocabularies.source; that of one that is not there "
        f"is {UNKNOWN_NUMBER}. Every sentence ends with {END_NUMBER}.",
        "Run the encoder once; then the decoder again and again, with keys, values and lengths as they were, "
        "the states that came out, and the pieces that were chosen.",
    )
    answer = (
        "Numbers of pieces stand in vocabularies.target. Those of settings.never are never chosen, nor is "
        "the end at first; a translation that is settings.further pieces longer than its sentence is ended.",
        f"A piece with {MORE} behind it and the next one are one word; words are put together as Moses does "
        f"for {target.language}.",
        "To look for the best translation, follow several: one of n pieces, its end included, has as its "
        "score the sum of its logarithms divided by ((5 + n) / 6) ** 0.6.",
    )
    return (
        {"source": source.vocabulary.words, "target": target.vocabulary.words},
        text,
        answer,
        settings,
    )
