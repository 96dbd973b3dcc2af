"""Every unit with every argument on a device that is not the CPU: devices never mixed, nothing read back."""

from __future__ import annotations

import pytest
import torch
from accelerator import READ_BACK, accelerator
from helpers import tensors
from torch.nn.utils.rnn import PackedSequence

import lrn

pytestmark = pytest.mark.accelerator

T, B, WIDTH, H = 3, 3, 6, 4
# Made here, where CPU tensors have numbers.
LENGTHS = torch.tensor([3, 0, 2])
SHORT = LENGTHS.to(torch.int32)
SIZES = torch.tensor([3, 2, 1])  # packed rows of 3, 2 and 1 steps
RESET = torch.tensor([[False, True, False]] * T)

OPTIONS = {
    "plain": {},
    "norm, no bias": {"norm": "rms", "bias": False},
    "layers, both ways": {"num_layers": 2, "bidirectional": True, "dropout": 0.5},
    "layers, norm, batch first": {"num_layers": 2, "norm": "layer", "batch_first": True},
}
every_unit = pytest.mark.parametrize("name", lrn.UNITS)
every_option = pytest.mark.parametrize("option", OPTIONS)


class World:
    """A unit on the device, and what to give it."""

    def __init__(self, name, option, device):
        self.unit = lrn.make_unit(name, WIDTH, H, device=device, **OPTIONS[option])
        self.device = device

    def input(self, *shape):
        return torch.randn(*shape, device=self.device, requires_grad=True)

    def batch(self):
        return self.input(*((B, T) if self.unit.batch_first else (T, B)), WIDTH)

    def state(self, *batch, layers=None):
        layers = layers or self.unit.num_layers
        parts = [self.input(layers * self.unit.directions, *batch, H) for _ in range(self.unit.parts)]
        return parts[0] if self.unit.parts == 1 else tuple(parts)

    def marks(self):
        marks = RESET.to(self.device)
        return marks.t() if self.unit.batch_first else marks

    def packed(self, *features, ordered=False):
        data = self.input(int(sum(SIZES.tolist())), *features) if features else None
        if data is None:
            data = torch.zeros(int(sum(SIZES.tolist())), dtype=torch.bool, device=self.device)
        order = None if ordered else torch.arange(B, device=self.device).flip(0)
        return PackedSequence(data, SIZES, order, order)

    def learn(self, result, *inputs):
        """All results are on the device, and so are the gradients of everything."""
        found = tensors(result)
        assert {tensor.device for tensor in found} == {self.device}
        leaves = [leaf for value in inputs for leaf in tensors(value)]
        loss = sum(tensor.float().sum() for tensor in found)
        if not loss.requires_grad:  # of nothing but padding, without a state
            return
        wanted = [*leaves, *self.unit.parameters()]
        gradients = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
        assert [(g.device, g.shape) for g in gradients] == [(w.device, w.shape) for w in wanted]


def forward_with(world, **given):
    x, start = world.batch(), world.state(B)
    for state in (None, start):
        world.learn(world.unit(x, state, **given), x, *([] if state is None else [state]))


ROWS = {
    "nothing": lambda world: {},
    "lengths in a list": lambda world: {"lengths": [3, 0, 2]},
    "no rows at all": lambda world: {"lengths": [0, 0, 0]},
    "lengths on the host": lambda world: {"lengths": LENGTHS},
    "short lengths on the host": lambda world: {"lengths": SHORT},
    "lengths on the device": lambda world: {"lengths": LENGTHS.to(world.device)},
    "reset": lambda world: {"reset": world.marks()},
    "reset on the host": lambda world: {"reset": RESET.t() if world.unit.batch_first else RESET},
    "lengths and reset": lambda world: {"lengths": LENGTHS, "reset": world.marks()},
}


@pytest.mark.parametrize("rows", ROWS)
@every_option
@every_unit
def test_forward_and_backward(name, option, rows):
    with accelerator() as device:
        world = World(name, option, device)
        forward_with(world, **ROWS[rows](world))


@pytest.mark.parametrize("ordered", [False, True])
@every_option
@every_unit
def test_packed(name, option, ordered):
    """Packed rows, with and without documents inside, in their own order or sorted."""
    with accelerator() as device:
        world = World(name, option, device)
        start = world.state(B)
        for reset in (None, world.packed(ordered=ordered)):
            x = world.packed(WIDTH, ordered=ordered)
            world.learn(world.unit(x, start, reset=reset), x.data, start)


@every_option
@every_unit
def test_unbatched(name, option):
    with accelerator() as device:
        world = World(name, option, device)
        x, start = world.input(T, WIDTH), world.state()
        world.learn(world.unit(x, start), x, start)


@pytest.mark.parametrize("option", [option for option in OPTIONS if "both ways" not in option])
@every_unit
def test_step(name, option):
    with accelerator() as device:
        world = World(name, option, device)
        x, state = world.input(B, WIDTH), None
        for _ in range(2):
            output, state = world.unit.step(x, state)
        world.learn((output, state), x)


@every_option
@every_unit
def test_halves(name, option):
    """The projection and the walk apart."""
    with accelerator() as device:
        world = World(name, option, device)
        x, start = world.batch(), world.state(B, layers=1)
        world.learn(world.unit.recur(world.unit.project(x), start, lengths=LENGTHS), x, start)


@every_unit
def test_autocast_of_another_device(name):
    """Mixed precision on the CPU changes nothing here."""
    with accelerator() as device:
        world = World(name, "layers, both ways", device)
        with torch.autocast("cpu", torch.bfloat16):
            output, _ = world.unit(world.batch(), lengths=LENGTHS)
        assert output.dtype == torch.float32


@pytest.mark.parametrize("name", ["lrn", "gru"])
def test_wrong_arguments(name):
    """What the host knows is checked; what it does not know is left to the device."""
    with accelerator() as device:
        world = World(name, "plain", device)
        unit, x = world.unit, world.batch()
        with pytest.raises(ValueError, match="must not exceed the input's 3 steps, got 6"):
            unit(x, lengths=[6, 0, 2])
        with pytest.raises(ValueError, match="input is on cpu, the unit's parameters on accel:0"):
            unit(torch.randn(T, B, WIDTH))
        with pytest.raises(ValueError, match="state is on cpu, input on accel:0"):
            unit(x, torch.zeros(1, B, H))


def test_the_device_notices():
    """These tests can fail: a mixture of devices and a number that is read back raise."""
    with accelerator() as device:
        x = torch.ones(3, device=device)
        with pytest.raises(RuntimeError, match="at least two devices, accel:0 and cpu"):
            x + torch.ones(3)
        for read in (torch.Tensor.item, bool, torch.nonzero, lambda x: x[x > 0]):
            with pytest.raises(READ_BACK):
                read(x[:1])
        with pytest.raises(RuntimeError):
            x.tolist()
