"""Every unit in every way autograd can be asked, against the torch engine, in float64.

What these have in common: the inputs of a unit have a history of their own, of which the unit's own weights
may be a part, and the gradient must be taken through the unit once, not through that history as well.
"""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, assert_same, gradients, make, randn, random_state, states, tensors
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, vmap
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

import lrn

T, B, H = 4, 2, 3  # as many features as hidden ones, so that a unit can read its own output
LENGTHS = torch.tensor([2, 4])
RESET = torch.tensor([[False, True], [True, False], [False, True], [False, False]])

every_unit = pytest.mark.parametrize("name", lrn.UNITS)


def square(name, **options):
    return make(name, H, H, **options)


# Programs: what a model may do with a unit. Each gives results to sum up and differentiate ----------------


def once(unit, x):
    return unit(x)


def state_handed_over(unit, x):
    _, state = unit(x)
    return unit(x.sin(), state)


def state_handed_over_with_rows(unit, x):
    _, state = unit(x, lengths=LENGTHS)
    return unit(x.sin(), state, lengths=LENGTHS.flip(0), reset=RESET)


def own_output(unit, x):
    output, _ = unit(x)
    return unit(output)


def input_from_the_weight(unit, x):
    return unit(x @ unit.weight_ih_l0[:H])


def state_from_the_weight(unit, x):
    bias = unit.weight_ih_l0[:H].sum(1)
    start = bias.expand(unit.num_layers * unit.directions, B, H)
    return unit(x, (start.sin(), start) if unit.parts == 2 else start)


def packed(unit, x):
    _, state = unit(x)
    return unit(pack_padded_sequence(x * unit.weight_ih_l0.sum(), LENGTHS, enforce_sorted=False), state)


def halves(unit, x):
    projected = unit.project(x)
    _, state = unit.recur(projected)
    return unit.recur(projected.sin(), state)


def step_by_step(unit, x):
    outputs, state = [], None
    for x_t in x:
        output, state = unit.step(x_t, state)
        outputs.append(output)
    return torch.stack(outputs), state


def tied_layers(unit, x):
    """Two layers, or two directions, that are one: made by ``tied`` below."""
    return unit(x)


def tied(name, **options):
    unit = square(name, **options)
    for key, parameter in list(unit.named_parameters()):
        if "_l1" in key or "_reverse" in key:
            first = key.replace("_l1", "_l0").replace("_reverse", "")
            assert getattr(unit, first).shape == parameter.shape
            setattr(unit, key, getattr(unit, first))
    return unit


CASES = {
    "once": (once, square, {}),
    "state handed over": (state_handed_over, square, {}),
    "state handed over, batch of rows": (state_handed_over_with_rows, square, {}),
    "state handed over, norm": (state_handed_over, square, {"norm": "layer"}),
    "state handed over, two layers both ways": (
        state_handed_over,
        square,
        {"num_layers": 2, "bidirectional": True},
    ),
    "own output": (own_output, square, {}),
    "own output, norm": (own_output, square, {"norm": "rms"}),
    "input from the weight": (input_from_the_weight, square, {}),
    "state from the weight": (state_from_the_weight, square, {"bidirectional": True}),
    "packed": (packed, square, {}),
    "project and recur": (halves, square, {}),
    "step by step": (step_by_step, square, {}),
    "layers tied": (tied_layers, tied, {"num_layers": 2}),
    "directions tied": (tied_layers, tied, {"bidirectional": True}),
}
every_case = pytest.mark.parametrize("case", CASES)


def setting(name, case):
    program, build, options = CASES[case]
    unit, x = build(name, **options), randn(T, B, H).requires_grad_()
    return program, unit, x, [x, *unit.parameters()]


def assert_alike(actual, expected):
    """Rounding apart, measured by the largest number: gradients of gradients can be of any size."""
    for one, other in zip(tensors(actual), tensors(expected), strict=True):
        largest = float(other.detach().abs().max()) if other.numel() else 0.0
        assert_same(one, other, atol=1e-11 * max(1.0, largest))


def on_both_engines(run):
    """``run()`` by the definition and on the fastest engine; both must give the same."""
    with lrn.engine("torch"):
        expected = run()
    assert_alike(run(), expected)
    return expected


def penalty(values):
    return sum(value.square().sum() for value in values)


@every_case
@every_unit
def test_gradient_of_a_gradient(name, case):
    """With ``create_graph`` the first gradient is the plain one, and the second that of the definition."""
    program, unit, x, wanted = setting(name, case)

    def run():
        loss = penalty(tensors(program(unit, x)))
        plain = torch.autograd.grad(loss, wanted, retain_graph=True, materialize_grads=True)
        first = torch.autograd.grad(loss, wanted, create_graph=True, materialize_grads=True)
        assert_alike(first, plain)
        return first, torch.autograd.grad(penalty(first), wanted, materialize_grads=True)

    on_both_engines(run)


@every_case
@every_unit
def test_two_backwards(name, case):
    """A graph that is kept gives the same gradients again, and adds them up."""
    program, unit, x, wanted = setting(name, case)

    def run():
        for tensor in wanted:
            tensor.grad = None
        loss = penalty(tensors(program(unit, x)))
        loss.backward(retain_graph=True)
        once = [torch.zeros_like(t) if t.grad is None else t.grad.clone() for t in wanted]
        loss.backward()
        for tensor, value in zip(wanted, once, strict=True):
            if tensor.grad is not None:
                assert torch.equal(tensor.grad, 2 * value)
        return once

    on_both_engines(run)


@pytest.mark.parametrize("reentrant", [True, False])
@every_case
@every_unit
def test_checkpoint(name, case, reentrant):
    """Computed again in the backward pass, alone or between other layers: the same gradients."""
    program, unit, x, wanted = setting(name, case)
    before = nn.Linear(H, H, dtype=torch.float64)
    wanted = [*wanted, *before.parameters()]

    def model(x):
        return tuple(tensors(program(unit, before(x).sin())))

    expected = gradients(model(x), wanted)
    assert_alike(gradients_of(checkpoint(model, x, use_reentrant=reentrant), wanted), expected)


def gradients_of(result, wanted):
    """``gradients`` by way of ``backward``, the only one that reentrant checkpoints know."""
    for tensor in wanted:
        tensor.grad = None
    loss = torch.zeros((), dtype=torch.float64)
    for n, tensor in enumerate(tensors(result)):
        weights = torch.arange(1, tensor.numel() + 1, dtype=torch.float64).sin().view(tensor.shape)
        loss = loss + (n + 1) * (tensor * weights).sum()
    loss.backward()
    return [torch.zeros_like(t) if t.grad is None else t.grad for t in wanted]


# Only some of the inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, "layer"])
@every_unit
def test_only_some_inputs(name, norm):
    """Each input alone, and all but each: what wants no gradient gets none, the others the same as ever."""
    unit, x = square(name, norm=norm, bidirectional=True), randn(T, B, H).requires_grad_()
    start = states(lambda s: s.requires_grad_(), random_state(unit, B))
    leaves = [x, *tensors(start), *unit.parameters()]

    def run():
        return gradients(unit(x, start, lengths=LENGTHS), leaves)

    expected = dict(enumerate(on_both_engines(run)))
    for n in range(len(leaves)):
        for chosen in ({n}, set(range(len(leaves))) - {n}):
            for m, leaf in enumerate(leaves):
                leaf.requires_grad_(m in chosen)
            found = gradients(unit(x, start, lengths=LENGTHS), [leaves[m] for m in sorted(chosen)])
            assert_alike(found, [expected[m] for m in sorted(chosen)])
            loss, chosen_leaves = penalty(tensors(unit(x, start))), [leaves[m] for m in sorted(chosen)]
            first, plain = (
                torch.autograd.grad(loss, chosen_leaves, create_graph=graph, materialize_grads=True)
                for graph in (True, False)
            )
            assert_alike(first, plain)


# torch.func ----------------------------------------------------------------------------------------------


def pure(name, case):
    """A case as a function of weights and input."""
    program, unit, x, _ = setting(name, case)
    weights = {key: parameter.detach() for key, parameter in unit.named_parameters()}

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.unit = unit

        def forward(self, x):
            return penalty(tensors(program(self.unit, x)))

    model = Model()

    def loss(weights, x):
        return functional_call(model, {f"unit.{key}": value for key, value in weights.items()}, (x,))

    return loss, weights, x.detach()


FUNCTIONAL = ("state handed over, batch of rows", "own output, norm", "input from the weight")


@pytest.mark.parametrize("case", FUNCTIONAL)
@every_unit
def test_functional_gradients(name, case):
    """grad, and the gradient of each sample by vmap, are autograd's."""
    loss, weights, x = pure(name, case)
    xs = torch.stack([x, x.sin()])

    def run():
        single = grad(loss)(weights, x)
        mapped = vmap(grad(loss), (None, 0))(weights, xs)
        return list(single.values()), list(mapped.values())

    single, mapped = on_both_engines(run)
    for n, sample in enumerate(xs):
        leaves = {key: value.clone().requires_grad_() for key, value in weights.items()}
        found = torch.autograd.grad(
            loss(leaves, sample), list(leaves.values()), allow_unused=True, materialize_grads=True
        )
        assert_alike([value[n] for value in mapped], list(found))
        if n == 0:
            assert_alike(single, list(found))


@every_unit
def test_functional_second_derivatives(name):
    """jacrev of jacrev and hessian of a unit that reads its own state and output."""
    unit = make(name, 2, 2)

    def loss(x):
        output, state = unit(x)
        return penalty(tensors(unit(output, state)))

    x = randn(2, 1, 2)

    def run():
        return jacrev(jacrev(loss))(x), hessian(loss)(x)

    one, other = on_both_engines(run)
    assert_alike(one, other)


@pytest.mark.parametrize("variant", VARIANTS)
def test_meta_learning(variant):
    """A step of learning inside the loss: weights that are results themselves, differentiated through."""
    unit, x = make(variant, H, H), randn(T, B, H)
    names = [key for key, _ in unit.named_parameters()]

    def run():
        weights = list(unit.parameters())
        for _ in range(2):
            loss = penalty(tensors(functional_call(unit, dict(zip(names, weights, strict=True)), (x,))))
            found = torch.autograd.grad(loss, weights, create_graph=True, materialize_grads=True)
            weights = [w - 0.1 * g for w, g in zip(weights, found, strict=True)]
        after = functional_call(unit, dict(zip(names, weights, strict=True)), (x.sin(),))
        return gradients(after, unit.parameters())

    on_both_engines(run)
