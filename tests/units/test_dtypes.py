"""Other number formats: double, half, bfloat16 and autocast."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers import VARIANTS, assert_same, make, parts, randn, random_state, states

import lrn

all_variants = pytest.mark.parametrize("variant", VARIANTS)
BF16_STEP = 2.0**-8  # relative rounding error of bfloat16


@all_variants
def test_double_is_the_same_unit_more_exactly(variant):
    """float32 stays within its rounding of float64, and .double() converts every parameter."""
    single = make(variant, bidirectional=True, norm="layer", dtype=torch.float32)
    double = copy.deepcopy(single).double()
    assert all(parameter.dtype == torch.float64 for parameter in double.parameters())
    x = randn(6, 2, 3, dtype=torch.float32)
    start = random_state(single, 2)
    output, final = single(x, start)
    assert output.dtype == torch.float32
    precise, precise_final = double(x.double(), states(torch.Tensor.double, start))
    assert precise.dtype == torch.float64
    assert_same((output.double(), states(torch.Tensor.double, final)), (precise, precise_final), atol=1e-5)


@all_variants
def test_half_storage_round_trip(variant):
    """Stored in half and read back: each weight rounded once, nothing else."""
    unit = make(variant, num_layers=2, bidirectional=True, dtype=torch.float32)
    back = copy.deepcopy(unit).half().float()
    for (name, weight), (_, rounded) in zip(unit.named_parameters(), back.named_parameters(), strict=True):
        assert rounded.dtype == torch.float32, name
        assert torch.equal(rounded, weight.half().float()), name
    x = randn(5, 2, 3, dtype=torch.float32)
    assert_same(back(x), unit(x), atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [{}, {"lengths": [5, 0]}, {"reset": torch.ones(5, 2, dtype=torch.bool)}])
@all_variants
def test_low_precision_runs(variant, rows, dtype):
    """A unit converted whole runs in its own format, forward and backward."""
    unit = make(variant, bidirectional=True, dtype=torch.float32)
    x = randn(5, 2, 3, dtype=torch.float32)
    expected, expected_final = unit(x, **rows)
    low = copy.deepcopy(unit).to(dtype)
    output, final = low(x.to(dtype), **rows)
    assert output.dtype == dtype
    assert all(part.dtype == dtype for part in parts(final))
    atol = 0.15 if dtype == torch.bfloat16 else 0.02
    assert_same((output.float(), states(torch.Tensor.float, final)), (expected, expected_final), atol=atol)
    output.float().square().sum().backward()
    assert all(p.grad.dtype == dtype and p.grad.isfinite().all() for p in low.parameters())


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("rows", [{}, {"lengths": [4, 6]}, {"lengths": [0, 0]}])
@all_variants
def test_autocast_forward(variant, rows, bidirectional):
    """Under CPU autocast the result is that of float32, up to bfloat16's rounding."""
    unit = make(variant, bidirectional=bidirectional, dtype=torch.float32)
    x, start = randn(6, 2, 3, dtype=torch.float32), random_state(unit, 2)
    expected, expected_final = unit(x, start, **rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, final = unit(x, start, **rows)
    scale = max(1.0, expected.abs().max().item())
    actual = output.float(), states(torch.Tensor.float, final)
    assert_same(actual, (expected, expected_final), atol=8 * BF16_STEP * scale)


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm", [None, "layer"])
@pytest.mark.parametrize("name", lrn.UNITS)
def test_the_type_that_autocast_puts_out(name, norm, given):
    """What docs/units.md says of it."""
    wanted = {"lstm": torch.float32, "atr": given, "gru": given}.get(name, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        output, state = lrn.make_unit(name, 3, 4, norm=norm)(torch.randn(5, 2, 3, dtype=given))
    assert {tensor.dtype for tensor in (output, *parts(state))} == {torch.float32 if norm else wanted}


@all_variants
def test_autocast_backward(variant):
    """Gradients reach float32 parameters as float32, and close to the exact ones."""
    unit = make(variant, num_layers=2, bidirectional=True, dtype=torch.float32)
    x = randn(6, 2, 3, dtype=torch.float32)
    names = [name for name, _ in unit.named_parameters()]
    weights = list(unit.parameters())
    expected = torch.autograd.grad(unit(x)[0].square().mean(), weights)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = unit(x)[0].float().square().mean()
    actual = torch.autograd.grad(loss, weights)
    for name, grad, exact in zip(names, actual, expected, strict=True):
        assert grad.dtype == torch.float32, name
        assert (grad - exact).norm() <= 0.05 * exact.norm() + 1e-3, name


@pytest.mark.parametrize("num_layers", [1, 2])
@all_variants
def test_autocast_carries_state_between_chunks(variant, num_layers):
    """The state comes out in one format and goes back in beside a float32 input."""
    unit = make(variant, num_layers=num_layers, dtype=torch.float32)
    x = randn(6, 2, 3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        whole, final = unit(x)
        first, state = unit(x[:3])
        second, state = unit(x[3:], state)
        stepped, _ = unit.step(x[0], state)
    assert stepped.shape == (2, 4)
    scale = max(1.0, whole.abs().max().item())
    actual = torch.cat([first, second]).float(), states(torch.Tensor.float, state)
    assert_same(actual, (whole.float(), states(torch.Tensor.float, final)), atol=8 * BF16_STEP * scale)


@all_variants
def test_autocast_with_bf16_input(variant):
    """A layer below under autocast hands over bfloat16; float32 parameters take it."""
    unit = make(variant, num_layers=2, dtype=torch.float32)
    x = randn(4, 2, 3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = unit(x.bfloat16())
        expected, _ = unit(x)
    scale = max(1.0, expected.abs().max().item())
    assert_same(output.float(), expected.float(), atol=8 * BF16_STEP * scale)


@all_variants
def test_autocast_with_packed_rows_and_documents(variant):
    """The ways of their own that ragged rows take, under autocast."""
    unit = make(variant, num_layers=2, bidirectional=True, dtype=torch.float32)
    x, reset = randn(5, 2, 3, dtype=torch.float32), randn(5, 2, seed=4) > 0.5
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 5]), enforce_sorted=False)
    expected, expected_documents = unit(packed), unit(x, reset=reset)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual, documents = unit(packed), unit(x, reset=reset)
    scale = max(1.0, expected[0].data.abs().max().item())
    assert_same(actual[0].data.float(), expected[0].data, atol=12 * BF16_STEP * scale)
    assert_same(documents[0].float(), expected_documents[0], atol=12 * BF16_STEP * scale)
