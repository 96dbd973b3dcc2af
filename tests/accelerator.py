"""A device that is not the CPU, for tests on a machine that has no other.

torch has one that lives in Python: with fake tensors, every tensor on ``accel:0`` has a shape, a type and a
device, but no numbers. Whatever runs there has mixed no devices and has not looked at a number on the way:

- an operation on tensors of two devices raises (a single CPU number beside them is allowed, as everywhere);
- reading a number back (``item()``, ``tolist()``, ``if tensor``, ``nonzero``) raises, most often one of
  ``READ_BACK``.

What belongs to the host, lengths for example, is made before: inside, new CPU tensors have no numbers either.

To torch the device is there for good, and autograd must know of it before it runs for the first time. So
tests marked ``accelerator`` run in a process of their own: ``tests/test_accelerator.py`` starts it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils import backend_registration

from lrn.text.batches import Batch

VARIABLE = "LRN_TESTS_ON_ACCELERATOR"
THERE = VARIABLE in os.environ  # whether this process has the device
READ_BACK = (DataDependentOutputException, DynamicOutputShapeException)


T = TypeVar("T")


class _Module(backend_registration._DummyBackendModule):
    """What torch asks of a device: this one has no random numbers to save, and knows autocast."""

    def device_count(self) -> int:
        return 0

    def get_rng_state(self, device: object = None) -> Tensor:
        return torch.empty(0)

    def set_rng_state(self, state: Tensor, device: object = None) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


class _Mode(FakeTensorMode):
    avoid_device_init = True  # or constants of the host would be moved to the device for real


@contextmanager
def accelerator() -> Iterator[torch.device]:
    """Inside, tensors can be made on the device that comes with it, and moved to it."""
    with _Mode(allow_non_fake_inputs=True):  # what stays on the host is real
        yield DEVICE


@contextmanager
def elsewhere() -> Iterator[Callable[[T], T]]:
    """The same with a function that takes tensors and batches of the host to the device.

    Models are best made there, ``with DEVICE``. What runs must run without that: it would also hide what code
    makes without saying where.
    """
    mode = _Mode(allow_non_fake_inputs=True)

    def move(value: T) -> T:
        if isinstance(value, Batch):
            return value._changed(mode.from_tensor).to(DEVICE)
        assert isinstance(value, Tensor)
        return mode.from_tensor(value).to(DEVICE)

    with mode:
        yield move


def _gru_cell(
    gates: Tensor, hidden_gates: Tensor, h: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(h), h.new_empty(h.shape[0], 5 * h.shape[1])


def _gru_cell_backward(grad: Tensor, workspace: Tensor, bias: bool) -> tuple[Tensor | None, ...]:
    batch, hidden = grad.shape
    gates = [grad.new_empty(batch, 3 * hidden) for _ in range(2)]
    biases = [grad.new_empty(3 * hidden) if bias else None for _ in range(2)]
    return *gates, torch.empty_like(grad), *biases


def _register() -> torch.library.Library:
    backend_registration._setup_privateuseone_for_python_backend("accel", _Module())
    # The one operation used here whose shapes torch has not told to fake tensors.
    library = torch.library.Library("aten", "IMPL", "Meta")
    library.impl("_thnn_fused_gru_cell", _gru_cell)
    library.impl("_thnn_fused_gru_cell_backward", _gru_cell_backward)
    return library


if THERE and torch._C._get_privateuse1_backend_name() != "accel":  # however often this is imported
    _registered = _register()  # kept, since it ends with it
DEVICE = torch.device("accel", 0) if THERE else torch.device("meta")
