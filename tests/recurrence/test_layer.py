"""A layer in chunks is the layer in one piece, which is its definition."""

from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from recurrence.cases import NAMES, here

from lrn.recurrence import CELLS, Rows, engine, scan

layer = import_module("lrn.recurrence.layer")  # the package has a function of that name

OP = "scan_into"  # what an engine must have for these tests: others run projection and walk apart
FEATURES, HIDDEN = 5, 9


# name: steps, batch, batch_first, lengths, reset, direction, chunk (tokens), chunks that makes
KINDS = {
    "time": (23, 4, False, False, False, "forward", 16, 6),
    "one step each": (5, 40, False, False, False, "forward", 16, 5),
    "lengths": (23, 4, False, True, False, "forward", 16, 6),
    "reset": (23, 4, False, False, True, "forward", 16, 6),
    "lengths and reset": (23, 4, False, True, True, "forward", 16, 6),
    "rows": (3, 30, True, True, True, "forward", 24, 4),
    "rows, both directions": (3, 30, True, True, True, "both", 24, 4),
    "both directions": (23, 4, False, True, True, "both", 16, 0),
    "few long rows": (40, 3, True, True, True, "forward", 16, 0),
}


def problem(cell, kind, dtype=torch.float64):
    torch.manual_seed(1)
    steps, batch, batch_first, lengths, reset, direction, _, _ = KINDS[kind]
    about, leading = CELLS[cell], (batch, steps) if batch_first else (steps, batch)
    directions = 2 if direction == "both" else 1
    vectors = torch.randn(directions, 2, HIDDEN, dtype=dtype) if about.vectors else None
    inputs = {
        "x": torch.randn(*leading, FEATURES, dtype=dtype),
        "matrix": torch.randn(directions * about.gates * HIDDEN, FEATURES, dtype=dtype),
        "bias": torch.randn(directions * about.gates * HIDDEN, dtype=dtype),
        "state": torch.randn(about.parts, directions, batch, HIDDEN, dtype=dtype),
        "vectors": vectors,
    }
    rows = Rows(
        batch,
        batch_first,
        lengths=torch.randint(0, steps + 1, (batch,)) if lengths else None,
        reset=torch.rand(leading) < 0.2 if reset else None,
    )
    above = (
        torch.randn(*leading, directions * HIDDEN, dtype=dtype),
        torch.randn(about.parts, directions, batch, HIDDEN, dtype=dtype),
    )
    return inputs, rows, direction, above


def by_definition(cell, inputs, rows, direction):
    projected = F.linear(inputs["x"], inputs["matrix"], inputs["bias"])
    shape = (inputs["state"].shape[1], CELLS[cell].gates, HIDDEN)
    with engine("torch"):
        return scan(cell, projected.unflatten(-1, shape), inputs["state"], inputs["vectors"], rows, direction)


def by_layer(cell, inputs, rows, direction):
    return layer.layer(cell, *inputs.values(), rows, direction)


def leaves(inputs):
    return {n: None if v is None else v.clone().requires_grad_() for n, v in inputs.items()}


def gradients(run, cell, inputs, rows, direction, above):
    inputs = leaves(inputs)
    results = run(cell, inputs, rows, direction)
    there = [value for value in inputs.values() if value is not None]
    return [*results, *torch.autograd.grad(results, there, above)]


@pytest.fixture
def chunk(monkeypatch):
    """Chunkes as short as the kind asks for; and memory that shows where nobody wrote."""

    def set_chunk(kind):
        monkeypatch.setattr(layer, "CHUNK", KINDS[kind][-2])

    torch.use_deterministic_algorithms(True)  # fills new memory with NaN
    yield set_chunk
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", NAMES)
def test_chunks_are_the_whole(cell, kind, chunk):
    chunk(kind)
    inputs, rows, direction, above = problem(cell, kind)
    parts = layer._chunks(inputs["x"], inputs["state"], inputs["vectors"], rows, direction)
    assert len(parts) == KINDS[kind][-1]
    found = gradients(by_layer, cell, inputs, rows, direction, above)
    expected = gradients(by_definition, cell, inputs, rows, direction, above)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    with torch.no_grad():  # here the room of a chunk's projection serves all of them
        for ours, theirs in zip(by_layer(cell, inputs, rows, direction), expected[:2], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("cell", ["lrn_tanh", "sru"])
def test_one_result_alone_has_a_gradient(cell, which, chunk):
    chunk("lengths and reset")
    inputs, rows, direction, above = problem(cell, "lengths and reset")
    given = [leaves(inputs) for _ in range(2)]
    for run, values in zip((by_layer, by_definition), given, strict=True):
        run(cell, values, rows, direction)[which].backward(above[which])
    for name, value in given[0].items():
        if value is not None:
            torch.testing.assert_close(value.grad, given[1][name].grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("frozen", ["x", "matrix", "bias", "state"])
def test_what_needs_no_gradient_gets_none(frozen, chunk):
    chunk("time")
    inputs, rows, direction, above = problem("lrn_tanh", "time")
    given = leaves(inputs)
    given[frozen].requires_grad_(False)
    torch.autograd.backward(by_layer("lrn_tanh", given, rows, direction), above)
    assert [n for n, v in given.items() if v is not None and v.grad is None] == [frozen]


@pytest.mark.parametrize("cell", NAMES)
def test_second_gradient(cell, chunk):
    kind = "time"
    chunk(kind)
    inputs, rows, direction, _ = problem(cell, kind)
    names = [n for n, v in inputs.items() if v is not None]

    def run(*values):
        given = dict.fromkeys(inputs) | dict(zip(names, values, strict=True))
        return by_layer(cell, given, rows, direction)

    values = [inputs[n].requires_grad_() for n in names]
    assert torch.autograd.gradgradcheck(run, values, fast_mode=True)


def test_a_graph_that_is_kept_gives_the_same_again(chunk):
    chunk("time")
    inputs, rows, direction, above = problem("lrn_tanh", "time")
    given = leaves(inputs)
    results = by_layer("lrn_tanh", given, rows, direction)
    there = [v for v in given.values() if v is not None]
    first = torch.autograd.grad(results, there, above, retain_graph=True)
    for a, b in zip(first, torch.autograd.grad(results, there, above), strict=True):
        assert torch.equal(a, b)


def test_half_precision_is_not_split():
    """Adding up a weight's gradient chunk by chunk would round it each time."""
    x, state = torch.zeros(4 * layer.CHUNK, 1, 2), torch.zeros(1, 1, 1, 3)
    assert len(layer._chunks(x, state, None, Rows(1), "forward")) == 4
    assert layer._chunks(x.bfloat16(), state.bfloat16(), None, Rows(1), "forward") == []


def test_autocast_goes_by_the_projection():
    inputs, rows, direction, _ = problem("lrn_tanh", "time", torch.float32)
    with torch.autocast(here.device, torch.bfloat16):
        assert by_layer("lrn_tanh", inputs, rows, direction)[0].dtype == torch.bfloat16
