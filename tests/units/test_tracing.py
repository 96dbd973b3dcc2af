"""Tracers that cannot look inside a unit: torch.fx makes it a node, torch.jit says in a line what to use."""

import pytest
import torch
from helpers import assert_same
from torch import nn

import lrn
from lrn.units.unit import hidden

EXPORT = r"use torch\.export\.export, whose graph runs any length and batch$"

every_unit = pytest.mark.parametrize("name", lrn.UNITS)


class Model(nn.Module):
    """A unit between other modules, with a state and lengths."""

    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(lrn.make_unit(name, 3, 4, num_layers=2))
        self.head = nn.Linear(4, 2)

    def forward(self, x, state, lengths):
        output, state = self.body[0](x, state, lengths=lengths)
        return self.head(output), state


class Step(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.unit = lrn.make_unit(name, 3, 4)

    def forward(self, x):
        return self.unit.step(x)[0]


@every_unit
def test_symbolic_trace(name):
    """A call is one node, whose module is the unit itself: it runs any length and batch, and trains."""
    model = Model(name)
    traced = torch.fx.symbolic_trace(model)
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["body.0", "head"]
    assert isinstance(traced.get_submodule("body.0"), type(model.body[0]))
    for steps, batch in ((5, 2), (3, 4)):
        x, lengths = torch.randn(steps, batch, 3), torch.tensor([steps] * (batch - 1) + [1])
        _, state = model.body[0](torch.randn(2, batch, 3))
        assert_same(traced(x, state, lengths), model(x, state, lengths), atol=0)
    output, state = traced(x, state, lengths)
    (output.sum() + hidden(state).sum()).backward()
    assert traced.get_parameter("body.0.weight_ih_l1").grad.abs().sum() > 0


def test_symbolic_trace_of_names_and_defaults():
    """Keywords stay keywords, nn.LSTM's own name for the state among them; what is not given is not there."""

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.unit = lrn.LRN(3, 4)

        def forward(self, x, h):
            return self.unit(x, hx=h)[1]

    traced = torch.fx.symbolic_trace(Named())
    (node,) = (node for node in traced.graph.nodes if node.op == "call_module")
    assert list(node.kwargs) == ["hx"]
    assert len(node.args) == 1


@every_unit
def test_symbolic_trace_of_a_part(name):
    """A unit alone is no module with a node in it, and a step no module."""
    for traced in (lrn.make_unit(name, 3, 4), Step(name)):
        with pytest.raises(
            TypeError, match=rf"^{name.upper()}: torch\.fx\.symbolic_trace takes calls of a whole .*{EXPORT}"
        ):
            torch.fx.symbolic_trace(traced)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@every_unit
def test_script(name):
    for scripted in (lrn.make_unit(name, 3, 4), Model(name)):
        with pytest.raises(TypeError, match=rf"^{name.upper()}: torch\.jit\.script does not .*{EXPORT}"):
            torch.jit.script(scripted)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@every_unit
def test_trace(name):
    unit = lrn.make_unit(name, 3, 4)
    x, (_, state) = torch.randn(5, 2, 3), unit(torch.randn(1, 2, 3))
    calls = (
        (unit, (x,)),
        (Step(name), (x[0],)),
        (lambda x_t: unit.step(x_t, state)[0], (x[0],)),
        (lambda x: unit.recur(unit.project(x))[0], (x,)),
    )
    for traced, given in calls:
        with pytest.raises(TypeError, match=rf"^{name.upper()}: torch\.jit\.trace does not .*{EXPORT}"):
            torch.jit.trace(traced, given)
    unit(x)  # and afterwards all is as before
