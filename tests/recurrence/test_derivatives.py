"""Derivatives beyond the first, and torch.func: per-sample gradients, nested vmap, Jacobians of Jacobians."""

from dataclasses import replace

import pytest
import torch
from recurrence.cases import DIRECTIONS, ROWS, SOME, UNITS, Case, fewer, here, kinds, randn
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacrev, vmap

import lrn
from lrn.recurrence import CELLS, Rows, scan


def function(case):
    """A case as a function of its numbers, and those numbers; padding is zero, since numbers are nudged."""
    values = {name: v.nan_to_num(0).requires_grad_() for name, v in case.inputs().items()}
    how = case.how()

    def run(x, state, weight=None):
        return scan(case.cell, x, state, weight, how, case.direction)

    return run, tuple(values.values())


@pytest.mark.parametrize("cell", SOME)
def test_gradient_is_the_slope(cell):
    """Against finite differences, not the definition: both could share a mistake."""
    for case in kinds(cell, steps=fewer(3, 2), batch=2, hidden=2):
        assert gradcheck(*function(case), fast_mode=True)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("cell", SOME)
def test_second_gradient(cell, rows):
    """Double backward through the engine's gradient, for all rows and directions."""
    for direction in fewer(DIRECTIONS, ("both",)):
        case = Case(cell, fewer(3, 2), 2, 2, direction, rows, reset=direction != "forward")
        assert gradgradcheck(*function(case), fast_mode=True)


@pytest.mark.parametrize("above", ["output", "final"])
@pytest.mark.parametrize("cell", SOME)
def test_second_gradient_of_one_result(cell, above):
    """A loss on the output alone or the final state alone, and the gradient's norm on top of it."""
    case = Case(cell, 3, 2, 3, rows="lengths", above=above)
    run, values = function(case)
    results = []
    for engine in (here.engine, "torch"):
        with lrn.engine(engine):
            output, final = run(*values)
            loss = (output if above == "output" else final).sin().sum()
            first = torch.autograd.grad(loss, values, create_graph=True, materialize_grads=True)
            penalty = sum(g.square().sum() for g in first)
            results.append(torch.autograd.grad(penalty, values, materialize_grads=True))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", SOME)
def test_third_derivative(cell):
    """Through autograd three times over, against the definition."""
    run, values = function(Case(cell, 2, 1, 2, "both", "lengths", reset=True))
    results = []
    for engine in (here.engine, "torch"):
        with lrn.engine(engine):
            value = run(*values)[0].sin().sum()
            for _ in range(3):
                found = torch.autograd.grad(value, values, create_graph=True, materialize_grads=True)
                value = sum(g.sin().sum() for g in found)
        results.append(found)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


# torch.func ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_first", fewer((False, True), (True,)))
@pytest.mark.parametrize("name", fewer(UNITS, ("lrn", "sru")))
def test_per_sample_gradients(name, batch_first):
    """vmap(grad) of a unit's loss gives each sample's own gradient."""
    torch.manual_seed(0)
    unit = lrn.make_unit(name, 3, 5, batch_first=batch_first, bidirectional=True, dtype=torch.float64)
    parameters = {name: p.detach() for name, p in unit.named_parameters()}
    samples = randn(6, 4, 3)

    def loss(parameters, sample):
        x = sample.unsqueeze(0 if batch_first else 1)
        return functional_call(unit, parameters, (x,))[0].sin().sum()

    together = vmap(grad(loss), (None, 0))(parameters, samples)
    for n, sample in enumerate(samples):
        alone = torch.autograd.grad(loss(dict(unit.named_parameters()), sample), list(unit.parameters()))
        for name, expected in zip(parameters, alone, strict=True):
            torch.testing.assert_close(together[name][n], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("cell", SOME)
def test_nested_vmap(cell, rows):
    """Two mapped dimensions, each over another argument, equal two loops."""
    case = Case(cell, 4, 2, 3, "both", rows, reset=True)
    run, (x, state, *weight) = function(case)
    xs, states = torch.stack([x, 2 * x, -x]).detach(), torch.stack([state, state.sin()]).detach()
    weight = [w.detach() for w in weight]
    nested = vmap(lambda x: vmap(lambda s: run(x, s, *weight))(states))(xs)
    looped = [[run(x, s, *weight) for s in states] for x in xs]
    for part, mapped in enumerate(nested):
        expected = torch.stack([torch.stack([results[part] for results in row]) for row in looped])
        torch.testing.assert_close(mapped, expected, rtol=0, atol=0)


@pytest.mark.parametrize("cell", SOME)
def test_vmap_over_any_dimension(cell):
    """The mapped dimension may stand anywhere, and be missing from some arguments; lengths may be mapped."""
    gates, parts = CELLS[cell].gates, CELLS[cell].parts
    x, state = randn(4, 2, 1, gates, 3, 5), randn(parts, 1, 2, 3)  # x mapped over its last dimension
    weight = [randn(1, 2, 3)] if CELLS[cell].vectors else []
    lengths = torch.tensor([[4, 0], [1, 2], [3, 4], [0, 0], [2, 2]])

    def run(x, lengths):
        return scan(cell, x, state, *(weight or [None]), Rows(2, lengths=lengths))

    output, final = vmap(run, (5, 0), (1, 2))(x, lengths)
    for n in range(5):
        expected = run(x[..., n].contiguous(), lengths[n])
        torch.testing.assert_close((output[:, n], final[:, :, n]), expected, rtol=0, atol=0)


@pytest.mark.parametrize("cell", ["lrn_tanh", "sru"])
def test_vmap_of_the_op(cell):
    """The registered ops take vmap themselves, not only inside ``scan``."""
    x, state, weight, *rest = Case(cell).positional()
    mapped = vmap(lambda x: torch.ops.lrn.scan(x, state, weight, *rest))(torch.stack([x, -x]))
    for n, sign in enumerate((1, -1)):
        for one, other in zip(mapped, torch.ops.lrn.scan(sign * x, state, weight, *rest), strict=True):
            torch.testing.assert_close(one[n], other, rtol=0, atol=0)


@pytest.mark.parametrize("cell", SOME)
def test_batched_gradients(cell):
    """``is_grads_batched`` pulls several gradients back at once."""
    run, values = function(Case(cell, 4, 3, 5, "both", "lengths", reset=True))
    output, _ = run(*values)
    above = randn(3, *output.shape)
    together = torch.autograd.grad(output, values, above, is_grads_batched=True, retain_graph=True)
    for n, one in enumerate(above):
        alone = torch.autograd.grad(output, values, one, retain_graph=True)
        torch.testing.assert_close(tuple(g[n] for g in together), alone, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mode", ["plain", "tracked", "no_grad"])
@pytest.mark.parametrize("cell", ["lrn_tanh", "sru"])
def test_forward_mode(cell, mode):
    """Forward-mode derivatives are right; a tangent that just vanishes would be a wrong zero."""
    run, (x, *rest) = function(Case(cell))
    x, rest = x.detach().requires_grad_(mode == "tracked"), [value.detach() for value in rest]
    with forward_ad.dual_level(), torch.set_grad_enabled(mode != "no_grad"):
        with lrn.engine("torch"):
            expected = forward_ad.unpack_dual(run(forward_ad.make_dual(x, x.sin()), *rest)[0]).tangent
        output, _ = run(forward_ad.make_dual(x, x.sin()), *rest)
        tangent = forward_ad.unpack_dual(output).tangent
    assert tangent is not None, "the tangent was dropped without a word"
    torch.testing.assert_close(tangent, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", SOME)
def test_jacobian_of_the_jacobian(cell):
    """jacrev(jacrev) and hessian of a small problem equal those of the definition."""
    case = Case(cell, 2, 1, 2, rows="lengths", seed=1)
    run, (x, *rest) = function(replace(case, reset=True))
    rest = [value.detach() for value in rest]

    def loss(x):
        output, final = run(x, *rest)
        return output.sin().sum() + final.cos().sum()

    with lrn.engine("torch"):
        expected = jacrev(jacrev(loss))(x.detach())
    torch.testing.assert_close(jacrev(jacrev(loss))(x.detach()), expected, rtol=0, atol=1e-12)
    with lrn.engine("torch"):
        torch.testing.assert_close(hessian(loss)(x.detach()), expected, rtol=0, atol=1e-12)
