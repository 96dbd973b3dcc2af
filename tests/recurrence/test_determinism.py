"""Bit for bit the same: for any number of threads, run to run, wherever an element stands."""

from dataclasses import replace

import pytest
import torch
from recurrence.cases import NAMES, Case, assert_equal, call, call_case, fewer, kinds, randn

from lrn.recurrence import Rows, scan

# Enough work to be shared (see kWorthAThread in cpu/call.h), one width for each way of cutting it up:
# many rows to a tile, one row to a tile, rows cut into columns.
SHAPES = fewer(((33, 40, 7), (7, 17, 129), (4, 2, 1100)), ((3, 2, 7),))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cell", NAMES)
def test_any_number_of_threads(cell, shape):
    """Forward and backward, all kinds of rows; with two threads twice, which is run to run."""
    steps, batch, hidden = shape
    for case in kinds(cell, steps=steps, batch=batch, hidden=hidden, dtype=torch.float32):
        torch.set_num_threads(1)
        alone = call_case(case)
        for threads in fewer((2, 2, 3, 8), (2,)):
            torch.set_num_threads(threads)
            assert_equal(call_case(case), alone)


# Where tensors have their batch: those with a row per token, those like the state, and the weight.
BATCH = {"x": 1, "state": 2, "weight": 0, "output": 1, "memory": 1, "final": 2, "lengths": 0, "reset": 1}


COLUMNS = (slice(2, 5), slice(11, 19), slice(0, 45, 2), slice(44, 45), slice(5, 42))


def cut(values, rows, columns):
    """Some rows and columns of every tensor that has them; outputs are ``[T, B, D, H]`` here."""
    for name, value in values.items():
        plain = name.removeprefix("grad_")
        if value is None or (value.dim() < 2 and plain != "lengths"):
            yield name, value
            continue
        value = value.index_select(BATCH[plain], torch.tensor(rows))
        yield name, value if plain in ("lengths", "reset") else value[..., columns]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("cell", NAMES)
def test_any_place_in_the_batch(cell, dtype):
    """Rows and columns taken out, reordered or repeated give the slices of the whole's results."""
    case = Case(cell, fewer(6, 2), fewer(19, 3), 45, "both", "lengths", reset=True, dtype=dtype)
    names = ("x", "state", "weight", "lengths", "sizes", "reset")
    given, above = dict(zip(names, case.positional(), strict=False)), case.gradients()
    whole = call_case(case)
    for results in (above, whole):
        for name in {"output", "memory"} & {n for n, value in results.items() if value.dim() == 3}:
            results[name] = results[name].unflatten(-1, (2, -1))
    for rows in fewer(([3], [18, 0, 7, 7, 1, 12, 2, 3, 4]), ([2, 0],)):
        for columns in fewer(COLUMNS, COLUMNS[2:4]):
            part = dict(cut(above, rows, columns))
            part["output"] = part["output"].flatten(-2)
            args = (*dict(cut(given, rows, columns)).values(), *case.positional()[len(names) :])
            expected = dict(cut(whole, rows, columns))
            for name in ("output", "memory"):
                expected[name] = expected[name].flatten(-2) if expected[name].dim() > 2 else expected[name]
            assert_equal(call(args, part), expected)


@pytest.mark.parametrize("cell", NAMES)
def test_packed_is_padded(cell):
    """The rows of a packed sequence come out as those of the padded one."""
    case = Case(cell, fewer(9, 3), fewer(7, 3), 21, "both", "packed", reset=True, dtype=torch.float32)
    x, state, weight, _, _, reset, *how = case.positional()
    above, pad = case.gradients(), case.how().pad
    lengths = torch.tensor(case.lengths)
    padded = call(
        (pad(x), state, weight, lengths, None, pad(reset), *how), above | {"output": pad(above["output"])}
    )
    for name in ("output", "memory", "grad_x"):
        if padded[name].dim() > 1:
            assert not padded[name][~case.real()].any(), f"{name}: padding is not zero"
            padded[name] = padded[name][case.real()]
    assert_equal(call_case(case), padded)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("cell", NAMES)
def test_chunk_by_chunk(cell, dtype):
    """Handing the final state on continues the sequence without a seam."""
    case = Case(cell, 12, 3, 10, dtype=dtype)
    x, state, weight, *_ = case.positional()
    weight = None if weight is None else weight[0]
    whole, final = scan(cell, x, state, weight, Rows(3))
    chunks = []
    for chunk in x.split([1, 4, 0, 7]):
        output, state = scan(cell, chunk, state, weight, Rows(3))
        chunks.append(output)
    assert_equal({"output": torch.cat(chunks), "final": state}, {"output": whole, "final": final})


@pytest.mark.parametrize("cell", NAMES)
def test_reverse_is_forward_turned_round(cell):
    """The backward direction of full rows is the forward one on the sequence turned round."""
    case = Case(cell, 7, 4, 13, dtype=torch.float32)
    x, state, weight, *_ = case.positional()
    weight = None if weight is None else weight[0]
    there, end = scan(cell, x, state, weight, Rows(4), "forward")
    back, start = scan(cell, x.flip(0), state, weight, Rows(4), "reverse")
    assert_equal({"output": back.flip(0), "final": start}, {"output": there, "final": end})


@pytest.fixture
def poisoned_memory():
    """New buffers come filled with NaN."""
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("cell", NAMES)
def test_every_element_is_written(cell, dtype, poisoned_memory):
    """Nothing is left of what stood in a new buffer: not in padding, not for empty rows, not in memory."""
    assert randn(1, dtype=dtype).new_empty(3).isnan().all(), "the poison does not work"
    for hidden in fewer((3, 8, 21), (21,)):
        for case in kinds(cell, steps=5, batch=6, hidden=hidden, dtype=dtype):
            for above in fewer(("output", "final", "both"), ("final",)):
                for name, value in call_case(replace(case, above=above)).items():
                    assert not value.isnan().any(), (name, case)
