"""A device that is not the CPU, for tests on a machine that has no other.

torch has one that lives in Python: with fake tensors, every tensor on ``accel:0`` has a shape, a type and a
device, but no numbers. Whatever runs there has mixed no devices and has not looked at a number on the way:

- an operation on tensors of two devices raises (a single CPU number beside them is allowed, as everywhere);
- reading a number back (``item()``, ``tolist()``, ``if tensor``, ``nonzero``) raises, most often one of
  ``READ_BACK``.

What belongs to the host, lengths for example, is made before: inside, new CPU tensors have no numbers either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils import backend_registration

READ_BACK = (DataDependentOutputException, DynamicOutputShapeException)


@contextmanager
def accelerator() -> Iterator[torch.device]:
    """Inside, tensors can be made on the device that comes with it, and moved to it."""
    _register()
    with _Mode(allow_non_fake_inputs=True):
        yield torch.device("accel", 0)


class _Mode(FakeTensorMode):
    avoid_device_init = True  # or constants of the host would be moved to the device for real


@cache
def _register() -> torch.library.Library:
    backend_registration._setup_privateuseone_for_python_backend("accel")
    # The one operation used here whose shapes torch has not told to fake tensors.
    library = torch.library.Library("aten", "IMPL", "Meta")
    library.impl("_thnn_fused_gru_cell", _gru_cell)
    library.impl("_thnn_fused_gru_cell_backward", _gru_cell_backward)
    return library


def _gru_cell(
    gates: Tensor, hidden_gates: Tensor, h: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(h), h.new_empty(h.shape[0], 5 * h.shape[1])


def _gru_cell_backward(grad: Tensor, workspace: Tensor, bias: bool) -> tuple[Tensor | None, ...]:
    batch, hidden = grad.shape
    gates = [grad.new_empty(batch, 3 * hidden) for _ in range(2)]
    biases = [grad.new_empty(3 * hidden) if bias else None for _ in range(2)]
    return *gates, torch.empty_like(grad), *biases
