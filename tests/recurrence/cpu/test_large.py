"""Tensors of more than 2^31 elements: offsets are 64 bits wide."""

import os
from pathlib import Path

import pytest
import torch
from recurrence.cases import NAMES, Case, assert_equal, call

GIB = 2**30


def available():
    """Bytes of memory that can still be had, by the system and by a container's limit; 0 if nobody says."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0
    for limit in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        if limit.exists() and limit.read_text().strip().isdigit():
            free = min(free, int(limit.read_text()))
    return free


def far_apart(values):
    """The same numbers, each step 2^31 elements from the one before; what lies between is never touched."""
    stride = 2**31 + 24
    room = torch.empty(stride * (values.shape[0] - 1) + values[0].numel(), dtype=values.dtype)
    return room.as_strided(values.shape, (stride, *values.stride()[1:])).copy_(values)


@pytest.mark.skipif(available() < 10 * GIB, reason="needs 5 GB of address space that the system will lend")
@pytest.mark.parametrize("cell", NAMES)
def test_strides_beyond_32_bits(cell):
    """In x, reset, memory and the incoming gradient, forward and backward."""
    case = Case(cell, 2, 3, 9, "both", reset=True, dtype=torch.bfloat16)
    x, state, weight, _, _, reset, *how = case.positional()
    given, above = (x, state, weight, None, None, reset, *how), case.gradients()
    expected = call(given, above)
    assert_equal(call((far_apart(x), *given[1:]), above), expected)
    assert_equal(call(given, above | {"output": far_apart(above["output"])}), expected)
    assert_equal(call((x, state, weight, None, None, far_apart(reset), *how), above), expected)
    kept = expected["memory"] if cell == "sru" else expected["output"]
    args = (above["output"], above["final"], x, state, weight, far_apart(kept), None, None, reset, *how)
    assert_equal({"x": torch.ops.lrn.scan_backward(*args)[0]}, {"x": expected["grad_x"]})


@pytest.mark.slow
@pytest.mark.skipif(available() < 10 * GIB, reason="writes 4.3 GB")
def test_output_beyond_32_bits():
    """An output of 2^31 elements and some; x is one step, seen over and over.

    Walked backward, the last steps of a long sequence are those of a short one, bit for bit.
    """
    batch, steps, hidden = 2, 2**20 + 5, 2**10
    one_step = torch.randn(batch, 1, 1, 1, hidden, dtype=torch.bfloat16)
    state = torch.zeros(1, 1, batch, hidden, dtype=torch.bfloat16)
    how = (None, None, None, None, "elrn_identity", "reverse", True)
    x = one_step.expand(batch, steps, 1, 1, hidden)
    assert x.numel() > 2**31
    output, _, final = torch.ops.lrn.scan(x, state, *how)
    short, _, _ = torch.ops.lrn.scan(x[:, :7], state, *how)
    assert torch.equal(output[:, -7:], short)
    assert torch.equal(output[:, 0], final[0, 0])
