"""A program: the analysis on a device that computes nothing but watches.

Tensors there are fake, so that whatever mixes devices or reads a value back raises an error. It prints a line
for every unit and function: both names, and the device of the result. It is a program of its own, since the
device stays with the process.

It ends without taking the interpreter down: autograd's threads for the device, which torch starts with the
first backward pass, may still be on their way when the interpreter goes, and then end the process with an
abort.
"""

import os
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration

from lrn import analysis, make_unit
from lrn.units import CLASSES
from lrn.units.bases import ElementwiseUnit

UNITS = [name for name, cls in CLASSES.items() if issubclass(cls, ElementwiseUnit)]
FUNCTIONS = {
    "weights": lambda unit, x: analysis.decompose(unit, x).weights(3),
    "all_weights": lambda unit, x: analysis.decompose(unit, x).all_weights(),
    "mean_weights": lambda unit, x: analysis.decompose(unit, x).mean_weights(),
    "explained": lambda unit, x: analysis.decompose(unit, x).explained(),
    "curves": lambda unit, x: analysis.memory(unit, x).curves,
    "half_life": lambda unit, x: analysis.memory(unit, x).half_life,
    "channel_half_life": lambda unit, x: analysis.memory(unit, x).channel_half_life,
    "back": lambda unit, x: analysis.gradients(unit, x).back(4, 2),
    "norms": lambda unit, x: analysis.gradients(unit, x).norms(),
    "distance_norms": analysis.distance_norms,
}

if __name__ == "__main__":
    backend_registration._setup_privateuseone_for_python_backend("accel")
    with FakeTensorMode():
        for name in UNITS:
            unit, x = make_unit(name, 3, 4, device="accel"), torch.randn(6, 3, device="accel")
            for called, function in FUNCTIONS.items():
                print(name, called, function(unit, x).device)
        for name in ("lstm", "atr"):
            unit = make_unit(name, 3, 4, device="accel")
            print(name, "distance_norms", analysis.distance_norms(unit, x).device)
    sys.stdout.flush()
    os._exit(0)
