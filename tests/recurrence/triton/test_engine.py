"""What is this engine's own: how work is cut up, steps read ahead, bad arguments, and that nothing is
copied.
"""

import pytest
import torch
from recurrence.cases import SOME, Case, assert_equal, call, call_case, kinds

from lrn.recurrence import dispatch
from lrn.recurrence.triton import engine
from lrn.recurrence.triton.plan import TABLE, Plan, plan

interpreted = pytest.mark.skipif(not dispatch.INTERPRETED, reason="runs in the interpreter's process")


@interpreted
@pytest.mark.parametrize("cell", SOME)
@pytest.mark.parametrize("cut", [Plan(4, 1), Plan(4, 2), Plan(8, 4), Plan(16, 7)], ids=str)
def test_any_cut_gives_the_same(cell, cut, monkeypatch):
    """Several blocks to a row, the last one not full, and any number of steps read ahead, rows shorter
    than it.
    """
    for case in kinds(cell, hidden=9, dtype=torch.float32)[1:]:
        expected = call_case(case)
        with monkeypatch.context() as patch:
            patch.setattr(engine, "plan", lambda *sizes: cut)
            assert_equal(call_case(case), expected)


@interpreted
def test_lengths_out_of_range_lead_nowhere():
    """They are not read back to be refused: a row is taken to be as long as it can be."""
    case = Case("lrn_tanh", 3, 2, 5, rows="lengths", dtype=torch.float32)
    x, state, weight, _, *rest = case.positional()
    x = x.nan_to_num(0)
    wrong = call((x, state, weight, torch.tensor([1000, -7]), *rest), {})
    right = call((x, state, weight, torch.tensor([3, 0]), *rest), {})
    assert_equal(wrong, right)


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("warp", [32, 64])
@pytest.mark.parametrize("hidden", [1, 31, 33, 75, 128, 300, 1024, 5000])
def test_plans(hidden, warp, size):
    """Blocks are powers of two that fit their warps, and no wider than the row needs."""
    for elements in (hidden, 1 << 16, 1 << 18, 1 << 24):
        cut = plan(elements, hidden, 100, size, warp)
        assert cut.block & (cut.block - 1) == 0
        assert cut.block >= warp
        assert cut.block < 2 * max(hidden, warp)
        assert cut.block * size // warp <= 16, "more than one load a thread"
    assert plan(1 << 20, 1024, 1, size).ahead == 1


def test_the_table_of_plans():
    assert [line[0] for line in TABLE] == sorted((line[0] for line in TABLE), reverse=True)
    assert TABLE[-1][0] == 0


# Bad arguments --------------------------------------------------------------------------------------------

GOOD = {
    "x": torch.zeros(4, 2, 1, 3, 5),
    "state": torch.zeros(1, 1, 2, 5),
    "weight": None,
    "lengths": torch.tensor([4, 2]),
    "batch_sizes": None,
    "reset": torch.zeros(4, 2, dtype=torch.bool),
    "cell": "lrn_tanh",
    "direction": "forward",
    "batch_first": False,
}
SIZES = {"lengths": None, "x": torch.zeros(3, 1, 3, 5), "reset": None}
BAD = {
    "cell": ("there is no cell 'atr_tanh'", {"cell": "atr_tanh"}),
    "direction": ("direction must be forward, reverse or both, got 'up'", {"direction": "up"}),
    "type": ("must be float32, float64, bfloat16 or float16", {"x": GOOD["x"].long()}),
    "dimensions": ("x must have 5 dimensions, got 4", {"x": torch.zeros(4, 2, 3, 5)}),
    "state's dimensions": ("state must have 4 dimensions, got 3", {"state": torch.zeros(1, 2, 5)}),
    "gates": ("x does not fit lrn_tanh, forward", {"x": torch.zeros(4, 2, 1, 4, 5)}),
    "directions": ("x does not fit lrn_tanh, both", {"direction": "both"}),
    "state": ("state does not fit x", {"state": torch.zeros(2, 1, 2, 5)}),
    "batch": ("state has another batch size than x", {"state": torch.zeros(1, 1, 3, 5)}),
    "mixed": ("state must be on cpu and of x's type", {"state": GOOD["state"].double()}),
    "weight": ("lrn_tanh has no vectors, weight must be None", {"weight": torch.zeros(2, 1, 2, 5)}),
    "lengths' type": ("lengths must be int64", {"lengths": torch.tensor([4.0, 2])}),
    "lengths' number": ("lengths must have one entry a row", {"lengths": torch.tensor([4])}),
    "reset": ("reset must be bool", {"reset": torch.zeros(4, 2)}),
    "both": ("lengths and batch_sizes exclude", {"batch_sizes": torch.tensor([2, 1]), "x": SIZES["x"]}),
    "sizes grow": ("not increase", SIZES | {"batch_sizes": torch.tensor([1, 2])}),
    "sizes of zero": ("positive", SIZES | {"batch_sizes": torch.tensor([2, 1, 0])}),
    "sum": ("batch_sizes add up to 4, x has 3 rows", SIZES | {"batch_sizes": torch.tensor([2, 2])}),
    "no vectors": (
        "sru needs weight \\[B, D, 2, H\\]",
        {"cell": "sru", "x": torch.zeros(4, 2, 1, 4, 5), "state": torch.zeros(2, 1, 2, 5)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    says, change = BAD[name]
    with pytest.raises(RuntimeError, match=f"^lrn: .*{says}"):
        engine.scan(*(GOOD | change).values())


def test_bad_gradients():
    x, state, weight, *rest = GOOD.values()
    output = torch.zeros(4, 2, 5)
    for args, says in (
        ((output[1:], None, output), "grad_output does not fit x"),
        ((None, state[:, :, :1], output), "grad_final does not fit state"),
        ((output, None, output[..., :3]), "memory does not fit x"),
        ((output.double(), None, output), "grad_output must be on cpu and of x's type"),
    ):
        *above, memory = args
        with pytest.raises(RuntimeError, match=says):
            engine.scan_backward(*above, x, state, weight, memory, *rest)
