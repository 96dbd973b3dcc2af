"""torch.compile and torch.export of every unit: one graph for any length and batch, the same results."""

from __future__ import annotations

import pytest
import torch
from helpers import assert_same, gradients, make, randn, random_state, states, tensors
from torch.nn.utils.rnn import pack_padded_sequence

import lrn

OPTIONS = ("norm", "lengths", "reset", "state", "layers", "directions")
# A unit and which of the options it has. Each unit comes twice, the second time with what it had not, so that
# every unit meets every option, and any two options meet, and miss, each other somewhere.
TABLE = {
    "gru": "......",
    "lrn": "x.x.x.",
    "atr": "xx..xx",
    "lstm": ".xx..x",
    "sru": "xxxx..",
    "olrn": ".x.xx.",
    "glrn": "..xxxx",
    "elrn": "x..x.x",
}
TURNED = str.maketrans("x.", ".x")
CASES = [(name, marks) for name, own in TABLE.items() for marks in (own, own.translate(TURNED))]

every_unit = pytest.mark.parametrize("name", [*lrn.UNITS, "gru-hidden_bias"])
every_case = pytest.mark.parametrize(("name", "marks"), CASES, ids=lambda value: value)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Setting:
    """A unit with some of the options, and inputs for it."""

    def __init__(self, name, marks, batch_first=False):
        has = {option: mark == "x" for option, mark in zip(OPTIONS, marks, strict=True)}
        self.has, self.batch_first = has, batch_first
        self.unit = make(
            name,
            3,
            5,
            norm=("layer", "rms")[has["layers"]] if has["norm"] else None,
            num_layers=2 if has["layers"] else 1,
            bidirectional=has["directions"],
            residual=has["layers"] and has["directions"],
            batch_first=batch_first,
        )

    def given(self, steps, batch):
        """Leaves that want a gradient, and keywords."""
        leading = (batch, steps) if self.batch_first else (steps, batch)
        given = {"input": randn(*leading, 3).requires_grad_()}
        if self.has["state"]:
            given["state"] = states(lambda part: part.requires_grad_(), random_state(self.unit, batch))
        if self.has["lengths"]:
            given["lengths"] = torch.tensor([(3 * b + steps) % (steps + 1) for b in range(batch)])
        if self.has["reset"]:
            given["reset"] = randn(*leading, seed=5) > 0.6
        return given

    def trained(self, run, steps, batch):
        """Output, state and all gradients."""
        given = self.given(steps, batch)
        results = run(**given)
        leaves = [t for name in ("input", "state") if name in given for t in tensors(given[name])]
        return tensors(results), gradients(results, [*leaves, *self.unit.parameters()])


def test_the_table_is_complete():
    """Every unit meets every option, on and off, and every two options meet in all four ways."""
    assert set(TABLE) == set(lrn.UNITS)
    for name in lrn.UNITS:
        assert all({marks[n] for own, marks in CASES if own == name} == {"x", "."} for n in range(6))
    for one in range(6):
        for other in range(one):
            assert len({marks[one] + marks[other] for _, marks in CASES}) == 4, (one, other)


@pytest.mark.slow
@every_case
def test_default_backend(name, marks):
    """Code generated for forward and backward gives what the unit gives, compiled once for all sizes."""
    setting = Setting(name, marks)
    compiled = torch.compile(setting.unit, fullgraph=True, dynamic=True)
    for n, sizes in enumerate(((6, 7), (9, 3))):
        with torch.compiler.set_stance("fail_on_recompile" if n else "default"):
            assert_same(setting.trained(compiled, *sizes), setting.trained(setting.unit, *sizes))


@pytest.mark.slow
def test_default_backend_by_definition():
    """On a device without an engine the steps are in the graph, and their gradients right all the same."""
    setting = Setting("lrn", "x.....")
    with lrn.engine("torch"):
        compiled = torch.compile(setting.unit, fullgraph=True)
        assert_same(setting.trained(compiled, 3, 2), setting.trained(setting.unit, 3, 2))


@pytest.mark.parametrize("norm", [None, "layer"])
@pytest.mark.parametrize("name", ["atr", "gru"])
def test_one_step_from_nothing(name, norm):
    """From a state of zeros the matrix inside the recurrence has no gradient at the first step."""
    unit, x = make(name, 3, 5, norm=norm), randn(1, 2, 3)
    output, _ = torch.compile(unit, fullgraph=True)(x)
    (found,) = torch.autograd.grad(output.sin().sum(), [unit.weight_hh_l0])
    assert not found.any()


# Without code generation, which takes its time: more sizes, more options at once ---------------------------


@pytest.mark.parametrize(("marks", "batch_first"), [("....xx", False), (".xxxx.", True)])
@every_unit
def test_compile(name, marks, batch_first):
    """Forward and backward in one graph, compiled once for all lengths and batches."""
    setting = Setting(name, marks, batch_first)
    compiled = torch.compile(setting.unit, fullgraph=True, dynamic=True, backend="aot_eager")
    for n, sizes in enumerate(((6, 7), (7, 2), (33, 5))):  # no two sizes alike: torch takes those for one
        with torch.compiler.set_stance("fail_on_recompile" if n else "default"):
            assert_same(setting.trained(compiled, *sizes), setting.trained(setting.unit, *sizes))


@pytest.mark.parametrize("marks", ["....x.", "xxxx.x"])
@every_unit
def test_export(name, marks):
    """A graph with free T and B, which runs other sizes than it was traced with, and can be trained."""
    setting = Setting(name, marks)
    steps, batch = torch.export.Dim("T"), torch.export.Dim("B")
    shapes = {"input": {0: steps, 1: batch}, "lengths": {0: batch}, "reset": {0: steps, 1: batch}}
    shapes["state"] = ({1: batch}, {1: batch}) if setting.unit.parts == 2 else {1: batch}
    given = setting.given(4, 3)
    program = torch.export.export(
        setting.unit, (), given, dynamic_shapes={key: shapes[key] for key in given}, strict=False
    )
    assert sum("lrn." in str(node.target) for node in program.graph.nodes) == setting.unit.num_layers
    for sizes in ((4, 3), (9, 2), (2, 17)):
        expected = setting.unit(**setting.given(*sizes))
        assert_same(program.module()(**setting.given(*sizes)), expected)


@every_unit
def test_compile_packed(name):
    """Packed rows, sorted or not, in one graph, whatever their sizes."""
    unit = make(name, 3, 5, num_layers=2)
    compiled = torch.compile(unit, fullgraph=True, dynamic=True, backend="aot_eager")
    for lengths in ([5, 3], [1, 7, 4], [3, 3, 3, 3, 3]):
        x = randn(7, len(lengths), 3).requires_grad_()
        results = [
            run(pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False))
            for run in (compiled, unit)
        ]
        assert_same(*results)
        assert results[0][0].batch_sizes.tolist() == results[1][0].batch_sizes.tolist()
        assert_same(*(gradients(result, [x, *unit.parameters()]) for result in results))


@every_unit
def test_compile_without_gradients(name):
    """Inference in one graph."""
    setting = Setting(name, ".x.x.x")
    compiled = torch.compile(setting.unit, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        assert_same(compiled(**setting.given(6, 4)), setting.unit(**setting.given(6, 4)))


@every_unit
def test_compile_of_nothing(name):
    """No steps: the state passes through, and is a tensor of its own."""
    unit = make(name, 3, 5)
    start = random_state(unit, 2)
    compiled = torch.compile(unit, fullgraph=True, backend="aot_eager")
    output, final = compiled(randn(0, 2, 3), start)
    assert output.shape == (0, 2, 5)
    assert_same(final, start, atol=0)
    for one, other in zip(tensors(final), tensors(start), strict=True):
        assert one.data_ptr() != other.data_ptr()


@every_unit
def test_compile_of_a_step(name):
    """One step after the other, which is how a stream is served."""
    unit = make(name, 3, 5)
    compiled = torch.compile(unit.step, fullgraph=True, backend="aot_eager")
    x, state, expected = randn(3, 2, 3), random_state(unit, 2), random_state(unit, 2)
    for x_t in x:
        output, state = compiled(x_t, state)
        wanted, expected = unit.step(x_t, expected)
        assert_same((output, state), (wanted, expected))


@every_unit
def test_compile_under_autocast(name):
    """In mixed precision the compiled unit gives the unit's results, up to the rounding of the small type."""
    unit, x = make(name, 3, 5, num_layers=2, dtype=torch.float32), randn(6, 4, 3, dtype=torch.float32)

    def run(unit):
        with torch.autocast("cpu", torch.bfloat16):
            output, _ = unit(x)
        return output.float(), torch.autograd.grad(output.float().sum(), list(unit.parameters()))

    expected = run(unit)
    actual = run(torch.compile(unit, fullgraph=True, backend="aot_eager"))
    for one, other in zip(tensors(actual), tensors(expected), strict=True):
        assert (one - other).abs().max() <= 0.05 * other.abs().max().clamp_min(1)


# The ops that stand for a walk with a matrix inside --------------------------------------------------------


def arguments(op, ragged):
    """What the units hand over: numbers that want a gradient, then how the rows lie."""
    lengths = torch.tensor([4, 0, 2]) if ragged else None
    x, state = randn(4, 3, 6 if op == "fused" else 24), randn(1, 2, 3, 4)
    if op == "fused":
        numbers = (x, state, randn(2, 12, 6), randn(2, 12, 4), randn(2, 12), randn(2, 12))
        return numbers, (lengths, None, "gru", False)
    numbers = (x, state, randn(2, 12, 4), randn(2, 12), randn(2, 12))
    reset = randn(4, 3, seed=4) > 0.5 if ragged else None
    return numbers, (lengths, None, reset, "gru", "layer", "both", False)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("op", ["walk", "fused"])
def test_opcheck(op, ragged):
    """Schema, fake, gradient and compile with dynamic shapes: torch's own checks."""
    numbers, how = arguments(op, ragged)
    torch.library.opcheck(getattr(torch.ops.lrn, op).default, (*numbers, *how))
    leaves = tuple(value.requires_grad_() for value in numbers)
    torch.library.opcheck(getattr(torch.ops.lrn, op).default, (*leaves, *how))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("op", ["walk", "fused"])
def test_gradients_of_the_ops(op, ragged):
    """Against finite differences, each number alone and all together."""
    numbers, how = arguments(op, ragged)
    leaves = tuple(value.requires_grad_() for value in numbers)
    run = getattr(torch.ops.lrn, op)
    assert torch.autograd.gradcheck(lambda *values: run(*values, *how), leaves, fast_mode=True)
    for n in range(len(leaves)):
        given = [value.detach() for value in leaves]
        given[n].requires_grad_()
        assert torch.autograd.gradcheck(
            lambda value, n=n, given=given: run(*given[:n], value, *given[n + 1 :], *how),
            (given[n],),
            fast_mode=True,
        )


@pytest.mark.parametrize("lengths", [[6, 2], [-1, 2]], ids=str)
@pytest.mark.parametrize("norm", [None, "layer"])
@every_unit
def test_wrong_lengths_in_compiled_code(name, norm, lengths):
    """They are known only when it runs, and are looked at by then."""
    run = torch.compile(make(name, norm=norm), backend="aot_eager", fullgraph=True)
    with pytest.raises((RuntimeError, ValueError), match=f"lengths must be from 0 to 5, got {lengths[0]}"):
        run(randn(5, 2, 3), lengths=torch.tensor(lengths))
