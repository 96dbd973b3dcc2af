"""What is this engine's own: how work is cut up, steps read ahead, bad arguments, and that nothing is
copied.
"""

from contextlib import nullcontext

import pytest
import torch
from accelerator import DEVICE, elsewhere
from recurrence.cases import NAMES, ROWS, SOME, Case, assert_as_defined, assert_equal, call, call_case, kinds
from recurrence.processes import python

from lrn.bench.walks import numbers_a_token
from lrn.recurrence import CELLS, Rows, dispatch, scan
from lrn.recurrence.triton import engine
from lrn.recurrence.triton.kernels import Grid
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
def test_tanh_is_rounded_once_where_it_is_large():
    """An error of one unit in the last place there is a large one of the gradient, 1 - tanh²."""
    v = torch.linspace(1.5, 9, 5001)
    x = torch.stack([torch.zeros_like(v), torch.full_like(v, torch.inf), v]).view(1, 1, 1, 3, -1)
    for gates in (x, torch.cat([x[..., :2, :], -x[..., 2:, :]], -2)):
        output, _ = scan("lrn_tanh", gates, gates.new_zeros(1, 1, 1, len(v)), None, Rows(1))
        error = (output.view(-1).double() - gates[..., 2, :].view(-1).double().tanh()).abs()
        assert error.max() <= 0.75 * 2**-24, "0.5 is the last rounding, the rest those of a tenth"


@interpreted
def test_the_gradient_of_a_saturated_step():
    """One of ten thousand drawn problems, whose tanh was off by one unit in the last place."""
    where = {"direction": "reverse", "rows": "packed", "layout": "expanded", "above": "output"}
    assert_as_defined(Case("lrn_tanh", 1, 1, 1, **where, dtype=torch.float32, seed=874471892))


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


# Without a device
# ---------------------------------------------------------------------------------------------


class Recorder:
    """Stands for a kernel: keeps what it is launched with."""

    def __init__(self):
        self.launches = []

    def __getitem__(self, grid):
        return lambda *args, **named: self.launches.append((grid, args, named))


@pytest.mark.accelerator
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("cell", NAMES)
def test_nothing_is_read_back(cell, rows, monkeypatch):
    """On a device whose numbers nobody can read everything is prepared and launched, and all of it is
    there.
    """
    monkeypatch.setattr(engine, "_warp", lambda: 32)
    monkeypatch.setattr(engine, "_device", lambda x: nullcontext())
    launched = {}
    for walk in ("forward", "backward"):
        launched[walk] = Recorder()
        monkeypatch.setattr(engine.kernels, walk, launched[walk])
    case = Case(cell, 4, 3, 40, "both", rows, reset=True, dtype=torch.float32)
    args, above = case.positional()[:9], case.gradients()
    with elsewhere() as move:
        args = [move(a) if isinstance(a, torch.Tensor) and n != 4 else a for n, a in enumerate(args)]
        x, state, weight, *rest = args
        output, memory, final = engine.scan(*args)
        kept = memory if CELLS[cell].parts == 2 else output
        gradients = engine.scan_backward(
            move(above["output"]), move(above["final"]), x, state, weight, kept, *rest
        )
        for made in (output, memory, final, *gradients):
            assert made.device == DEVICE
        for recorder in launched.values():
            ((grid, given, named),) = recorder.launches
            assert grid == (3 * 2 * 2,)  # rows, directions, blocks of 32 columns
            assert named["BLOCK"] == 32
            tensors = [g.data if isinstance(g, Grid) else g for g in given]
            assert all(t.device == DEVICE for t in tensors if isinstance(t, torch.Tensor))


# Traffic
# --------------------------------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("cell", SOME)
def test_traffic(cell, monkeypatch):
    """Bytes that the kernels read and write, counted as they run: at most a tenth above what must be."""
    from triton.runtime.interpreter import InterpreterBuilder

    moved = []

    def counted(original):
        def run(self, pointers, *rest):
            mask = next(r for r in rest if r.data.dtype == bool)
            moved.append(int(mask.data.sum()) * pointers.get_element_ty().primitive_bitwidth // 8)
            return original(self, pointers, *rest)

        return run

    for name in ("create_masked_load", "create_masked_store"):
        monkeypatch.setattr(InterpreterBuilder, name, counted(getattr(InterpreterBuilder, name)))
    steps, hidden = 40, 64
    case = Case(cell, steps, 1, hidden, dtype=torch.float32, above="output")
    args, above = case.positional()[:9], case.gradients()
    x, state, weight, *rest = args
    counts = []
    output, memory, _ = engine.scan(*args)
    counts.append(sum(moved))
    moved.clear()
    kept = memory if CELLS[cell].parts == 2 else output
    engine.scan_backward(above["output"], None, x, state, weight, kept, *rest)
    counts.append(sum(moved))
    for count, numbers in zip(counts, numbers_a_token(cell), strict=True):
        least = numbers * steps * hidden * 4
        assert least <= count <= 1.1 * least


GPU = """
import torch
torch.version.cuda = "13.0"  # as if this torch were built for it
import lrn
from lrn.recurrence import dispatch
print(*lrn.engines())
print(dispatch.choose(torch.device("cuda")), dispatch.choose(torch.device("cpu")))
for op in ("scan", "scan_backward"):
    print(torch._C._dispatch_has_kernel_for_dispatch_key(f"lrn::{op}", "CUDA"))
import sys
print("triton" in sys.modules)
"""


@pytest.mark.skipif(dispatch.INTERPRETED, reason="this is not about the interpreter")
def test_it_is_the_engine_of_gpus():
    """With a torch for GPUs it is registered for their tensors; triton is not imported before one comes."""
    done = python(GPU)
    engines, chosen, *rest = done.stdout.splitlines()
    assert "triton" in engines.split(), done.stderr
    assert chosen.split() == ["triton", "torch" if "cpu" in dispatch.MISSING else "cpu"]
    assert rest == ["True", "True", "False"]
