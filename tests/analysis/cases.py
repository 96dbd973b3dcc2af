"""Units with weights drawn at random, one sequence each, in float64."""

import torch

import lrn

STEPS, FEATURES, HIDDEN = 12, 5, 7
UNITS = {
    "lrn": lambda: lrn.LRN(FEATURES, HIDDEN, dtype=torch.float64),
    "lrn, identity": lambda: lrn.LRN(FEATURES, HIDDEN, activation="identity", dtype=torch.float64),
    "olrn": lambda: lrn.OLRN(FEATURES, HIDDEN, dtype=torch.float64),
    "glrn": lambda: lrn.GLRN(FEATURES, HIDDEN, dtype=torch.float64),
    "glrn, identity": lambda: lrn.GLRN(FEATURES, HIDDEN, activation="identity", dtype=torch.float64),
    "elrn": lambda: lrn.ELRN(FEATURES, HIDDEN, dtype=torch.float64),
    "elrn, identity": lambda: lrn.ELRN(FEATURES, HIDDEN, activation="identity", dtype=torch.float64),
    "sru": lambda: lrn.SRU(FEATURES, HIDDEN, dtype=torch.float64),
}
LINEAR = ["lrn, identity", "olrn", "glrn, identity", "elrn, identity", "sru"]


def problem(name, steps=STEPS, scale=1.0):
    torch.manual_seed(1)
    unit = UNITS[name]()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.uniform_(-1, 1)
    return unit, scale * torch.randn(steps, FEATURES, dtype=torch.float64)
