"""Lightweight recurrent networks for PyTorch.

>>> import torch, lrn
>>> rnn = lrn.LRN(input_size=300, hidden_size=256, num_layers=2, bidirectional=True)
>>> output, h_n = rnn(torch.randn(50, 8, 300))
>>> output.shape
torch.Size([50, 8, 512])
"""

from lrn.recurrence import engine, engines
from lrn.swap import replace
from lrn.units import ATR, ELRN, GLRN, GRU, LRN, LSTM, OLRN, SRU, UNITS, Unit, make_unit

__version__ = "0.1.0"

__all__ = [
    "ATR",
    "ELRN",
    "GLRN",
    "GRU",
    "LRN",
    "LSTM",
    "OLRN",
    "SRU",
    "UNITS",
    "Unit",
    "__version__",
    "engine",
    "engines",
    "make_unit",
    "replace",
]
