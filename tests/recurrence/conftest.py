"""Every test here runs on every engine of the table, on a device it serves; a new one needs only its line.

Engines that are not here are skipped, and say why. What concerns one engine alone is in a folder of its name.
"""

import pytest
import torch
from recurrence import cases

from lrn.recurrence import dispatch

FAST = tuple(name for name, engine in dispatch.TABLE.items() if engine.devices)
if dispatch.INTERPRETED:  # a process of its own: see triton/test_interpreter.py
    FAST = ("triton",)


@pytest.fixture(autouse=True, scope="module", params=FAST)
def engine(request):
    if request.param in dispatch.MISSING:
        pytest.skip(f"engine {request.param!r} is missing: {dispatch.MISSING[request.param]}")
    needed = getattr(request.module, "OP", "scan")
    if needed not in dispatch.TABLE[request.param].ops:
        pytest.skip(f"engine {request.param!r} runs {needed} by definition")
    with cases.on(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def threads():
    """Whatever a test does to the number of threads ends with it; at least two, so that work is shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
