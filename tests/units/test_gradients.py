"""First and second derivatives of every unit against finite differences, in float64."""

from __future__ import annotations

import pytest
import torch
from helpers import VARIANTS, make, parts, randn, random_state
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils._python_dispatch import TorchDispatchMode

T, B, WIDTH, H = 3, 2, 2, 2

ROWS = {
    "plain": {},
    "lengths": {"lengths": torch.tensor([1, 3])},
    "reset": {"reset": torch.tensor([[False, True], [True, False], [False, True]])},
}


def check(unit, x, state, rows=None, pack=None, every_entry=False):
    """Gradients with respect to input, initial state and every parameter, once and twice.

    Along random directions, or, slower, entry by entry.
    """
    names = [name for name, _ in unit.named_parameters()]
    start = () if state is None else parts(state)

    def run(x, *rest):
        given, weights = rest[: len(start)], rest[len(start) :]
        state = None if not given else given[0] if unit.parts == 1 else given
        x = pack(x) if pack else x
        weights = dict(zip(names, weights, strict=True))
        output, final = functional_call(unit, weights, (x, state), rows or {})
        return (output.data if isinstance(output, PackedSequence) else output, *parts(final))

    leaves = [tensor.detach().requires_grad_() for tensor in (x, *start, *unit.parameters())]
    assert gradcheck(run, leaves, fast_mode=not every_entry)
    assert gradgradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("with_state", [False, True], ids=["no-state", "state"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives(variant, bidirectional, with_state, rows):
    """What training relies on: all gradients right, and gradients of gradients too."""
    unit = make(variant, WIDTH, H, bidirectional=bidirectional)
    state = random_state(unit, B) if with_state else None
    check(unit, randn(T, B, WIDTH), state, ROWS[rows])


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("variant", ["lrn", "olrn", "atr", "sru", "lstm", "gru"])
def test_derivatives_with_norm(variant, norm):
    """The norm's scale is a parameter too, on the hidden side inside the recurrence."""
    unit = make(variant, WIDTH, H, norm=norm)
    check(unit, randn(2, B, WIDTH), random_state(unit, B), {"lengths": torch.tensor([1, 2])})


@pytest.mark.parametrize("variant", ["lrn", "sru", "atr", "lstm", "gru"])
def test_derivatives_of_packed_two_layers(variant):
    """Packed rows take a way of their own; two layers chain two recurrences."""
    unit = make(variant, WIDTH, H, num_layers=2, bidirectional=True, bias=False)
    lengths = torch.tensor([1, 2])
    check(
        unit,
        randn(2, B, WIDTH),
        random_state(unit, B),
        pack=lambda x: pack_padded_sequence(x, lengths, enforce_sorted=False),
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives_with_everything_ragged(variant):
    """An empty row, documents inside rows and batch_first at once."""
    unit = make(variant, WIDTH, H, batch_first=True, bidirectional=True)
    reset = torch.tensor([[True, False, True], [False, True, True], [False, False, True]])
    rows = {"lengths": torch.tensor([2, 3, 0]), "reset": reset}
    check(unit, randn(3, 3, WIDTH), random_state(unit, 3), rows, every_entry=True)


class Lengths(TorchDispatchMode):
    """How many numbers the gradients of slices are filled up to."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if function.name() in ("aten::select_backward", "aten::slice_backward"):
            self.numbers += found.numel()
        return found


@pytest.mark.parametrize("name", ["lstm", "gru", "atr"])
def test_the_gradient_of_a_walk_takes_no_time_squared(name):
    """Step by step, in plain torch: no step may write a gradient as long as the whole sequence."""
    unit, numbers = make(name, 3, 4, norm="layer"), []
    for steps in (10, 40):
        x = randn(steps, 2, 3).requires_grad_()
        with Lengths() as seen:
            unit(x)[0].sum().backward()
        numbers.append(seen.numbers)
    assert numbers[1] <= 4 * numbers[0]
