"""The ops, defined here in Python: an engine implements them, and needs no other one to exist."""

from __future__ import annotations

import torch

from lrn.recurrence.schemas import SCHEMAS

library = torch.library.Library("lrn", "DEF")
"""What is registered through it ends with it, so it is kept for as long as Python runs."""

for _schema in SCHEMAS:
    try:
        library.define(_schema)
    except RuntimeError as error:
        raise ImportError(
            "the ops of lrn are there already: this process has loaded liblrn.so, "
            "which is for programs that do not import lrn"
        ) from error
