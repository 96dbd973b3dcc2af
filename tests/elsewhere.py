"""A device that is not there: tensors on it have shapes and a place, and no numbers.

Whatever mixes tensors of two devices, or would have to read a number back, raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration

from lrn.text.batches import Batch

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


class _Hook(backend_registration._DummyPrivateUse1Hook):
    """The device stays with the process, so that whoever does not use it must not find it."""

    in_use = False

    def is_available(self) -> bool:
        return _Hook.in_use


if torch._C._get_privateuse1_backend_name() != "accel":  # a process has one, however often this is imported
    backend_registration._setup_privateuseone_for_python_backend("accel", _Module(), _Hook())
DEVICE = torch.device("accel:0")


@contextmanager
def elsewhere() -> Iterator[Callable[[T], T]]:
    """A function that takes tensors and batches to the device.

    Models are best made there, ``with DEVICE``. What runs must run without that: it would also hide what code
    makes without saying where.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)  # what stays on the host is real

    def move(value: T) -> T:
        if isinstance(value, Batch):
            return value._changed(mode.from_tensor).to(DEVICE)
        assert isinstance(value, Tensor)
        return mode.from_tensor(value).to(DEVICE)

    _Hook.in_use = True
    try:
        with mode:
            yield move
    finally:
        _Hook.in_use = False
