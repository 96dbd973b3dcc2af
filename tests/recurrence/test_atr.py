"""ATR on the engine: a matrix inside the recurrence, everything else as for the other cells."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence.cases import TOLERANCE, WIDTHS, Case, assert_close, assert_equal, here, kinds, problems, randn
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import lrn
from lrn.recurrence import Rows, walk_atr
from lrn.recurrence.atr import definition

OP = "atr"  # what an engine must have for these tests
DTYPES = (torch.float64, torch.float32)
ACTIVATIONS = ("tanh", "identity")
QUICK = ("test_schema", "test_autograd_registration", "test_faketensor")
ATR_LIKE = "elrn_tanh"  # a cell whose x and state have ATR's shapes


@dataclass(frozen=True)
class AtrCase(Case):
    activation: str = "tanh"
    bias: bool = True

    @classmethod
    def of(cls, case: Case, **more) -> AtrCase:
        return cls(**vars(case), **more)

    def inputs(self) -> dict[str, Tensor]:
        """With a matrix that neither swells nor drowns the state."""
        shape = (self.directions, self.hidden, self.hidden)
        weight = (randn(*shape, seed=self.seed + 8) / (2 * self.hidden**0.5)).to(self.dtype)
        if self.layout == "apart":
            weight = weight.transpose(1, 2).contiguous().transpose(1, 2)
        values = super().inputs() | {"weight": weight}
        if self.bias:
            values["bias"] = randn(*shape[:2], seed=self.seed + 9).to(self.dtype)
        return values

    def args(self, keep: bool = True) -> tuple:
        """The arguments of ``torch.ops.lrn.atr``."""
        values, how = self.inputs(), self.how()
        return (
            *(values["x"], values["state"], values["weight"], values.get("bias")),
            *(how.lengths, how.batch_sizes, how.reset, self.activation, self.direction, self.batch_first),
            keep,
        )

    def backward_args(self) -> tuple:
        """The arguments of ``torch.ops.lrn.atr_backward``."""
        args, above = self.args(), self.gradients()
        output, q, _ = torch.ops.lrn.atr(*args)
        return above.get("output"), above.get("final"), *args[:4], output, q, *args[4:-1]


def call(case: AtrCase) -> dict[str, Tensor]:
    """All that the two ops give, straight from them."""
    results = *torch.ops.lrn.atr(*case.args()), *torch.ops.lrn.atr_backward(*case.backward_args())
    names = ("output", "q", "final", "grad_x", "grad_state", "grad_weight", "grad_bias")
    return dict(zip(names, results, strict=True))


def call_definition(case: AtrCase) -> dict[str, Tensor]:
    """The same from the definition, in float64; ``q`` is its own business."""
    values = {name: value.double().requires_grad_() for name, value in case.inputs().items()}
    bias = values.get("bias")
    output, final = definition(
        case.activation, values["x"], values["state"], values["weight"], bias, case.how(), case.direction
    )
    results = {"output": output, "final": final}
    above = {name: g.double() for name, g in case.gradients().items() if results[name].requires_grad}
    gradients = [torch.zeros_like(value) for value in values.values()]
    if above:
        wanted = [results[name] for name in above]
        gradients = torch.autograd.grad(
            wanted, list(values.values()), list(above.values()), materialize_grads=True
        )
    results |= {f"grad_{name}": g for name, g in zip(values, gradients, strict=True)}
    return {name: value.detach() for name, value in results.items()}


def assert_as_defined(case: AtrCase) -> None:
    expected = call_definition(case)
    actual = {name: value for name, value in call(case).items() if name in expected}
    assert {value.dtype for value in actual.values()} == {case.dtype}
    assert_close(actual, expected, TOLERANCE[case.dtype])


def atr_kinds(**given) -> list[AtrCase]:
    return [
        AtrCase.of(case, activation=ACTIVATIONS[n % 2], bias=n != 2)
        for n, case in enumerate(kinds(ATR_LIKE, **given))
    ]


# The same as the definition ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@given(data=st.data())
@settings(max_examples=40)
def test_drawn_problems(activation, dtype, data):
    """Any sizes, any layout, any kind of rows, gradients from either result or both."""
    case = data.draw(problems(ATR_LIKE, dtype))
    assert_as_defined(AtrCase.of(case, activation=activation, bias=data.draw(st.booleans())))


@pytest.mark.parametrize("hidden", WIDTHS)
def test_every_width(hidden):
    """Around the width of a vector and of a panel: the last, partial panel and the narrow row."""
    for dtype in DTYPES:
        for case in atr_kinds(steps=3, batch=5, hidden=hidden, dtype=dtype):
            assert_as_defined(case)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [*range(1, 15), 64, 65, 131, 200])
def test_every_number_of_rows(batch, threads):
    """Rows are taken up to six at a time, and up to 64 to a tile."""
    torch.set_num_threads(threads)
    for dtype in DTYPES:
        assert_as_defined(AtrCase(ATR_LIKE, 3, batch, 37, "both", "lengths", reset=True, dtype=dtype))


def test_long_and_wide():
    """A whole training batch, and a matrix beyond the nearer caches."""
    assert_as_defined(AtrCase(ATR_LIKE, 200, 4, 64, "both", "lengths", reset=True))
    assert_as_defined(AtrCase(ATR_LIKE, 4, 3, 700, "both", dtype=torch.float32))


@pytest.mark.parametrize(
    "options", [{}, {"bidirectional": True}, {"bias": False}, {"batch_first": True}], ids=str
)
def test_unit(options):
    """The unit on the engine is the unit on plain torch, all parameters included."""
    torch.manual_seed(0)
    unit = lrn.ATR(3, 20, 2, dtype=torch.float64, **options)
    x = randn(6, 6, 3).requires_grad_()
    lengths, reset = [6, 0, 3, 1, 6, 5], randn(6, 6, seed=3) > 0.5
    results = []
    for engine in (here.engine, "torch"):
        with lrn.engine(engine):
            output, final = unit(x, lengths=lengths, reset=reset)
        gradients = torch.autograd.grad(output.sin().sum() + final.cos().sum(), [x, *unit.parameters()])
        results.append({"output": output, "final": final} | {f"grad_{n}": g for n, g in enumerate(gradients)})
    assert_close(*results, TOLERANCE[torch.float64])


def test_nothing_to_do():
    """No steps, no rows: the state passes through, gradients are zeros."""
    for case in (AtrCase(ATR_LIKE, 0, 3, 5), AtrCase(ATR_LIKE, 4, 0, 5), AtrCase(ATR_LIKE, 0, 0, 5)):
        assert_as_defined(case)
        results = call(case)
        assert not results["grad_weight"].any()
        assert not results["grad_bias"].any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_infinite_and_nan(activation):
    """Where the definition gives infinity or NaN, so does the engine; other rows do not notice."""
    case = AtrCase(ATR_LIKE, 4, 5, 9, activation=activation)
    x, state, weight, bias, *_ = case.args()
    x[1, 2, 0, 0, 3], x[2, 4, 0, 0, 0] = torch.nan, torch.inf
    with lrn.engine("torch"):
        expected = walk_atr(activation, x, state, weight, bias, Rows(5))
    actual = walk_atr(activation, x, state, weight, bias, Rows(5))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12, equal_nan=True)
    assert actual[0][:, [0, 1, 3]].isfinite().all()


# Gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", range(4))
def test_gradcheck(kind):
    """First and second gradient against finite differences."""
    case = atr_kinds(steps=3, batch=2, hidden=3)[kind]
    values, rows = case.inputs(), case.how()
    values["x"] = values["x"].nan_to_num()  # or the differences would step into NaN
    leaves = [value.requires_grad_() for value in values.values()]

    def run(x, state, weight, bias=None):
        return walk_atr(case.activation, x, state, weight, bias, rows, case.direction)

    assert torch.autograd.gradcheck(run, leaves)
    assert torch.autograd.gradgradcheck(run, leaves)


def test_torch_func():
    """Inside torch.func's transforms the plain walk runs, and gives the same."""
    torch.manual_seed(0)
    unit = lrn.ATR(3, 4, dtype=torch.float64)
    x = randn(5, 2, 3)
    parameters = dict(unit.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(unit, parameters, (x,))[0].sin().sum()

    expected = torch.autograd.grad(loss(parameters, x), list(parameters.values()))
    actual = torch.func.grad(loss)(parameters, x)
    for one, other in zip(actual.values(), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    many = randn(3, 5, 2, 3)
    mapped = torch.func.vmap(lambda x: unit(x)[0])(many)
    torch.testing.assert_close(mapped, torch.stack([unit(x)[0] for x in many]), rtol=0, atol=1e-12)


def test_batched_gradients():
    """``is_grads_batched`` pulls several gradients back at once."""
    case = atr_kinds()[1]
    values = [value.nan_to_num().requires_grad_() for value in case.inputs().values()]
    output, _ = walk_atr(case.activation, *values, case.how(), case.direction)
    above = randn(3, *output.shape)
    together = torch.autograd.grad(output, values, above, is_grads_batched=True, retain_graph=True)
    for n, one in enumerate(above):
        alone = torch.autograd.grad(output, values, one, retain_graph=True)
        torch.testing.assert_close(tuple(g[n] for g in together), alone, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mode", ["plain", "tracked", "no_grad"])
def test_forward_mode(mode):
    """Tangents come out right, with or without reverse mode beside them."""
    values, tangents = {}, {}
    for name, value in AtrCase(ATR_LIKE).inputs().items():
        values[name], tangents[name] = value.requires_grad_(mode == "tracked"), value.detach().sin()
    results = []
    for engine in (here.engine, "torch"):
        with forward_ad.dual_level(), torch.set_grad_enabled(mode != "no_grad"), lrn.engine(engine):
            duals = [forward_ad.make_dual(values[name], tangents[name]) for name in values]
            results.append(forward_ad.unpack_dual(walk_atr("tanh", *duals, Rows(3))[0]).tangent)
    assert results[0].any()
    torch.testing.assert_close(*results, rtol=0, atol=1e-12)


# torch's rules -------------------------------------------------------------------------------------------


def differentiable(args):
    number = lambda value: isinstance(value, Tensor) and value.is_floating_point()  # noqa: E731
    return tuple(value.detach().requires_grad_() if number(value) else value for value in args)


@pytest.mark.parametrize("kind", range(4))
def test_opcheck(kind):
    """Schema, fake, autograd and compile with dynamic shapes: torch's own checks."""
    case = atr_kinds(steps=3, batch=2, hidden=5)[kind]
    torch.library.opcheck(torch.ops.lrn.atr.default, differentiable(case.args()))
    torch.library.opcheck(torch.ops.lrn.atr.default, case.args(keep=False), test_utils=QUICK)
    torch.library.opcheck(torch.ops.lrn.atr_backward.default, case.backward_args())
    torch.library.opcheck(
        torch.ops.lrn.atr_backward.default, differentiable(case.backward_args()), test_utils=QUICK
    )


@pytest.mark.parametrize("layout", ["plain", "transposed", "sliced", "expanded", "apart"])
def test_fake_strides(layout):
    """Compiled code trusts the strides that the fake ops promise."""
    for case in atr_kinds(layout=layout):
        for op, args in (("atr", case.args()), ("atr_backward", case.backward_args())):
            real = getattr(torch.ops.lrn, op)(*args)
            with FakeTensorMode() as mode:
                args = [mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
                promised = getattr(torch.ops.lrn, op)(*args)
            for one, other in zip(promised, real, strict=True):
                assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


class Calls(TorchDispatchMode):
    """Which of our ops run inside."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "lrn":
            self.names.add(func._opname)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("options", "steps", "runs"),
    [
        ({}, 5, True),
        ({"dtype": torch.float64}, 5, True),
        ({"dtype": torch.bfloat16}, 5, False),
        ({"norm": "layer"}, 5, False),
        ({}, 1, False),
    ],
    ids=str,
)
def test_when_the_engine_runs(options, steps, runs):
    """In float32 and float64, without a norm, for more than a single step; else the plain walk."""
    unit = lrn.ATR(3, 4, **options)
    x = randn(steps, 2, 3).to(unit.weight_ih_l0.dtype)
    with Calls() as calls:
        unit(x)
    assert calls.names == ({"atr"} if runs else set())
    with Calls() as calls, lrn.engine("torch"):
        unit(x)
    assert not calls.names


def test_autocast_leaves_the_gradient_alone():
    """Backward inside autocast: the matrix's gradient is not rounded to bfloat16."""
    case = AtrCase(ATR_LIKE, dtype=torch.float32)
    args = case.backward_args()
    with torch.autocast(here.device, torch.bfloat16):
        inside = torch.ops.lrn.atr_backward(*args)
    assert_equal(dict(enumerate(inside)), dict(enumerate(torch.ops.lrn.atr_backward(*args))))


def test_wrong_tensors():
    """What does not fit is refused, not read."""
    x, state, weight, bias, *how = AtrCase(ATR_LIKE).args()
    for wrong, words in (
        ((x, state, weight[:, :-1], bias, *how), "weight [D, H, H]"),
        ((x, state, weight[0], bias, *how), "weight [D, H, H]"),
        ((x, state, weight.float(), bias, *how), "weight must be"),
        ((x, state, weight, bias[:, 1:], *how), "bias [D, H]"),
        ((x, state, weight, bias.float(), *how), "bias must be"),
        ((x, state[..., 1:], weight, bias, *how), "state does not fit"),
        ((x, state, weight, bias, *how[:3], "relu", *how[4:]), "no cell 'atr_relu'"),
    ):
        with pytest.raises(RuntimeError) as raised:
            torch.ops.lrn.atr(*wrong)
        assert words in str(raised.value)
    with pytest.raises(RuntimeError, match="no cell 'atr_tanh'"):
        torch.ops.lrn.scan(x, state, None, None, None, None, "atr_tanh", "forward", False)


# Bit for bit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_number_of_threads(dtype):
    """However rows are dealt to threads. The matrix's gradient, torch's, is so only run to run."""
    for case in atr_kinds(steps=9, batch=70, hidden=33, dtype=dtype):
        runs = []
        for threads in (1, 2, 2, 3, 8):
            torch.set_num_threads(threads)
            runs.append(call(case))
            assert_close(runs[-1], runs[0], TOLERANCE[dtype])
        assert_equal(runs[1], runs[2])
        for results in runs:
            assert_equal(results | {name: runs[0][name] for name in ("grad_weight", "grad_bias")}, runs[0])


def test_any_place_in_the_batch():
    """A row alone is the row among others."""
    case = AtrCase(ATR_LIKE, 6, 19, 45, dtype=torch.float32)
    x, state, weight, bias, *how = case.args()
    output, q, final = torch.ops.lrn.atr(x, state, weight, bias, *how)
    for rows in ([3], [18, 0], [7, 7, 1], [12, 2, 3, 4], list(range(18))):
        part = torch.ops.lrn.atr(x[:, rows], state[:, :, rows], weight, bias, *how)
        assert_equal(dict(enumerate(part)), {0: output[:, rows], 1: q[:, rows], 2: final[:, :, rows]})


def test_chunk_by_chunk_and_without_keeping():
    """Handing the state on continues without a seam; not keeping q changes nothing else."""
    x, state, weight, bias, *how = AtrCase(ATR_LIKE, 12, 9, 40, dtype=torch.float32).args()
    output, _, final = torch.ops.lrn.atr(x, state, weight, bias, *how)
    chunks = []
    for chunk in x.split([1, 4, 0, 7]):
        part, q, state = torch.ops.lrn.atr(chunk, state, weight, bias, *how[:-1], False)
        assert q.numel() == 0
        chunks.append(part)
    assert_equal({"output": torch.cat(chunks), "final": state}, {"output": output, "final": final})


@pytest.fixture
def poisoned_memory():
    """New buffers come filled with NaN."""
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = before


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_is_written(dtype, poisoned_memory):
    """Nothing is left of what stood in a new buffer: not in padding, not for empty rows."""
    assert randn(1, dtype=dtype).new_empty(3).isnan().all(), "the poison does not work"
    for hidden in (3, 8, 21):
        for case in atr_kinds(steps=5, batch=6, hidden=hidden, dtype=dtype):
            for above in ("output", "final", "both"):
                for name, value in call(replace(case, above=above)).items():
                    assert not value.isnan().any(), (name, case)


@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_instruction_sets(instructions):
    """The slower instruction sets, each in a process of its own, since the choice is made once."""
    code = (
        "from recurrence.test_atr import *\n"
        "for hidden in (1, 7, 16, 33, 75):\n"
        "    for dtype in DTYPES:\n"
        "        for case in atr_kinds(steps=4, batch=9, hidden=hidden, dtype=dtype): assert_as_defined(case)"
    )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = os.environ | {"LRN_CPU": instructions, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if "this processor does not run" in done.stderr:
        pytest.skip(f"this processor has no {instructions}")
    assert done.returncode == 0, done.stderr
