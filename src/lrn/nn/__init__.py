"""Parts that more than one task uses."""

from lrn.nn.affine import Affine
from lrn.nn.attentive import AttentiveRecurrence
from lrn.nn.both_ways import BothWays
from lrn.nn.crf import CRF
from lrn.nn.dropout import Dropout, LockedDropout, RowDropout, SequenceDropout, WordDropout
from lrn.nn.gated_attention import GatedAttention
from lrn.nn.hidden_bias import hidden_biased_unit
from lrn.nn.initial import glorot_apart, glorot_fused, keep_at_first
from lrn.nn.linear import Linear
from lrn.nn.loss import smoothed_loss, smoothed_softmax_loss
from lrn.nn.mix import ScalarMix
from lrn.nn.pointer import Pointer, best_spans
from lrn.nn.pooling import AttentivePooling, LockedPooling, SelfPooling
from lrn.nn.reset_gru import ResetGRU
from lrn.nn.softmax import MixtureOfSoftmaxes
from lrn.nn.two_cells import TwoCells
from lrn.nn.weight_drop import WeightDrop, drop_weights, one_mask
from lrn.nn.word_input import SpellingGRU, SpellingPool, SpellingRNN, WordInput
from lrn.nn.words import FrozenWords

__all__ = [
    "CRF",
    "Affine",
    "AttentivePooling",
    "AttentiveRecurrence",
    "BothWays",
    "Dropout",
    "FrozenWords",
    "GatedAttention",
    "Linear",
    "LockedDropout",
    "LockedPooling",
    "MixtureOfSoftmaxes",
    "Pointer",
    "ResetGRU",
    "RowDropout",
    "ScalarMix",
    "SelfPooling",
    "SequenceDropout",
    "SpellingGRU",
    "SpellingPool",
    "SpellingRNN",
    "TwoCells",
    "WeightDrop",
    "WordDropout",
    "WordInput",
    "best_spans",
    "drop_weights",
    "glorot_apart",
    "glorot_fused",
    "hidden_biased_unit",
    "keep_at_first",
    "one_mask",
    "smoothed_loss",
    "smoothed_softmax_loss",
]
