"""Infinities, NaN, huge and tiny numbers: they come out as in the definition, and stay where they are."""

from dataclasses import dataclass

import pytest
import torch
from recurrence.cases import NAMES, Case, assert_equal, call, call_case, fewer, run

from lrn.recurrence import CELLS
from lrn.units import CLASSES

SPECIAL = (1e4, -1e4, torch.inf, -torch.inf, torch.nan, 1e-40, -1e-40, 0.0, -0.0)
HALVES = (torch.bfloat16, torch.float16)
PRECISION = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


@dataclass(frozen=True)
class Wild(Case):
    """A case with one number in six of x and state replaced by a special one."""

    def inputs(self):
        values = super().inputs()
        source = torch.Generator().manual_seed(self.seed)
        for value in (values["x"], values["state"]):
            drawn = torch.randint(0, 6 * len(SPECIAL), value.shape, generator=source)
            for n, special in enumerate(SPECIAL):
                value[drawn == n] = special
        return values


def assert_alike(actual, expected, name, tolerance):
    """NaN where NaN is expected, the same infinities, and the finite numbers close together."""
    actual, expected = actual.double(), expected.double()
    assert torch.equal(actual.isnan(), expected.isnan()), f"{name}: NaN elsewhere"
    whole = ~expected.isnan() & (actual.isinf() | expected.isinf())
    assert torch.equal(actual[whole], expected[whole]), f"{name}: other infinities"
    actual, expected = (value[expected.isfinite()] for value in (actual, expected))
    largest = expected.abs().max().item() if expected.numel() else 0
    assert ((actual - expected).abs() <= tolerance * largest).all(), f"{name}: finite numbers differ"


@pytest.mark.parametrize("dtype", PRECISION, ids=str)
@pytest.mark.parametrize("cell", NAMES)
def test_patterns(cell, dtype):
    """Results, and gradients too but for the half types, where the backward pass reads rounded outputs.

    Full rows only: past a row's end the definition multiplies its zeros by what the state left there.
    """
    for seed in fewer(range(12), (1,)):
        case = Wild(
            cell,
            fewer(4, 3),
            fewer(3, 2),
            fewer(19, 99),
            "both" if seed % 2 else "forward",
            reset=True,
            dtype=dtype,
            seed=seed,
        )
        half = dtype in HALVES
        expected = run(case, "torch", torch.float32 if half else dtype)
        actual = run(case)
        for name in ("output", "final") if half else expected:
            assert_alike(actual[name], expected[name].to(dtype), name, PRECISION[dtype])


@pytest.mark.parametrize("dtype", PRECISION, ids=str)
@pytest.mark.parametrize("cell", NAMES)
def test_patterns_in_padded_rows(cell, dtype):
    """The outputs of rows that end early; their gradients are those of the row cut at its end."""
    for seed in range(fewer(3, 1)):
        case = Wild(cell, fewer(5, 3), fewer(4, 2), 11, "both", "lengths", reset=True, dtype=dtype, seed=seed)
        expected = run(case, "torch", torch.float32 if dtype in HALVES else dtype)
        actual = run(case)
        for name in ("output", "final"):
            assert_alike(actual[name], expected[name].to(dtype), name, PRECISION[dtype])
        x, state, weight, lengths, _, reset, *how = case.positional()
        above, whole = case.gradients(), call_case(case)
        for b, n in enumerate(lengths.tolist()):
            row = slice(b, b + 1)
            one = None if weight is None else weight[row]
            alone = call(
                (x[:n, row], state[:, :, row], one, None, None, reset[:n, row], *how),
                {"output": above["output"][:n, row], "final": above["final"][:, :, row]},
            )
            expected = {"grad_x": whole["grad_x"][:n, row], "grad_state": whole["grad_state"][:, :, row]}
            assert_equal({name: alone[name] for name in expected}, expected)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("hidden", fewer((3, 9, 37), (9,)))
@pytest.mark.parametrize("cell", NAMES)
def test_a_nan_stays_in_its_column(cell, hidden, value):
    """One bad number leaves every other row and column bit for bit as it was, gradients included."""
    b, c = fewer(4, 1), hidden - 1
    for place, index in (("x", (2, b, 0, CELLS[cell].gates - 1, c)), ("state", (-1, 0, b, c))):
        case = Case(cell, fewer(5, 3), fewer(9, 2), hidden, dtype=torch.float32)
        good, args = call_case(case), case.positional()
        args[("x", "state").index(place)][index] = value
        bad = call(args, case.gradients())
        assert not bad["output"][:, b, c].equal(good["output"][:, b, c])
        for results in (good, bad):
            for name in ("output", "memory", "grad_x"):
                if results[name].dim() > 1:
                    results[name][:, b, ..., c] = 0
            for like_state in (results["final"], results["grad_state"]):
                like_state[:, :, b, c] = 0
            if results["grad_weight"].dim() > 1:
                results["grad_weight"][b, ..., c] = 0
        assert_equal(bad, good)


@pytest.mark.parametrize("cell", [cell for cell in NAMES if CELLS[cell].gates > 1])
def test_closed_and_open_gates(cell):
    """Gates at ±1e4 are 0 and 1 exactly, so that what they let through is not changed by a bit."""
    x = torch.randn(3, 2, 1, CELLS[cell].gates, 9, generator=torch.Generator().manual_seed(0))
    unit = CLASSES[cell.partition("_")[0]]
    own = [gate for gate in (unit.forget_gate, unit.input_gate) if gate is not None]
    gate = {"olrn": [0, 1, 3], "sru": [0, 1]}.get(cell, own)  # those two have one more
    assert gate, f"{cell}: say here which of its fused products are gates"
    for side in (1e4, -1e4):
        x[:, :, :, gate] = side
        case = Fixed(cell, 3, 2, 9, dtype=torch.float32, x=x)
        expected, actual = run(case, "torch"), run(case)
        exact = ("output", "final") if "tanh" not in cell else ()
        for name in exact:
            assert torch.equal(actual[name], expected[name]), (name, side)
        for name in expected:
            assert_alike(actual[name], expected[name], name, 1e-6)


@dataclass(frozen=True)
class Fixed(Case):
    """A case with x given."""

    x: torch.Tensor | None = None

    def inputs(self):
        return super().inputs() | {"x": self.x.clone()}
