"""torch.compile and torch.export: one graph, any sequence length and batch, the same results."""

import pytest
import torch
from recurrence.cases import UNITS, assert_close, randn

import lrn


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def make(name, **options):
    torch.manual_seed(0)
    return lrn.make_unit(name, 3, 5, dtype=torch.float64, **options)


def trained(run, unit, x, **given):
    """Output, state and all gradients."""
    x = x.clone().requires_grad_()
    output, state = run(x, **given)
    results = [output, *(state if isinstance(state, tuple) else (state,))]
    gradients = torch.autograd.grad(sum(value.sin().sum() for value in results), [x, *unit.parameters()])
    named = {f"result {n}": value.detach() for n, value in enumerate(results)}
    return named | {f"grad_{n}": value for n, value in enumerate(gradients)}


def assert_same(run, unit, x, **given):
    assert_close(trained(run, unit, x, **given), trained(unit, unit, x, **given), (1e-12, 1e-12))


@pytest.mark.parametrize("name", UNITS)
def test_compile(name):
    """Forward and backward in one graph, compiled once for all lengths and batches."""
    unit = make(name, num_layers=2, bidirectional=True)
    compiled = torch.compile(unit, fullgraph=True, dynamic=True, backend="aot_eager")
    assert_same(compiled, unit, randn(6, 4, 3))  # no two sizes alike: torch takes those for one
    with torch.compiler.set_stance("fail_on_recompile"):
        assert_same(compiled, unit, randn(7, 2, 3))
        assert_same(compiled, unit, randn(33, 5, 3))


@pytest.mark.parametrize("name", UNITS)
def test_compile_with_lengths_and_reset(name):
    """Rows that end early and documents back to back, in one graph."""
    unit = make(name, batch_first=True)
    compiled = torch.compile(unit, fullgraph=True, dynamic=True, backend="aot_eager")
    for steps, batch in ((5, 4), (9, 3)):
        lengths = torch.tensor([steps, 0, 2, 1])[:batch]
        reset = randn(batch, steps, seed=3) > 0.5
        assert_same(compiled, unit, randn(batch, steps, 3), lengths=lengths, reset=reset)


@pytest.mark.slow
def test_inductor():
    """The default backend, code generation included."""
    unit = make("sru", bidirectional=True)
    compiled = torch.compile(unit, fullgraph=True, dynamic=True)
    for steps, batch in ((4, 3), (7, 2)):
        assert_same(compiled, unit, randn(steps, batch, 3))


@pytest.mark.parametrize("engine", ["cpu", "torch"])
def test_compile_keeps_the_engine(engine):
    """The engine asked for when compiling is in the graph."""
    unit, seen = make("lrn"), []

    def look(graph, _):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    with lrn.engine(engine):
        torch.compile(unit, fullgraph=True, backend=look)(randn(3, 2, 3))
    assert any("lrn.scan" in name for name in seen) == (engine == "cpu")


@pytest.mark.parametrize("name", UNITS)
def test_export(name):
    """A graph with free T and B, which runs other sizes than it was traced with."""
    unit = make(name, bidirectional=True)
    steps, batch = torch.export.Dim("T"), torch.export.Dim("B")
    program = torch.export.export(unit, (randn(4, 3, 3),), dynamic_shapes=({0: steps, 1: batch},))
    assert any("lrn.scan" in str(node.target) for node in program.graph.nodes)
    for shape in ((4, 3, 3), (9, 2, 3), (2, 17, 3)):
        x = randn(*shape)
        actual, expected = program.module()(x), unit(x)
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lrn", "sru"])
def test_export_with_lengths(name):
    """Lengths are an input of the exported graph."""
    unit = make(name)
    steps, batch = torch.export.Dim("T"), torch.export.Dim("B")
    lengths = torch.tensor([4, 0, 2])
    program = torch.export.export(
        unit,
        (randn(4, 3, 3),),
        {"lengths": lengths},
        dynamic_shapes={"input": {0: steps, 1: batch}, "lengths": {0: batch}},
    )
    x, lengths = randn(6, 2, 3), torch.tensor([5, 6])
    actual, expected = program.module()(x, lengths=lengths), unit(x, lengths=lengths)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lrn", "sru"])
def test_compiled_transform(name):
    """torch.func.grad inside torch.compile: through the definition, which torch can take apart."""
    unit, x = make(name), randn(6, 4, 3)
    weights = {n: p.detach() for n, p in unit.named_parameters()}

    def loss(weights, x):
        return torch.func.functional_call(unit, weights, (x,))[0].sin().sum()

    gradient = torch.func.grad(loss)
    compiled = torch.compile(gradient, fullgraph=True, backend="aot_eager")
    assert_close(compiled(weights, x), gradient(weights, x), (1e-12, 1e-12))
