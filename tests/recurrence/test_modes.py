"""What torch is doing to us, asked in one place."""

import re
from pathlib import Path

import pytest
import torch
from recurrence.cases import here
from torch.autograd import forward_ad

import lrn
from lrn.recurrence import modes


def test_nothing_is_at_work():
    assert modes.plain(torch.zeros(2))
    with torch.no_grad():
        assert modes.plain(torch.zeros(2))


def test_autocast():
    """Of the tensor's own device; on one that autocast does not know it is off."""
    with torch.autocast(here.device, torch.bfloat16):
        assert modes.autocast(torch.zeros(2))
        assert not modes.plain(torch.zeros(2))
        assert not modes.autocast(torch.zeros(2, device="meta"))
    assert not modes.autocast(torch.zeros(2))


def test_transforms():
    seen = []

    def look(x):
        seen.append((modes.transformed(), modes.plain(x), modes.readable(x)))
        return x.sum()

    torch.func.grad(look)(torch.zeros(2))
    look(torch.zeros(2, device="cpu"))
    assert seen == [(True, False, False), (False, True, True)]


def test_forward_mode():
    with forward_ad.dual_level():
        assert modes.forward_mode()
        assert not modes.plain(torch.zeros(2))
    assert not modes.forward_mode()


def test_compiling():
    assert not modes.compiling()
    compiled = torch.compile(lambda x: x + modes.compiling(), fullgraph=True, backend="eager")
    assert compiled(torch.zeros(1)).item() == 1
    torch._dynamo.reset()


@pytest.mark.parametrize("room", ["recurrence", "units"])
def test_private_calls_live_in_modes(room):
    """A name that torch keeps to itself may change with any release: there is one file to look at then."""
    private = re.compile(r"torch(\.\w+)*\._[a-z]|\bforward_ad\._|\b_dynamo")
    for path in (Path(lrn.__file__).parent / room).rglob("*.py"):
        if path.name != "modes.py":
            assert not private.findall(path.read_text()), path
