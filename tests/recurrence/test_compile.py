"""What is in a compiled graph: the engine asked for; the definition inside a transform of torch.func."""

import pytest
import torch
from recurrence.cases import assert_close, here, randn

import lrn


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def make(name, **options):
    torch.manual_seed(0)
    return lrn.make_unit(name, 3, 5, dtype=torch.float64, **options)


@pytest.mark.parametrize("by_definition", [False, True])
def test_compile_keeps_the_engine(by_definition):
    """The engine asked for when compiling is in the graph."""
    unit, seen = make("lrn"), []

    def look(graph, _):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    with lrn.engine("torch" if by_definition else here.engine):
        torch.compile(unit, fullgraph=True, backend=look)(randn(3, 2, 3))
    assert any("lrn.scan" in name for name in seen) != by_definition


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
