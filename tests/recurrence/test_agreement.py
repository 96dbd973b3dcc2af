"""The engine gives what the definition gives: outputs, final states and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence.cases import (
    LAYOUTS,
    NAMES,
    UNITS,
    WIDTHS,
    Case,
    assert_as_defined,
    assert_close,
    fewer,
    here,
    kinds,
    problems,
    randn,
)

import lrn

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cell", NAMES)
@given(data=st.data())
@settings(max_examples=fewer(12, 2))
def test_drawn_problems(cell, dtype, data):
    """Any sizes, any layout, any kind of rows, gradients from either result or both."""
    assert_as_defined(data.draw(problems(cell, dtype)))


@pytest.mark.parametrize("hidden", fewer(WIDTHS, (1, 33)))
@pytest.mark.parametrize("cell", NAMES)
def test_every_width(cell, hidden):
    """Widths around the vectors' and the tiles': the last, overlapping vector and the narrow row."""
    for case in kinds(cell, steps=3, batch=9, hidden=hidden, dtype=torch.float32)[1::2]:
        assert_as_defined(case)


@pytest.mark.parametrize("hidden", fewer((1025, 1030, 2100), (1025,)))
@pytest.mark.parametrize("cell", NAMES)
def test_wider_than_a_tile(cell, hidden):
    """Above 1024 columns a row is cut into tiles; 1025 leaves a narrow one."""
    case = Case(cell, 3, 2, hidden, "both", "lengths", reset=True, dtype=torch.float32)
    assert_as_defined(case)


@pytest.mark.parametrize("cell", NAMES)
def test_long_rows(cell):
    """Errors do not pile up over many steps."""
    assert_as_defined(Case(cell, fewer(65, 9), 2, 17, "both", "lengths", reset=True, dtype=torch.float32))


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("hidden", fewer((1, 3, 7), (3,)))
@pytest.mark.parametrize("cell", NAMES)
def test_narrow_rows_that_share_a_tile(cell, hidden, direction):
    """Rows narrower than a vector, many to a tile and of different lengths, keep to their own carry."""
    torch.set_num_threads(1)
    assert_as_defined(Case(cell, fewer(6, 2), fewer(40, 3), hidden, direction, "lengths"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cell", NAMES)
def test_every_layout(cell, layout):
    """Strides of x, state and incoming gradient: transposed, sliced, expanded, features apart."""
    for case in kinds(cell, layout=layout)[fewer(0, 1) :: fewer(1, 2)]:
        assert_as_defined(case)


def test_views_with_a_pending_sign():
    """The imaginary part of a conjugate is stored with the other sign, which the engine must not overlook."""
    x = torch.complex(randn(4, 2, 1, 3, 9), randn(4, 2, 1, 3, 9, seed=1)).conj().imag
    assert x.is_neg()
    state, rows = randn(1, 1, 2, 9, seed=2), lrn.recurrence.Rows(2)
    actual, _ = lrn.recurrence.scan("lrn_tanh", x, state, None, rows)
    expected, _ = lrn.recurrence.scan("lrn_tanh", x.resolve_neg().contiguous(), state, None, rows)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("above", ["output", "final"])
@pytest.mark.parametrize("cell", NAMES)
def test_one_of_the_two_gradients(cell, above):
    """A loss on the outputs alone, or on the final state alone."""
    for case in kinds(cell, above=above)[fewer(0, 1) :: fewer(1, 2)]:
        assert_as_defined(case)


@pytest.mark.parametrize("rows", ["full", "lengths"])
@pytest.mark.parametrize(("steps", "batch"), [(0, 3), (4, 0), (0, 0)])
@pytest.mark.parametrize("cell", NAMES)
def test_nothing_to_do(cell, steps, batch, rows):
    """No steps: the state passes through, and so does its gradient. No rows: empty results."""
    assert_as_defined(Case(cell, steps, batch, 9, "both", rows, reset=True))


@pytest.mark.parametrize("cell", NAMES)
def test_all_rows_empty(cell):
    """Every length zero: outputs zero, nothing of x is read, the state passes through."""
    x = torch.full((3, 2, 1, lrn.recurrence.CELLS[cell].gates, 5), torch.nan)
    state = randn(lrn.recurrence.CELLS[cell].parts, 1, 2, 5, dtype=torch.float32)
    weight = torch.ones(1, 2, 5) if cell == "sru" else None
    rows = lrn.recurrence.Rows(2, lengths=torch.zeros(2, dtype=torch.long))
    output, final = lrn.recurrence.scan(cell, x, state, weight, rows)
    assert not output.any()
    assert torch.equal(final, state)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", UNITS)
def test_units(name, dtype):
    """A whole unit, two layers both ways with dropout off, trains alike on either engine."""
    torch.manual_seed(0)
    unit = lrn.make_unit(name, 6, 17, num_layers=2, bidirectional=True, batch_first=True, dtype=dtype)
    x = randn(4, 9, 6, dtype=dtype).requires_grad_()
    reset = randn(4, 9, seed=1) > 1

    def trained(engine):
        with lrn.engine(engine):
            output, state = unit(x, lengths=[9, 0, 3, 8], reset=reset)
        parts = state if isinstance(state, tuple) else (state,)
        loss = output.sin().sum() + sum(part.cos().sum() for part in parts)
        gradients = torch.autograd.grad(loss, [x, *unit.parameters()])
        results = {f"result {n}": value for n, value in enumerate((output, *parts))}
        return results | {f"grad_{n}": value for n, value in enumerate(gradients)}

    tolerance = 1e-12 if dtype == torch.float64 else 3e-6  # two float32 results, each with its own error
    assert_close(trained(here.engine), trained("torch"), (tolerance, tolerance))
