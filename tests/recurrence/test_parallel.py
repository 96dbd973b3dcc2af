"""The engine that is parallel in time gives what the definition gives, whatever the gates, and counts its
work.

It runs on any device, so it is not a device's own engine, whose tests these folders hold; and its last bits
depend on how a sequence is cut into windows, which those tests would not allow.
"""

from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence.cases import LAYOUTS, NAMES, UNITS, Case, assert_as_defined, kinds, on, problems, randn, run
from torch.autograd import gradcheck, gradgradcheck

import lrn
from lrn.recurrence import Rows, dispatch, parallel, scan

pytestmark = pytest.mark.skipif(dispatch.INTERPRETED, reason="that process is for another engine")


@pytest.fixture(autouse=True, scope="module")
def engine():
    with on("parallel"):
        yield "parallel"


@pytest.fixture
def short_windows(monkeypatch):
    """Several windows to a sequence, the last one not full."""
    monkeypatch.setattr(parallel, "WINDOW", 4)


@dataclass(frozen=True)
class Gates(Case):
    """A case whose gates are not noise but adversaries, by the name of what they do."""

    gates: str = "noise"

    def inputs(self):
        values = super().inputs()
        x = values["x"]
        time = torch.arange(x.shape[0]).view(-1, *[1] * (x.dim() - 1))
        sign = 1 - 2 * (time % 2).to(x.dtype)
        if self.gates == "saturated":
            x.mul_(1e4)
        elif self.gates == "alternating":  # wide open, then shut
            x.copy_(8 * sign * torch.ones_like(x))
        elif self.gates == "latched":  # the forget gate open all the time: nothing is ever lost
            x[..., 0, :] = 8
        elif self.gates == "ramp":
            x.add_(8 * torch.sin(time / 7))
        return values


# The scan ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [*range(18), 64, 100, 1000])
def test_linear_scan(steps):
    """Against the loop, for every way in which a length falls apart into halves."""
    a, b = randn(steps, 2, 3), randn(steps, 2, 3, seed=1)
    y, expected = torch.zeros(2, 3, dtype=torch.float64), []
    for t in range(steps):
        y = a[t] * y + b[t]
        expected.append(y)
    if steps:
        torch.testing.assert_close(parallel.linear_scan(a, b), torch.stack(expected), rtol=1e-12, atol=1e-12)
    else:
        assert parallel.linear_scan(a, b).shape == (0, 2, 3)


# Equal to the definition --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("cell", NAMES)
@given(data=st.data())
@settings(max_examples=6)
def test_drawn_problems(cell, dtype, data):
    """Any sizes, any layout, any kind of rows, gradients from either result or both."""
    assert_as_defined(data.draw(problems(cell, dtype)))


def test_roundings_do_not_add_up():
    """A trajectory whose slopes are near 1, which hand every error on: float32 alone was off by 1.3e-6."""
    case = Case("elrn_identity", 17, 9, 31, "reverse", batch_first=True, dtype=torch.float32, seed=738593415)
    case = replace(case, layout="apart", above="final")
    exact, ours = run(case, "torch", torch.float64), run(case)
    for name in exact:
        largest = max(1.0, exact[name].abs().max().item()) if exact[name].numel() else 1.0
        torch.testing.assert_close(ours[name].double(), exact[name], rtol=0, atol=2e-7 * largest)


@pytest.mark.parametrize("cell", NAMES)
def test_windows(cell, short_windows):
    """The state goes from window to window, through borders and padding."""
    for case in kinds(cell, steps=19, hidden=7):
        assert_as_defined(case)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cell", ["lrn_tanh", "sru"])
def test_every_layout(cell, layout):
    for case in kinds(cell, layout=layout):
        assert_as_defined(case)


def assert_as_good_as_the_walk(case):
    """In float32 such gates multiply roundings, the definition's too: neither errs much more."""
    exact, ours, walked = run(case, "torch", torch.float64), run(case), run(case, "torch")
    for backward in (False, True):
        these = [name for name in exact if name.startswith("grad_") == backward]
        largest = max(exact[name].abs().max().item() for name in these)
        allowed = max((walked[name] - exact[name]).abs().max().item() for name in these)
        for name in these:
            assert (ours[name] - exact[name]).abs().max() <= max(1e-6 * largest, allowed), name


@pytest.mark.parametrize("gates", ["saturated", "alternating", "latched", "ramp"])
@pytest.mark.parametrize("cell", NAMES)
def test_adversaries(cell, gates):
    """Gates that are shut or open wide, flip at every step, or keep everything: solved, not walked."""
    case = Gates(cell, 100, 2, 5, gates=gates)
    with parallel.effort() as cost:
        assert_as_defined(case)
        assert_as_defined(replace(case, direction="both", rows="lengths", reset=True))
        assert_as_good_as_the_walk(replace(case, dtype=torch.float32))
    if cell.endswith("_tanh"):
        assert cost.walked == 0
        assert max(cost.iterations) <= 12


@pytest.mark.parametrize("cell", NAMES)
def test_rows_with_nothing_in_them(cell):
    for steps, batch in ((0, 3), (4, 0), (0, 0)):
        assert_as_defined(Case(cell, steps, batch, 9, "both", "lengths", reset=True))


# What does not converge -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", NAMES)
def test_what_is_not_solved_is_walked(cell, monkeypatch):
    """With no iterations allowed every window is walked, and nothing else changes."""
    monkeypatch.setattr(parallel, "MOST", 0)
    with parallel.effort() as cost:
        for case in kinds(cell):
            assert_as_defined(case)
    assert cost.walked > 0
    assert not cost.iterations


def test_a_chaotic_cell_is_walked():
    """SRU with large vectors: Newton's method gets nowhere, or far too late; the numbers are right all the
    same.
    """
    case = Case("sru", 400, 2, 8, dtype=torch.float64)
    values = case.inputs()
    values["weight"] = values["weight"] * 40
    results = []
    for engine in ("parallel", "torch"):
        with lrn.engine(engine):
            results.append(scan("sru", values["x"], values["state"], values["weight"], Rows(2))[0])
    torch.testing.assert_close(*results, rtol=0, atol=1e-9)


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_infinities(bad):
    """They are walked, and stay in their columns."""
    case = Case("lrn_identity", 6, 2, 4, reset=True)
    x, state, *_ = case.positional()
    x[2, 1, 0, 2, 3] = bad
    results = []
    for engine in ("parallel", "torch"):
        leaves = [x.clone().requires_grad_(), state.clone().requires_grad_()]
        with lrn.engine(engine):
            output, final = scan("lrn_identity", *leaves, None, case.how())
        gradients = torch.autograd.grad(output.sum() + final.sum(), leaves)
        results.append((output.detach(), final.detach(), *gradients))
    torch.testing.assert_close(*results, rtol=0, atol=1e-12, equal_nan=True)


# Gradients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", NAMES)
def test_gradient_is_the_slope(cell):
    for case in kinds(cell, steps=3, batch=2, hidden=2):
        values = tuple(v.nan_to_num(0).requires_grad_() for v in case.inputs().values())

        def function(x, state, weight=None, case=case):
            return scan(case.cell, x, state, weight, case.how(), case.direction)

        assert gradcheck(function, values, fast_mode=True)
        if case.rows == "lengths":
            assert gradgradcheck(function, values, fast_mode=True)


def test_backward_does_not_iterate():
    """One linear recurrence from the end: nothing is solved."""
    case = Case("lrn_tanh", 50, 2, 4)
    x, state, *_ = case.positional()
    output, final = scan("lrn_tanh", x.requires_grad_(), state, None, case.how())
    with parallel.effort() as cost:
        (output.sum() + final.sum()).backward()
    assert (cost.iterations, cost.walked) == ([], 0)


# Around it --------------------------------------------------------------------------------------------------


def test_it_is_never_the_default():
    assert "parallel" in lrn.engines()
    token = dispatch._chosen.set(None)
    try:
        assert dispatch.choose(torch.device("cpu")) != "parallel"
        assert dispatch.choose(torch.device("meta")) == "torch"
    finally:
        dispatch._chosen.reset(token)


def test_compiled_and_backward_outside_the_block():
    """A graph and a backward pass keep the engine that they began with."""
    torch._dynamo.reset()
    unit, x = lrn.LRN(3, 4, dtype=torch.float64), randn(9, 2, 3).requires_grad_()
    with lrn.engine("parallel"):
        compiled = torch.compile(unit, fullgraph=True, backend="aot_eager")
        output, _ = compiled(x)
    with lrn.engine("torch"), parallel.effort() as cost:
        again, _ = compiled(x)
        expected, _ = unit(x)
        gradients = [torch.autograd.grad(y.sin().sum(), x)[0] for y in (output, expected)]
    assert cost.iterations
    torch.testing.assert_close(again, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)
    torch._dynamo.reset()


@pytest.mark.parametrize("name", UNITS)
def test_per_sample_gradients(name):
    """torch.func goes through it."""
    torch.manual_seed(0)
    unit = lrn.make_unit(name, 3, 5, dtype=torch.float64)
    weights = {n: p.detach() for n, p in unit.named_parameters()}

    def loss(weights, x):
        return torch.func.functional_call(unit, weights, (x,))[0].sin().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), (None, 0))
    samples, results = randn(4, 6, 1, 3), []
    for engine in ("parallel", "torch"):
        with lrn.engine(engine):
            results.append(per_sample(weights, samples))
    for one, other in zip(results[0].values(), results[1].values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_trained_weights():
    """After some training gates are no noise any more: here a unit has learnt to remember."""
    torch.manual_seed(0)
    unit, head, losses = lrn.LRN(1, 8), torch.nn.Linear(8, 1), []
    optimizer = torch.optim.Adam([*unit.parameters(), *head.parameters()], lr=0.03)
    decay = 0.9 ** torch.arange(20.0).flip(0)
    with lrn.engine("torch" if "cpu" in dispatch.MISSING else "cpu"):
        for _ in range(60):
            x = torch.randn(20, 16, 1)
            missed = head(unit(x)[0][-1])[:, 0] - (decay[:, None] * x[..., 0]).sum(0)
            losses.append(missed.square().mean())
            optimizer.zero_grad()
            losses[-1].backward()
            optimizer.step()
    assert losses[-1] < losses[0] / 3, "it has learnt nothing"
    x, results = torch.randn(1500, 2, 1), []
    with parallel.effort() as cost:
        for engine in ("parallel", "torch"):
            with lrn.engine(engine):
                results.append(unit(x)[0].detach())
    torch.testing.assert_close(*results, rtol=0, atol=2e-6)
    assert cost.walked == 0
    assert max(cost.iterations) <= 10


def test_effort_ends_with_its_block():
    case = Case("lrn_tanh")
    with parallel.effort() as outer:
        run(case)
        with parallel.effort() as inner:
            run(case)
        run(case)
    assert (len(outer.iterations), len(inner.iterations)) == (2, 1)
