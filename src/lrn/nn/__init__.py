"""Parts that more than one task uses."""

from lrn.nn.affine import Affine
from lrn.nn.attentive import AttentiveRecurrence
from lrn.nn.crf import CRF
from lrn.nn.dropout import LockedDropout, RowDropout, WordDropout
from lrn.nn.hidden_bias import hidden_biased_unit
from lrn.nn.initial import glorot_fused, keep_at_first
from lrn.nn.loss import smoothed_loss, smoothed_losses
from lrn.nn.pooling import AttentivePooling, SelfPooling
from lrn.nn.softmax import MixtureOfSoftmaxes
from lrn.nn.two_cells import TwoCells
from lrn.nn.weight_drop import WeightDrop, drop_weights, one_mask
from lrn.nn.word_input import SpellingPool, SpellingRNN, WordInput
from lrn.nn.words import FrozenWords

__all__ = [
    "CRF",
    "Affine",
    "AttentivePooling",
    "AttentiveRecurrence",
    "FrozenWords",
    "LockedDropout",
    "MixtureOfSoftmaxes",
    "RowDropout",
    "SelfPooling",
    "SpellingPool",
    "SpellingRNN",
    "TwoCells",
    "WeightDrop",
    "WordDropout",
    "WordInput",
    "drop_weights",
    "glorot_fused",
    "hidden_biased_unit",
    "keep_at_first",
    "one_mask",
    "smoothed_loss",
    "smoothed_losses",
]
