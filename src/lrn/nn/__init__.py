"""Parts that more than one task uses."""

from lrn.nn.crf import CRF
from lrn.nn.dropout import LockedDropout, RowDropout, WordDropout
from lrn.nn.initial import glorot_fused, keep_at_first
from lrn.nn.pooling import AttentivePooling
from lrn.nn.softmax import MixtureOfSoftmaxes
from lrn.nn.weight_drop import WeightDrop, drop_weights, one_mask
from lrn.nn.word_input import SpellingPool, SpellingRNN, WordInput
from lrn.nn.words import FrozenWords

__all__ = [
    "CRF",
    "AttentivePooling",
    "FrozenWords",
    "LockedDropout",
    "MixtureOfSoftmaxes",
    "RowDropout",
    "SpellingPool",
    "SpellingRNN",
    "WeightDrop",
    "WordDropout",
    "WordInput",
    "drop_weights",
    "glorot_fused",
    "keep_at_first",
    "one_mask",
]
