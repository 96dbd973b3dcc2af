"""The contestants: each a module that maps ``x [T, B, H]`` to an output, at one width."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

import lrn
from lrn.checks import install

FLOOR = "nn.Linear"  # the projection alone: nothing that projects can be faster
LOOP = "lrn, Python loop"
SRU_PACKAGE = "sru 2.6.0"


class FirstOutput(nn.Module):
    """A recurrent layer whose state is dropped."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.rnn(x)[0]
        return output


class PythonLoop(FirstOutput):
    """LRN as one would write it in plain torch: a Python loop over time."""

    def forward(self, x: Tensor) -> Tensor:
        with lrn.engine("torch"):
            return super().forward(x)


def _sru_package(width: int) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sru = importlib.import_module("sru")  # compiles itself with g++ at first import
    return FirstOutput(sru.SRU(width, width, num_layers=1))


PEERS: dict[str, Callable[[int], nn.Module]] = {
    "lrn": lambda h: FirstOutput(lrn.LRN(h, h)),
    "olrn": lambda h: FirstOutput(lrn.OLRN(h, h)),
    "sru": lambda h: FirstOutput(lrn.SRU(h, h)),
    "atr": lambda h: FirstOutput(lrn.ATR(h, h)),
    "nn.LSTM": lambda h: FirstOutput(nn.LSTM(h, h)),
    "nn.GRU": lambda h: FirstOutput(nn.GRU(h, h)),
    LOOP: lambda h: PythonLoop(lrn.LRN(h, h)),
    SRU_PACKAGE: _sru_package,
    FLOOR: lambda h: nn.Linear(h, 3 * h),
}


def available(names: list[str]) -> tuple[list[str], list[str]]:
    """The peers that can run here, and a line for each that cannot."""
    notes = []
    if SRU_PACKAGE in names:
        os.environ.setdefault("CUDA_HOME", "")  # its build asks for it even without a GPU
        if importlib.util.find_spec("sru") is None:
            notes.append(f"{SRU_PACKAGE} left out: not installed ({install('peers')})")
        else:
            try:
                _sru_package(8)(torch.zeros(2, 1, 8))
            except Exception as error:  # whatever its build script runs into
                first = str(error).strip().splitlines()[:1]
                notes.append(f"{SRU_PACKAGE} left out: {type(error).__name__} {''.join(first)}")
    if notes:
        names = [name for name in names if name != SRU_PACKAGE]
    return names, notes
