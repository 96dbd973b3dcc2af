"""Wrong arguments straight to the ops: an error in words, never a crash, never a result."""

import pytest
import torch
from recurrence.cases import Case

from lrn.recurrence import Rows, scan

NAMES = ("x", "state", "weight", "lengths", "batch_sizes", "reset", "cell", "direction", "batch_first")


def good(cell="lrn_tanh", rows="full"):
    case = Case(cell, 4, 3, 5, rows=rows, dtype=torch.float32)
    return dict(zip(NAMES, case.positional(), strict=True))


GOOD, SRU, PACKED = good(), good("sru"), good(rows="packed")
X, STATE, SIZES = GOOD["x"], GOOD["state"], PACKED["batch_sizes"]

BAD = {
    "cell": ("there is no cell 'gru'", {"cell": "gru"}),
    "no cell": ("there is no cell ''", {"cell": ""}),
    "direction": ("direction must be forward, reverse or both, got 'up'", {"direction": "up"}),
    "both": ("x does not fit lrn_tanh, both", {"direction": "both"}),
    "gates": ("x does not fit", {"x": torch.zeros(4, 3, 1, 4, 5)}),
    "flat x": ("x must have 5 dimensions, got 3", {"x": torch.zeros(4, 3, 15)}),
    "a number for x": ("x must have 5 dimensions, got 0", {"x": torch.tensor(1.0)}),
    "no dimension too many": ("x must have 5 dimensions, got 6", {"x": X[None]}),
    "whole numbers": ("float32, float64, bfloat16 or float16", {"x": X.long()}),
    "complex": ("float32, float64, bfloat16 or float16", {"x": X.to(torch.complex64)}),
    "flat state": ("state must have 4 dimensions, got 2", {"state": torch.zeros(3, 5)}),
    "a number for state": ("state must have 4 dimensions, got 0", {"state": torch.tensor(0.0)}),
    "wide state": ("state does not fit x", {"state": torch.zeros(1, 1, 3, 6)}),
    "parts": ("state does not fit x", {"state": torch.zeros(2, 1, 3, 5)}),
    "batch": ("another batch size", {"state": torch.zeros(1, 1, 2, 5)}),
    "batch first": ("another batch size", {"batch_first": True}),
    "types": ("state must be on the CPU and of x's type", {"state": STATE.double()}),
    "half state": ("state must be on the CPU and of x's type", {"state": STATE.half()}),
    "long lengths": ("from 0 to 4, got 5", {"lengths": torch.tensor([4, 5, 0])}),
    "negative lengths": ("from 0 to 4, got -1", {"lengths": torch.tensor([4, -1, 0])}),
    "huge lengths": ("from 0 to 4, got", {"lengths": torch.tensor([4, 2**62, 0])}),
    "few lengths": ("one entry a row", {"lengths": torch.tensor([4, 1])}),
    "square lengths": ("of one dimension", {"lengths": torch.ones(3, 1, dtype=torch.long)}),
    "int32 lengths": ("must be int64", {"lengths": torch.tensor([1, 2, 3], dtype=torch.int32)}),
    "float lengths": ("must be int64", {"lengths": torch.tensor([1.0, 2, 3])}),
    "reset of another type": ("reset must be bool", {"reset": torch.zeros(4, 3, dtype=torch.uint8)}),
    "reset of another shape": ("x's leading dimensions", {"reset": torch.zeros(3, 4, dtype=torch.bool)}),
    "flat reset": ("reset must be", {"reset": torch.zeros(12, dtype=torch.bool)}),
    "a weight that is not read": ("weight", {"weight": torch.zeros(3, 1, 2, 5)}),
}

BAD_SRU = {
    "no weight": ("sru needs weight", {"weight": None}),
    "weight without rows": ("sru needs weight", {"weight": torch.zeros(1, 2, 5)}),
    "one vector": ("sru needs weight", {"weight": torch.zeros(3, 1, 1, 5)}),
    "narrow weight": ("sru needs weight", {"weight": torch.zeros(3, 1, 2, 4)}),
    "weight of another type": ("weight must be", {"weight": SRU["weight"].double()}),
    "state without c": ("state does not fit x", {"state": STATE}),
}

BAD_PACKED = {
    "rising sizes": (
        "positive and not increase",
        {"batch_sizes": SIZES.flip(0) + torch.tensor([0, 1, 2, 3])},
    ),
    "an empty step": ("positive and not increase", {"batch_sizes": torch.tensor([3, 2, 0, 0])}),
    "negative sizes": ("positive and not increase", {"batch_sizes": torch.tensor([3, -1])}),
    "larger than the batch": ("positive and not increase", {"batch_sizes": torch.tensor([4, 1])}),
    "too few rows": ("add up to 2", {"batch_sizes": torch.tensor([1, 1])}),
    "no steps": ("add up to 0", {"batch_sizes": SIZES[:0]}),
    "int32 sizes": ("must be int64", {"batch_sizes": SIZES.int()}),
    "lengths too": ("exclude each other", {"lengths": torch.tensor([1, 2, 3])}),
    "padded x": ("x must have 4 dimensions", {"x": X}),
    "padded reset": ("reset must be", {"reset": torch.zeros(4, 3, dtype=torch.bool)}),
}


def cases():
    for args, bad in ((GOOD, BAD), (SRU, BAD_SRU), (PACKED, BAD_PACKED)):
        for name, (words, change) in bad.items():
            yield pytest.param(args | change, words, id=name)


@pytest.mark.parametrize(("args", "words"), list(cases()))
def test_scan(args, words):
    with pytest.raises(RuntimeError, match=words):
        torch.ops.lrn.scan(*args.values())


@pytest.mark.parametrize(("args", "words"), list(cases()))
def test_scan_backward(args, words):
    """The gradient checks the same arguments anew: nobody promises that scan has run before."""
    grad = torch.zeros(4, 3, 5)
    x, state, weight, *rest = args.values()
    with pytest.raises(RuntimeError, match=words):
        torch.ops.lrn.scan_backward(grad, None, x, state, weight, grad, *rest)


BAD_GRADIENTS = {
    "memory": ("memory does not fit x", {"memory": torch.zeros(4, 3, 6)}),
    "short memory": ("memory does not fit x", {"memory": torch.zeros(3, 3, 5)}),
    "empty memory": ("memory does not fit x", {"memory": torch.zeros(0)}),
    "memory of another type": ("memory must be", {"memory": torch.zeros(4, 3, 5).double()}),
    "grad_output": ("grad_output does not fit x", {"grad_output": torch.zeros(4, 3, 4)}),
    "flat grad_output": ("grad_output does not fit x", {"grad_output": torch.zeros(60)}),
    "grad_output of another type": ("grad_output must be", {"grad_output": torch.zeros(4, 3, 5).half()}),
    "grad_final": ("grad_final does not fit state", {"grad_final": torch.zeros(1, 1, 3, 4)}),
    "flat grad_final": ("grad_final does not fit state", {"grad_final": torch.zeros(3, 5)}),
    "grad_final of another type": ("grad_final must be", {"grad_final": STATE.double()}),
}


@pytest.mark.parametrize(("words", "change"), BAD_GRADIENTS.values(), ids=BAD_GRADIENTS.keys())
def test_gradients(words, change):
    args = {"grad_output": torch.zeros(4, 3, 5), "grad_final": STATE, "x": X, "state": STATE, "weight": None}
    args |= {"memory": torch.zeros(4, 3, 5)} | {name: GOOD[name] for name in NAMES[3:]}
    torch.ops.lrn.scan_backward(*args.values())
    with pytest.raises(RuntimeError, match=words):
        torch.ops.lrn.scan_backward(*(args | change).values())


def test_no_gradient_at_all():
    """Neither gradient given: the result is zero."""
    output, _, _ = torch.ops.lrn.scan(*GOOD.values())
    x, state, weight, *rest = GOOD.values()
    grad_x, grad_state, _ = torch.ops.lrn.scan_backward(None, None, x, state, weight, output, *rest)
    assert not grad_x.any()
    assert not grad_state.any()


def test_scan_checks_for_itself():
    """What ``lrn.recurrence.scan`` is given wrong comes back in the op's words."""
    with pytest.raises(RuntimeError, match="there is no cell 'lrn'"):
        scan("lrn", GOOD["x"], STATE, None, Rows(3))
    with pytest.raises(RuntimeError, match="another batch size"):
        scan("lrn_tanh", GOOD["x"], STATE[:, :, :2], None, Rows(2))


# Outputs that are given, to be written into ---------------------------------------------------------------

BAD_OUTPUTS = {
    "expanded features": torch.zeros(4, 3, 1).expand(4, 3, 5),
    "features apart": torch.zeros(4, 5, 3).transpose(1, 2),
    "every second feature": torch.zeros(4, 3, 10)[..., ::2],
    "expanded rows": torch.zeros(4, 1, 5).expand(4, 3, 5),
    "expanded steps": torch.zeros(1, 3, 5).expand(4, 3, 5),
    "rows that overlap": torch.zeros(60).as_strided((4, 3, 5), (15, 3, 1)),
    "steps that overlap rows": torch.zeros(60).as_strided((4, 3, 5), (5, 5, 1)),
}
GOOD_OUTPUTS = {
    "plain": torch.zeros(4, 3, 5),
    "part of a wider one": torch.zeros(4, 3, 9)[..., 2:7],
    "transposed": torch.zeros(3, 4, 5).transpose(0, 1),
    "part of a longer one": torch.zeros(9, 3, 5)[2:6],
    "every second step": torch.zeros(8, 3, 5)[::2],
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
@pytest.mark.parametrize("which", ["output", "memory"])
def test_outputs_that_cannot_be_written(which, name):
    """Neighbouring features must be neighbours in memory, and no two rows the same: else it is refused."""
    places = {"output": torch.zeros(4, 3, 5), "memory": torch.zeros(4, 3, 5)} | {which: BAD_OUTPUTS[name]}
    with pytest.raises(RuntimeError, match=f"{which} must have adjacent features and rows of their own"):
        torch.ops.lrn.scan_into(*SRU.values(), *places.values())
    assert not BAD_OUTPUTS[name].any()


@pytest.mark.parametrize("name", GOOD_OUTPUTS)
def test_outputs_that_can_be_written(name):
    """Parts of larger tensors are what it is for."""
    output, memory = GOOD_OUTPUTS[name], torch.zeros(4, 3, 5)
    final = torch.ops.lrn.scan_into(*SRU.values(), output, memory)
    expected = torch.ops.lrn.scan(*SRU.values())
    for one, other in zip((output, memory, final), expected, strict=True):
        assert torch.equal(one, other)


def test_outputs_of_one_row_or_feature():
    """Strides of dimensions with one entry mean nothing."""
    case = Case("lrn_tanh", 1, 1, 1, dtype=torch.float32)
    output = torch.zeros(3).as_strided((1, 1, 1), (0, 7, 9))
    torch.ops.lrn.scan_into(*case.positional(), output, torch.zeros(0))
    assert torch.equal(output, torch.ops.lrn.scan(*case.positional())[0])
