"""The translation model: the paper's variant of GNMT, whose first layers have two cells a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn import Affine, AttentiveRecurrence, Dropout, TwoCells, hidden_biased_unit, smoothed_softmax_loss
from lrn.recurrence import Memory, open_memory
from lrn.recurrence.cells import NORM_EPS
from lrn.tasks.mt.config import MTConfig
from lrn.units.unit import Unit, UserState, hidden

if TYPE_CHECKING:
    from lrn.tasks.mt.data import PairBatch, SourceBatch

Cell = Callable[[], Unit]


class Residual(nn.Module):
    """What every layer ends with: ``N(x + dropout(A y + b))``, x its input and y what its cells say."""

    def __init__(self, width: int, norm: str | None, dropout: float) -> None:
        super().__init__()
        self.map = Affine(width, width)
        self.dropout = Dropout(dropout)
        self.norm: nn.Module = nn.Identity()
        if norm is not None:
            kind = nn.LayerNorm if norm == "layer" else nn.RMSNorm
            self.norm = kind(width, eps=NORM_EPS)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.norm(x + self.dropout(self.map(y)))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Reads the source: the first layer in both directions, all others forwards.

    The first layer walks forwards and then backwards with two cells a step, of which one reads a word and the
    other what the first walk said there. Only the backward walk is the layer's output.
    """

    def __init__(self, cell: Cell, width: int, layers: int, norm: str | None, dropout: float) -> None:
        super().__init__()
        self.ahead, self.back = cell(), TwoCells(cell(), cell())
        self.layers = nn.ModuleList(cell() for _ in range(layers - 1))
        self.residuals = nn.ModuleList(Residual(width, norm, dropout) for _ in range(layers))

    def forward(self, x: Tensor, batch: SourceBatch) -> tuple[Tensor, Tensor]:
        """Return what stands for each piece of x, ``[N, H]``, packed, and the last states, ``[B, H]``."""
        packing, sizes = batch.packing, batch.packing.batch_sizes.tolist()
        ahead, _ = self.ahead(packing.packed(x))  # [N, H]
        turned = (part.index_select(0, batch.backwards) for part in (x, ahead.data))
        y, state = self.back(*turned, sizes, self._nothing(x, sizes[0]))
        last = hidden(state)[0].index_select(0, packing.back)  # [B, H]
        x = self.residuals[0](x, y.index_select(0, batch.backwards))
        for layer, residual in zip(self.layers, self.residuals[1:], strict=True):
            y, state = layer(packing.packed(x))
            last = hidden(state)[0]
            x = residual(x, y.data)
        return x, last

    def _nothing(self, x: Tensor, rows: int) -> UserState:
        empty = x.new_zeros(1, rows, x.shape[1])
        return (empty, empty) if self.ahead.parts == 2 else empty


class Decoder(nn.Module):
    """Says the translation: a first layer that looks at the source between its two cells; all others read
    what it has seen with their second cell, so that they need no attention of their own."""

    def __init__(
        self, cell: Cell, width: int, layers: int, heads: int, norm: str | None, dropout: float
    ) -> None:
        super().__init__()
        offset = norm == "layer"
        self.first = AttentiveRecurrence(cell(), cell(), width, heads, norm, offset)
        self.layers = nn.ModuleList(TwoCells(cell(), cell()) for _ in range(layers - 1))
        self.residuals = nn.ModuleList(Residual(width, norm, dropout) for _ in range(layers))
        self.parts = self.first.lower.parts
        self.begin = nn.ModuleList(
            Affine(width, self.parts * width, norm=norm, offset=offset) for _ in range(layers)
        )
        self.readout = Affine(2 * width, width, norm=norm, offset=offset)
        self.dropout = Dropout(dropout)

    def states(self, last: Tensor) -> list[UserState]:
        """What the layers begin with, of the encoder's last states ``[B, H]``."""
        found: list[UserState] = []
        for begin in self.begin:
            parts = begin(last).unsqueeze(0).chunk(self.parts, -1)  # of [1, B, H]
            found.append(parts[0] if len(parts) == 1 else (parts[0], parts[1]))
        return found

    def forward(
        self, x: Tensor, sizes: Sequence[int], memory: Memory, states: Sequence[UserState]
    ) -> tuple[Tensor, list[Tensor]]:
        """Read packed inputs ``[M, H]``; returns what to say at each, ``[M, H]``, and for each step the
        weights with which the source was looked at, ``[rows, heads, S]``."""
        walked = self.first(x, sizes, memory, states[0])
        x = self.residuals[0](x, walked.output)
        for layer, residual, state in zip(self.layers, self.residuals[1:], states[1:], strict=True):
            x = residual(x, layer(x, walked.context, sizes, state)[0])
        return self._read(x, walked.context), walked.weights

    def step(self, x: Tensor, memory: Memory, states: Sequence[UserState]) -> tuple[Tensor, list[UserState]]:
        """Read one input of each row, ``[B, H]``; returns what to say, ``[B, H]``, and the new states."""
        projected = self.first.lower.project(x)
        assert isinstance(projected, Tensor)
        state, context, _ = self.first.step(projected, states[0], memory)
        found = [state]
        x = self.residuals[0](x, hidden(state)[0])
        for layer, residual, before in zip(self.layers, self.residuals[1:], states[1:], strict=True):
            assert isinstance(layer, TwoCells)
            found.append(layer.step(x, context, before))
            x = residual(x, hidden(found[-1])[0])
        return self._read(x, context), found

    def _read(self, x: Tensor, context: Tensor) -> Tensor:
        found: Tensor = self.dropout(torch.tanh(self.readout(torch.cat([x, context], -1))))
        return found


@dataclass(frozen=True)
class Opened:
    """Sentences that have been read, ready to be translated: what the decoder looks at, one sentence behind
    the other, their lengths, and what its layers begin with."""

    keys: Tensor  # [N, H]
    values: Tensor  # [N, H]
    lengths: tuple[int, ...]
    states: list[UserState]

    def memory(self, rows: Sequence[int]) -> Memory:
        """What some of the sentences look like to the decoder, which may have one several times."""
        lengths = [self.lengths[row] for row in rows]
        starts = torch.tensor([0, *lengths]).cumsum(0).to(self.keys.device)
        keys, values = (
            torch.cat([parts[row] for row in rows])
            for parts in (self.keys.split(self.lengths), self.values.split(self.lengths))
        )
        return open_memory(keys, values, starts, max(lengths))


class Translator(nn.Module):
    """Encoder, attention and decoder; the target's vectors are also those of the softmax.

    Args:
        sources: how many pieces of the source language have a number.
        targets: the same of the target language.
    """

    def __init__(self, config: MTConfig, sources: int, targets: int) -> None:
        super().__init__()
        width, norm = config.hidden, None if config.norm == "none" else config.norm

        def cell() -> Unit:
            return hidden_biased_unit(config.unit, width, width, norm)

        self.source, self.target = nn.Embedding(sources, width), nn.Embedding(targets, width)
        self.common = nn.Parameter(torch.empty(width))  # is added to the vectors of both languages
        self.encoder = Encoder(cell, width, config.encoder_layers, norm, config.dropout)
        self.decoder = Decoder(cell, width, config.decoder_layers, config.heads, norm, config.dropout)
        self.dropout = Dropout(config.dropout)
        self._begin(0.08 * math.sqrt(1024 / width))

    def _begin(self, bound: float) -> None:
        """Draw the first weights as the released code does, biases and offsets 0.

        Its bound is 0.08 at the paper's width of 1,024; a narrower model needs larger ones to begin to learn.
        """
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            elif not any(part in name for part in ("norm", "scale", "offset")):
                nn.init.uniform_(parameter, -bound, bound)

    def forward(self, batch: PairBatch) -> Tensor:
        """Return the scores of all pieces that may come at each place of the translations, ``[M, types]``."""
        return self.scores(self.read(batch)[0])

    def loss(self, batch: PairBatch, smoothing: float) -> Tensor:
        """Return the mean over sentences of the means over their pieces."""
        table, sentences = self.target.weight, len(batch.target.lengths)
        weights = 1 / (sentences * batch.lengths.to(table.dtype))  # [M]
        return smoothed_softmax_loss(self.read(batch)[0], table, batch.labels, smoothing, weights)[0]

    @torch.no_grad()
    def losses(self, batch: PairBatch) -> Tensor:
        """Return the negative log-probability of every piece of the translations, ``[M]``."""
        table = self.target.weight
        any_weights = table.new_ones(len(batch.labels))  # of a sum that nobody asks for
        return smoothed_softmax_loss(self.read(batch)[0], table, batch.labels, 0.0, any_weights)[1]

    def read(self, batch: PairBatch) -> tuple[Tensor, list[Tensor]]:
        """Return what the decoder would say at each place of the translations, ``[M, H]``, and for each step
        the weights with which the sources were looked at, ``[rows, heads, S]``."""
        source, sizes = batch.source, batch.target.batch_sizes.tolist()
        states, last = self._encode(source)  # [N, H], [B, H]
        memory = self.decoder.first.open(states.index_select(0, source.memory), source.starts, source.longest)
        first = self.target.weight.new_zeros(sizes[0], self.target.embedding_dim)
        x = self.dropout(torch.cat([first, self.target(batch.inputs) + self.common]))  # [M, H]
        return self.decoder(x, sizes, memory, self.decoder.states(last.index_select(0, batch.target.order)))  # type: ignore[no-any-return]

    def scores(self, said: Tensor) -> Tensor:
        """The scores of all pieces, ``[..., types]``, of what the decoder says, ``[..., H]``."""
        return F.linear(said, self.target.weight)

    def open(self, batch: SourceBatch) -> Opened:
        """Read sentences that are to be translated."""
        states, last = self._encode(batch)
        values = states.index_select(0, batch.memory)  # [N, H]
        lengths = tuple(batch.packing.lengths.tolist())
        return Opened(self.decoder.first.keys(values), values, lengths, self.decoder.states(last))

    def step(
        self, tokens: Tensor | None, memory: Memory, states: Sequence[UserState]
    ) -> tuple[Tensor, list[UserState]]:
        """Go one piece further; returns the scores of what may come next, ``[B, types]``, and the new states.

        Args:
            tokens: the latest pieces ``[B]``; None before the first.
            memory: the sentences that they translate.
            states: of all layers.
        """
        if tokens is None:
            x = memory.values.new_zeros(hidden(states[0]).shape[1], self.target.embedding_dim)
        else:
            x = self.target(tokens) + self.common
        said, states = self.decoder.step(self.dropout(x), memory, states)
        return self.scores(said), states

    def _encode(self, batch: SourceBatch) -> tuple[Tensor, Tensor]:
        return self.encoder(  # type: ignore[no-any-return]
            self.dropout(self.source(batch.tokens) + self.common), batch
        )


def count(config: MTConfig, types: int) -> int:
    """Count parameters as the paper does: all of them, with so many types in both languages together."""
    with torch.device("meta"):
        model = Translator(config, types // 2, types - types // 2)
    return sum(parameter.numel() for parameter in model.parameters())
