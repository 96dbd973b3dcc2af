"""Every kernel compiles for every GPU it should run on, keeps to registers, and reads and writes what it
must.
"""

import os

import pytest
import torch
from recurrence.cases import NAMES

from lrn.recurrence import dispatch
from lrn.recurrence.triton.ahead import PASSES, TARGETS, TYPES, Kernel, used

pytestmark = pytest.mark.skipif(dispatch.INTERPRETED, reason="the interpreter compiles nothing")

# One type for each cell and target, so that all types are met everywhere; LRN_ALL_KERNELS=1 takes all of
# them.
ALL = "LRN_ALL_KERNELS" in os.environ
GIVEN = ((), ("lengths", "reset"), ("lengths", "first_row", "reset"))


def kernels():
    for n, cell in enumerate(NAMES):
        for t, target in enumerate(TARGETS):
            for k, dtype in enumerate(TYPES):
                if ALL or k == (n + t) % len(TYPES):
                    for p, walk in enumerate(PASSES):
                        given = GIVEN if ALL else [GIVEN[(n + t + p) % len(GIVEN)]]
                        yield from (Kernel(walk, cell, dtype, target, options) for options in given)


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """Nothing comes from a cache of another day's kernels."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("kernel", list(kernels()), ids=str)
def test_compiles_and_does_not_spill(kernel):
    use = used(kernel)
    assert use.spilled == 0
    assert use.shared == 0, "a row's columns know nothing of each other: there is nothing to share"
    assert 0 < use.registers <= 255


def test_scalars_in_lanes_are_not_in_memory():
    """The kernel with most arguments and the widest numbers: what AMD calls a spill stays in registers."""
    use = used(Kernel("backward", "sru", torch.float64, "gfx942", GIVEN[1]))
    assert use.spilled == 0
    assert 0 < use.lanes <= 10


@pytest.mark.parametrize("elements", [1, 1 << 16, 1 << 18])
@pytest.mark.parametrize("walk", PASSES)
def test_every_plan(walk, elements):
    """The kernel with the most to carry, in every way that work is cut up."""
    assert used(Kernel(walk, "sru", torch.float32, "sm_90", GIVEN[1], elements)).spilled == 0


@pytest.mark.parametrize("walk", PASSES)
def test_loads_are_wide(walk):
    """Where there is much to do a thread reads and writes 16 bytes at once."""
    ptx = Kernel(walk, "lrn_tanh").compiled().asm["ptx"]
    assert "ld.global.v4.b32" in ptx
    assert "st.global.v4.b32" in ptx
