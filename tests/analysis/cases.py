"""Every elementwise unit with weights drawn at random, one sequence each, in float64."""

import torch
from helpers import VARIANTS

import lrn
from lrn.units import CLASSES
from lrn.units.bases import ElementwiseUnit

STEPS, FEATURES, HIDDEN = 12, 5, 7
UNITS = [name for name, (unit, _) in VARIANTS.items() if issubclass(CLASSES[unit], ElementwiseUnit)]


def make(name):
    unit, own = VARIANTS[name]
    return lrn.make_unit(unit, FEATURES, HIDDEN, dtype=torch.float64, **own)


LINEAR = [name for name in UNITS if getattr(make(name), "activation", "identity") == "identity"]


def problem(name, steps=STEPS, scale=1.0):
    torch.manual_seed(1)
    unit = make(name)
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.uniform_(-1, 1)
    return unit, scale * torch.randn(steps, FEATURES, dtype=torch.float64)
