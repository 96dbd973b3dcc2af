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
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from lrn.text.batches import Batch

if torch._C._get_privateuse1_backend_name() != "accel":
    _setup_privateuseone_for_python_backend("accel")

DEVICE = torch.device("accel:0")

T = TypeVar("T")


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

    with mode:
        yield move
