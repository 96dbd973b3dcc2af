"""Every op in ONNX gives what it gives in torch: all cells, all layouts, sizes that were not there before."""

from __future__ import annotations

import pytest
import torch
from helpers import randn
from onnx_files import OpModel
from torch.nn.utils.rnn import pack_padded_sequence

import lrn
from lrn.onnx import ops
from lrn.recurrence.cells import CELLS, MATRIX_CELLS, REVERSE

H = 5
SIZES = ((4, 3), (9, 2), (1, 1), (2, 17))
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": True},
    "reset": {"reset": True},
    "reverse": {"direction": "reverse", "lengths": True, "reset": True},
    "both": {"direction": "both"},
    "all": {"direction": "both", "lengths": True, "reset": True},
    "batch_first": {"direction": "both", "lengths": True, "reset": True, "batch_first": True},
    "packed": {"direction": "both", "packed": True, "reset": True},
}

every_option = pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)


def same(found, expected, atol=2e-6):
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


def rows(option, steps, batch, width, dtype):
    """A sequence of so many numbers a step, and how its rows lie: lengths, batch sizes, reset."""
    x = randn(steps, batch, width, dtype=dtype)
    reset = randn(steps, batch, seed=5) > 0.6
    ends = torch.tensor([(3 * b + steps) % (steps + 1) for b in range(batch)])
    if option.get("packed"):
        ends = ends.clamp_min(1).sort(descending=True).values
        packed, marks = (pack_padded_sequence(value, ends) for value in (x, reset))
        return packed.data, None, packed.batch_sizes, marks.data
    if option.get("batch_first"):
        x, reset = x.transpose(0, 1).contiguous(), reset.transpose(0, 1).contiguous()
    return x, ends if option.get("lengths") else None, None, reset if option.get("reset") else None


def state_of(parts, ways, batch, dtype):
    return randn(parts, ways, batch, H, seed=2, dtype=dtype)


def free(option, given, batch_axes):
    """Which sizes of each tensor are free: those of the rows, and the batch where it is another."""
    leading = (0,) if option.get("packed") else (0, 1)
    kinds = {"rows": leading, "state": (2,), "batch": (0,), "none": ()}
    return [
        kinds[name] for name, value in zip(batch_axes, given, strict=False) if isinstance(value, torch.Tensor)
    ]


def scan_given(cell, option, steps, batch, dtype=torch.float32):
    known, direction = CELLS[cell], option.get("direction", "forward")
    ways = len(REVERSE[direction])
    x, lengths, sizes, reset = rows(option, steps, batch, ways * known.gates * H, dtype)
    x = x.unflatten(-1, (ways, known.gates, H))
    weight = randn(ways, known.vectors, H, seed=3, dtype=dtype) if known.vectors else None
    weight = None if weight is None else weight.expand(batch, *weight.shape)
    how = (cell, direction, option.get("batch_first", False))
    return x, state_of(known.parts, ways, batch, dtype), weight, lengths, sizes, reset, *how


SCAN = ("rows", "state", "batch", "batch", "batch", "rows")


@every_option
@pytest.mark.parametrize("cell", CELLS)
def test_scan(cell, option):
    """With free sizes, in one Scan; what SRU keeps of every step is what is real of the engine's."""
    given = scan_given(cell, option, 4, 3)
    model = OpModel(ops.scan, given, free(option, given, SCAN))
    assert model.kinds.count("Scan") == 1
    for sizes in SIZES:
        given = scan_given(cell, option, *sizes)
        output, memory, final = model(*given)
        expected = torch.ops.lrn.scan(*given)
        same([output, final], [expected[0], expected[2]])
        if CELLS[cell].parts == 1:
            assert memory.shape == (0,)
        elif not option.get("lengths"):
            same([memory], [expected[1]])


@pytest.mark.parametrize("cell", CELLS)
def test_one_step_needs_no_loop(cell):
    option = OPTIONS["all"]
    given = scan_given(cell, option, 1, 3)
    fixed = [(1,), (2,), (0,), (0,), (1,)] if given[2] is not None else [(1,), (2,), (0,), (1,)]
    model = OpModel(ops.scan, given, fixed)
    assert "Scan" not in model.kinds
    for batch in (3, 1, 8):
        given = scan_given(cell, option, 1, batch)
        output, _, final = model(*given)
        expected = torch.ops.lrn.scan(*given)
        same([output, final], [expected[0], expected[2]])


def test_scan_in_float64():
    given = scan_given("lrn_tanh", OPTIONS["all"], 4, 3, torch.float64)
    output, _, final = OpModel(ops.scan, given, free(OPTIONS["all"], given, SCAN))(*given)
    expected = torch.ops.lrn.scan(*given)
    same([output, final], [expected[0], expected[2]], atol=1e-12)


def atr_given(option, steps, batch, keep, bias=True):
    direction = option.get("direction", "forward")
    ways = len(REVERSE[direction])
    x, lengths, sizes, reset = rows(option, steps, batch, ways * H, torch.float32)
    weight = randn(ways, H, H, seed=3, dtype=torch.float32)
    b = randn(ways, H, seed=4, dtype=torch.float32) if bias else None
    how = ("tanh", direction, option.get("batch_first", False), keep)
    x = x.unflatten(-1, (ways, 1, H))
    return x, state_of(1, ways, batch, torch.float32), weight, b, lengths, sizes, reset, *how


ATR = ("rows", "state", "none", "none", "batch", "batch", "rows")


@pytest.mark.parametrize("keep", [True, False])
@every_option
def test_atr(option, keep):
    given = atr_given(option, 4, 3, keep, bias=keep)
    model = OpModel(ops.atr, given, free(option, given, ATR))
    for sizes in SIZES:
        given = atr_given(option, *sizes, keep, bias=keep)
        output, q, final = model(*given)
        expected = torch.ops.lrn.atr(*given)
        same([output, final], [expected[0], expected[2]])
        if not keep:
            assert q.shape == (0,)
        elif not option.get("lengths"):
            same([q], [expected[1]])


def walk_given(cell, norm, option, steps, batch):
    known, direction = MATRIX_CELLS[cell], option.get("direction", "forward")
    ways = len(REVERSE[direction])
    x, lengths, sizes, reset = rows(option, steps, batch, ways * known.gates * H, torch.float32)
    weight = randn(ways, known.gates * H, H, seed=3, dtype=torch.float32)
    scale, bias = (randn(ways, known.gates * H, seed=s, dtype=torch.float32) for s in (6, 7))
    how = (cell, norm, direction, option.get("batch_first", False))
    state = state_of(known.parts, ways, batch, torch.float32)
    return x, state, weight, bias, scale if norm else None, lengths, sizes, reset, *how


WALK = ("rows", "state", "none", "none", "none", "batch", "batch", "rows")


@pytest.mark.parametrize("norm", [None, "layer", "rms"])
@pytest.mark.parametrize("cell", MATRIX_CELLS)
def test_walk(cell, norm):
    """From zeros, too, of which a norm must not make something that is no number."""
    for option in (OPTIONS["plain"], OPTIONS["batch_first"], OPTIONS["packed"]):
        given = walk_given(cell, norm, option, 4, 3)
        model = OpModel(ops.walk, given, free(option, given, WALK))
        for sizes in SIZES:
            given = walk_given(cell, norm, option, *sizes)
            same(model(*given), torch.ops.lrn.walk(*given))
            nothing = (given[0], torch.zeros_like(given[1]), *given[2:])
            same(model(*nothing), torch.ops.lrn.walk(*nothing))


def fused_given(cell, option, steps, batch, dtype=torch.float32, bias="one"):
    """With one bias, with a second one for the hidden state's products as well, or without."""
    known, direction = MATRIX_CELLS[cell], option.get("direction", "forward")
    ways, width = len(REVERSE[direction]), 3
    x, lengths, sizes, _ = rows(option, steps, batch, width, dtype)
    wide = known.gates * H
    shapes = ((ways, wide, width), (ways, wide, H), (ways, wide), (ways, wide))
    *weights, b, second = (randn(*shape, seed=n, dtype=dtype) for n, shape in enumerate(shapes, 3))
    biases = (None if bias == "none" else b, second if bias == "two" else None)
    how = (cell, option.get("batch_first", False))
    return x, state_of(known.parts, ways, batch, dtype), *weights, *biases, lengths, sizes, *how


FUSED = ("rows", "state", "none", "none", "none", "none", "batch", "batch")


@pytest.mark.parametrize("bias", ["one", "two", "none"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_fused_is_their_own(cell, bias):
    """Rows without steps, which ONNX leaves open, keep their state."""
    for name in ("plain", "lengths", "both", "batch_first", "packed"):
        option = OPTIONS[name]
        given = fused_given(cell, option, 4, 3, bias=bias)
        model = OpModel(ops.fused, given, free(option, given, FUSED))
        assert model.kinds.count(cell.upper()) == 1
        assert "Scan" not in model.kinds
        for sizes in SIZES:
            given = fused_given(cell, option, *sizes, bias=bias)
            same(model(*given), torch.ops.lrn.fused(*given))


@pytest.mark.parametrize("bias", ["one", "two"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_fused_in_float64(cell, bias):
    """For which onnxruntime has neither."""
    option = OPTIONS["batch_first"]
    given = fused_given(cell, option, 4, 3, torch.float64, bias)
    model = OpModel(ops.fused, given, free(option, given, FUSED))
    assert model.kinds.count("Scan") == 1
    for sizes in SIZES:
        given = fused_given(cell, option, *sizes, torch.float64, bias)
        same(model(*given), torch.ops.lrn.fused(*given), atol=1e-12)


@pytest.mark.parametrize("lengths", [(3, 2), (1, 0, 4)])
def test_attend(lengths):
    """A sequence of nothing gives zeros."""
    rows, width = sum(lengths), 6
    starts = torch.tensor([0, *lengths]).cumsum(0)
    keys, values = (randn(rows, width, seed=n, dtype=torch.float32) for n in (1, 2))
    query = randn(len(lengths), width, seed=3, dtype=torch.float32)
    score = randn(3, seed=4, dtype=torch.float32)
    given = (query, score, keys, values, starts, max(lengths))
    model = OpModel(ops.attend, given, [(0,), (), (0,), (0,), (0,)])
    same(model(*given), torch.ops.lrn.attend(*given))


@pytest.mark.parametrize("eps", [1e-8, None])
def test_rms_norm(eps):
    """Zeros stay zeros."""
    x = randn(4, 3, dtype=torch.float32)
    x[1] = 0
    weight = randn(3, seed=2, dtype=torch.float32)
    given = (x, [3], weight, eps)
    model = OpModel(lambda *args: (ops.rms_norm(*args),), given, [(0,), ()])
    same(model(*given), [torch.nn.functional.rms_norm(*given)])


def test_every_cell_has_its_step():
    from lrn.onnx.cells import MATRIX_STEPS, STEPS

    assert STEPS.keys() == CELLS.keys()
    assert MATRIX_STEPS.keys() == MATRIX_CELLS.keys()
    assert lrn.UNITS
