"""The names of units, tasks and engines. Nothing here needs torch, so that help and wrong names are quick."""

from __future__ import annotations

UNITS = ("lrn", "olrn", "glrn", "elrn", "atr", "sru", "lstm", "gru")
TASKS = ("lm", "ner", "doc", "nli", "rc", "mt")
ENGINES = ("cpu", "triton", "parallel", "torch")
"""Those that are a device's own first, then those that run everywhere."""

FIRST_TASK = "doc"
"""The task that a comparison takes where none is named."""

COMPARED = "lstm,gru,atr,sru,lrn,olrn"
"""The units that a comparison takes by default."""

MODEL_FILE = ".safetensors"
"""How the name of a file with a model in it ends."""
