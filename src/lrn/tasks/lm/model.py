"""The language model: word vectors, recurrent layers, a mixture of softmaxes over the tied word vectors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lrn.nn import LockedDropout, MixtureOfSoftmaxes, RowDropout, drop_weights, glorot_fused, one_mask
from lrn.tasks.lm.config import LMConfig
from lrn.units import make_unit, map_state
from lrn.units.unit import Unit

State = list[Any]  # one layer's state each: a tensor, or a pair of them


@dataclass
class Features:
    """The output of the recurrent layers on a segment, ``[T, B, last]``, before and after dropout."""

    raw: Tensor
    dropped: Tensor


class LanguageModel(nn.Module):
    """A model that predicts the next word from all words so far.

    >>> import torch
    >>> model = LanguageModel(LMConfig(embedding=4, hidden=6, last=4), words=10)
    >>> features, state = model(torch.tensor([[1], [2], [3]]))
    >>> model.loss(features, torch.tensor([[2], [3], [4]])).item() > 0
    True
    """

    def __init__(self, config: LMConfig, words: int) -> None:
        super().__init__()
        self.words = words
        self.embedding = nn.Embedding(words, config.embedding)
        nn.init.uniform_(self.embedding.weight, -config.init, config.init)
        self.layers = nn.ModuleList(
            make_unit(config.unit, n, m, residual=config.residual and n == m)
            for n, m in pairwise(config.widths)
        )
        for layer in self.layers:
            assert isinstance(layer, Unit)
            glorot_fused(layer, vectors=1.0)
            if config.drop_weights:
                drop_weights(layer, config.drop_weights)
        self.head = MixtureOfSoftmaxes(
            config.last, config.embedding, words, config.experts, config.drop_latent
        )
        self.drop_words = RowDropout(config.drop_words)
        self.drop_input = LockedDropout(config.drop_input)
        self.drop_hidden = LockedDropout(config.drop_hidden)
        self.drop_output = LockedDropout(config.drop_output)

    def forward(self, text: Tensor, state: State | None = None) -> tuple[Features, State]:
        """Read ``text [T, B]``; returns the features of every position and the state after the last."""
        x = self.drop_input(self.drop_words(text, self.embedding.weight))  # [T, B, embedding]
        after: State = []
        with one_mask():
            for number, layer in enumerate(self.layers):
                if number:
                    x = self.drop_hidden(x)
                x, final = layer(x, state[number] if state else None)  # [T, B, hidden], at last [T, B, last]
                after.append(final)
        return Features(x, self.drop_output(x)), after

    def loss(self, features: Features, target: Tensor) -> Tensor:
        """Return the mean negative log-probability of ``target [T, B]``."""
        return self.head.loss(features.dropped, self.embedding.weight, target)

    def losses(self, features: Features, target: Tensor) -> Tensor:
        """Return the negative log-probability of every word of ``target [T, B]``, without a gradient."""
        return self.head.losses(features.dropped, self.embedding.weight, target)

    def log_probabilities(self, features: Features) -> Tensor:
        """Return the log-probabilities of all words at every position, ``[T, B, words]``."""
        return self.head(features.dropped, self.embedding.weight)  # type: ignore[no-any-return]


def regularisation(features: Features, ar: float, tar: float) -> Tensor:
    """Return activation (AR, dropped output) plus temporal activation regularisation (TAR, raw output)."""
    total = features.raw.new_zeros(())
    if ar:
        total = total + ar * features.dropped.pow(2).mean()
    if tar and features.raw.shape[0] > 1:
        total = total + tar * (features.raw[1:] - features.raw[:-1]).pow(2).mean()
    return total


def detach(state: State) -> State:
    """Return the state as the next segment gets it: no gradient goes back through it."""
    return [map_state(Tensor.detach, layer) for layer in state]


def count(config: LMConfig, words: int) -> int:
    """Count the parameters of the model; the tied matrix counts once."""
    with torch.device("meta"):
        model = LanguageModel(config, words)
    return sum(parameter.numel() for parameter in model.parameters())
