"""The registered ops keep torch's rules: schema, fake, autograd, autocast, vmap."""

import pytest
import torch
from recurrence.cases import (
    LAYOUTS,
    NAMES,
    SOME,
    UNITS,
    Case,
    assert_equal,
    call,
    here,
    kinds,
    overload,
    randn,
    run,
)
from torch._subclasses import FakeTensorMode

import lrn
from lrn.recurrence import CELLS, scan

# What torch.library.opcheck tries, without tracing through the gradient with dynamic shapes.
QUICK = ("test_schema", "test_autograd_registration", "test_faketensor")


def cases(cell):
    return [
        *kinds(cell, steps=3, batch=2, hidden=5),
        Case(cell, 0, 2, 5),
        Case(cell, hidden=1, layout="apart"),
    ]


def backward_args(case):
    x, state, weight, *rest = case.positional()
    output, memory, _ = torch.ops.lrn.scan(x, state, weight, *rest)
    kept = memory if CELLS[case.cell].parts == 2 else output
    above = case.gradients()
    return above["output"], above["final"], x, state, weight, kept, *rest


def differentiable(args):
    """All numbers as leaves: opcheck then looks at the gradient as well."""
    number = lambda value: isinstance(value, torch.Tensor) and value.is_floating_point()  # noqa: E731
    return tuple(value.detach().requires_grad_() if number(value) else value for value in args)


@pytest.mark.parametrize("cell", SOME)
def test_opcheck_scan(cell):
    """Schema, fake, autograd and, for two kinds of rows, compile with dynamic shapes: torch's own checks."""
    for n, case in enumerate(cases(cell)):
        args = differentiable(case.positional())
        torch.library.opcheck(overload("scan"), args, test_utils="ALL" if n in (1, 3) else QUICK)


@pytest.mark.parametrize("cell", SOME)
def test_opcheck_scan_backward(cell):
    """The same for the gradient, which has a gradient of its own."""
    for case in cases(cell):
        args = backward_args(case)
        torch.library.opcheck(overload("scan_backward"), differentiable(args), test_utils=QUICK)
    torch.library.opcheck(overload("scan_backward"), backward_args(cases(cell)[1]))


@pytest.mark.slow
def test_opcheck_second_gradient():
    """The gradient of the gradient under compile, once: it goes through the definition."""
    args = backward_args(Case("elrn_tanh", 2, 2, 3, rows="lengths"))
    torch.library.opcheck(overload("scan_backward"), differentiable(args))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cell", ["lrn_tanh", "sru"])
def test_fake_strides(cell, layout):
    """Compiled code trusts the strides that the fake ops promise."""
    for case in kinds(cell, layout=layout):
        args, above = case.positional(), case.gradients()
        real = call(args, above)
        with FakeTensorMode() as mode:
            args = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
            promised = call(tuple(args), {name: mode.from_tensor(g) for name, g in above.items()})
        for name, value in real.items():
            assert promised[name].shape == value.shape, name
            assert promised[name].dtype == value.dtype, name
            assert promised[name].stride() == value.stride(), name


@pytest.mark.parametrize("cell", NAMES)
def test_every_way_in(cell):
    """scan, the op with its registered gradient, and both without gradients: the same bits."""
    for case in kinds(cell, dtype=torch.float32):
        expected = run(case)
        x, state, weight, *rest = differentiable(case.positional())
        output, _, final = torch.ops.lrn.scan(x, state, weight, *rest)
        above = case.gradients()
        gradients = torch.autograd.grad([output, final], [x, state], [above["output"], above["final"]])
        names = ("output", "final", "grad_x", "grad_state")
        results = dict(zip(names, (output.detach(), final.detach(), *gradients), strict=True))
        assert_equal(results, {name: expected[name] for name in names})
        vectors = None if weight is None else weight[0]
        for without in (torch.no_grad, torch.inference_mode):
            with without():
                output, final = scan(cell, x, state, vectors, case.how(), case.direction)
                assert not output.requires_grad
                assert_equal({"output": output, "final": final}, {n: expected[n] for n in names[:2]})


# Autocast -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_follows_x(cell, dtype):
    """Under autocast x decides: state and weight of other types are brought to it."""
    x, state, weight, *rest = Case(cell, dtype=torch.float32).positional()
    x = x.to(dtype)
    with torch.autocast(here.device, torch.bfloat16):
        results = torch.ops.lrn.scan(x, state, weight, *rest)
    expected = torch.ops.lrn.scan(x, state.to(dtype), None if weight is None else weight.to(dtype), *rest)
    assert_equal(dict(enumerate(results)), dict(enumerate(expected)))


@pytest.mark.parametrize("cell", NAMES)
def test_autocast_gradients(cell):
    """Gradients come back in each tensor's own type."""
    x, state, weight, *rest = Case(cell, dtype=torch.float32).positional()
    leaves = [x.bfloat16().requires_grad_(), state.requires_grad_()]
    if weight is not None:
        leaves.append(weight.contiguous().requires_grad_())
    with torch.autocast(here.device, torch.bfloat16):
        output, _, final = torch.ops.lrn.scan(*leaves, *[None] * (3 - len(leaves)), *rest)
    gradients = torch.autograd.grad(output.float().sum() + final.float().sum(), leaves)
    assert [g.dtype for g in gradients] == [leaf.dtype for leaf in leaves]
    assert all(g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("name", UNITS)
def test_autocast_unit(name):
    """A unit under autocast computes in bfloat16 and trains float32 weights, like the plain engine."""
    torch.manual_seed(0)
    unit, x = lrn.make_unit(name, 4, 9, num_layers=2), randn(6, 3, 4, dtype=torch.float32)
    results = []
    for engine in (here.engine, "torch"):
        unit.zero_grad()
        with lrn.engine(engine), torch.autocast(here.device, torch.bfloat16):
            output, _ = unit(x)
        output.float().sum().backward()
        assert output.dtype == torch.bfloat16
        assert all(p.grad.dtype == torch.float32 for p in unit.parameters())
        results.append([output.detach(), *(p.grad for p in unit.parameters())])
    for one, other in zip(*results, strict=True):
        scale = other.float().abs().max()
        assert (one.float() - other.float()).abs().max() <= 0.05 * scale


def test_autocast_off_means_no_mixing():
    """Without autocast the op takes one type only, and says so."""
    x, state, weight, *rest = Case("lrn_tanh", dtype=torch.float32).positional()
    with pytest.raises(RuntimeError, match=r"state must be on .* and of x's type"):
        torch.ops.lrn.scan(x.bfloat16(), state, weight, *rest)
