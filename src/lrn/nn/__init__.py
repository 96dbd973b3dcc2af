"""Parts that more than one task uses."""

from lrn.nn.dropout import LockedDropout, RowDropout
from lrn.nn.softmax import MixtureOfSoftmaxes
from lrn.nn.weight_drop import WeightDrop, drop_weights, one_mask

__all__ = [
    "LockedDropout",
    "MixtureOfSoftmaxes",
    "RowDropout",
    "WeightDrop",
    "drop_weights",
    "one_mask",
]
