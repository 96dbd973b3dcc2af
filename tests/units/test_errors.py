"""Every misuse has one clear error: what was given and what is allowed, in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers import PAIRS, SINGLES, says
from torch.nn.utils.rnn import pack_padded_sequence

import lrn


@pytest.fixture(params=lrn.UNITS)
def unit(request):
    """Each unit in turn, 3 features and 4 hidden."""
    return lrn.make_unit(request.param, 3, 4)


def pack(x, lengths, **kwargs):
    return pack_padded_sequence(x, torch.tensor(lengths), **kwargs)


# Input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (5, 2, 1, 3), ()])
def test_wrong_number_of_dimensions(unit, shape):
    """Names the unit, both allowed forms and the shape that came."""
    with pytest.raises(ValueError, match=says(type(unit).__name__, "[T, I] or [T, B, I]", str(shape))):
        unit(torch.zeros(shape))


def test_wrong_number_of_dimensions_batch_first():
    """The allowed form follows batch_first."""
    with pytest.raises(ValueError, match=says("[T, I] or [B, T, I]", "4 dimensions")):
        lrn.LRN(3, 4, batch_first=True)(torch.zeros(1, 2, 5, 3))


@pytest.mark.parametrize("shape", [(5, 2, 7), (5, 7)])
def test_wrong_feature_size(unit, shape):
    """Says how many features the unit has and how many came."""
    with pytest.raises(ValueError, match=says("3 features", "got 7", str(shape))):
        unit(torch.zeros(shape))


def test_wrong_feature_size_packed(unit):
    """Packed rows are checked the same way."""
    with pytest.raises(ValueError, match=says("3 features", "got 7")):
        unit(pack(torch.zeros(5, 2, 7), [5, 2]))


def test_packed_data_of_wrong_dimensions(unit):
    """A PackedSequence of single numbers or of matrices."""
    with pytest.raises(ValueError, match=says("[rows, I]", "1 dimensions")):
        unit(pack(torch.zeros(5, 2), [5, 2]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64])
def test_wrong_dtype(unit, dtype):
    """Never a silent cast, never torch's message about mat1 and mat2."""
    with pytest.raises(TypeError, match=says("input must be torch.float32", f"got {dtype}")):
        unit(torch.zeros(5, 2, 3, dtype=dtype))


def test_wrong_dtype_the_other_way():
    """A float64 unit says float64."""
    with pytest.raises(TypeError, match=says("torch.float64", "got torch.float32")):
        lrn.GRU(3, 4, dtype=torch.float64)(torch.zeros(5, 2, 3))


def test_integers_are_wrong_under_autocast_too(unit):
    """Autocast lets other floats in, not token numbers."""
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(TypeError, match=says("got torch.int64")),
    ):
        unit(torch.zeros(5, 2, 3, dtype=torch.int64))


@pytest.mark.parametrize("given", [[[0.0] * 3], None], ids=["list", "None"])
@pytest.mark.parametrize("call", ["forward", "step", "project", "recur"])
def test_not_a_tensor(unit, call, given):
    """Says what it is instead, whichever way the unit is called."""
    with pytest.raises(TypeError, match=says("must be a Tensor", f"got a {type(given).__name__}")):
        getattr(unit, call)(given)


def test_wrong_device(unit):
    """Input and parameters live in one place."""
    with pytest.raises(ValueError, match=says("input is on meta", "parameters on cpu")):
        unit(torch.zeros(5, 2, 3, device="meta"))


# Lengths --------------------------------------------------------------------------------------


WRONG_LENGTHS = {
    "too long": ([6, 2], ValueError, ("must not exceed", "5 steps", "got 6")),
    "too long, tensor": (torch.tensor([1, 99]), ValueError, ("5 steps", "got 99")),
    "negative": ([3, -1], ValueError, ("must not be negative", "got -1")),
    "floats": ([3.0, 2.0], TypeError, ("whole numbers", "got torch.float32")),
    "float tensor": (torch.tensor([3.0, 2.0]).double(), TypeError, ("whole numbers", "got torch.float64")),
    "bools": (torch.tensor([True, False]), TypeError, ("whole numbers", "got torch.bool", "mask.sum(")),
    "a mask": (torch.ones(2, 5) > 0, TypeError, ("whole numbers", "of a mask [B, T] they are mask.sum(1)")),
    "beyond all numbers": ([10**20, 1], ValueError, ("whole numbers from 0 to 5", "[1000000")),
    "words": (["a", "b"], ValueError, ("whole numbers from 0 to 5", "['a', 'b']")),
    "a word": ("54", TypeError, ("a tensor or a sequence of whole numbers", "got a str")),
    "an array of floats": (np.array([3.0, 2.0]), TypeError, ("whole numbers", "got torch.float32")),
    "an array of one number": (np.array(3), TypeError, ("got an int",)),
    "too few": ([3], ValueError, ("one entry a row, [2]", "got [1]")),
    "too many": ([3, 2, 1], ValueError, ("one entry a row, [2]", "got [3]")),
    "none at all": ([], ValueError, ("one entry a row, [2]", "got [0]")),
    "two dimensions": (torch.tensor([[3, 2]]), ValueError, ("[2]", "got [1, 2]")),
    "a tensor of one number": (torch.tensor(3), ValueError, ("[2]", "got []")),
    "a number": (3, TypeError, ("lengths", "got an int")),
}


@pytest.mark.parametrize("case", WRONG_LENGTHS)
def test_wrong_lengths(unit, case):
    """Lengths that do not fit the batch would read or leave out the wrong steps."""
    lengths, error, words = WRONG_LENGTHS[case]
    with pytest.raises(error, match=says(*words)):
        unit(torch.zeros(5, 2, 3), lengths=lengths)


def test_lengths_with_packed(unit):
    """Two sources of lengths cannot both be right."""
    with pytest.raises(ValueError, match=says("PackedSequence carries its own lengths", "None")):
        unit(pack(torch.zeros(5, 2, 3), [5, 2]), lengths=[5, 2])


# State ----------------------------------------------------------------------------------------


def state_like(unit, *shape, **kwargs):
    state = torch.zeros(*shape, **kwargs)
    return (state, state) if unit.parts == 2 else state


@pytest.mark.parametrize("shape", [(2, 2, 4), (1, 3, 4), (1, 2, 5), (2, 4), (1, 1, 4)])
def test_wrong_state_shape(unit, shape):
    """Never broadcast: a state of one row for a batch of two is a mistake."""
    with pytest.raises(ValueError, match=says("state must have shape [1, 2, 4]", f"got {list(shape)}")):
        unit(torch.zeros(5, 2, 3), state_like(unit, *shape))


def test_wrong_state_shape_unbatched_and_packed(unit):
    """The wanted shape follows the input's form."""
    with pytest.raises(ValueError, match=says("state must have shape [1, 4]", "got [1, 1, 4]")):
        unit(torch.zeros(5, 3), state_like(unit, 1, 1, 4))
    with pytest.raises(ValueError, match=says("state must have shape [1, 2, 4]", "got [1, 3, 4]")):
        unit(pack(torch.zeros(5, 2, 3), [5, 2]), state_like(unit, 1, 3, 4))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_wrong_state_dtype(unit, dtype):
    """The state is of the unit's own format."""
    with pytest.raises(TypeError, match=says("state must be torch.float32", f"got {dtype}")):
        unit(torch.zeros(5, 2, 3), state_like(unit, 1, 2, 4, dtype=dtype))


def test_wrong_state_device(unit):
    """A state left on another device."""
    with pytest.raises(ValueError, match=says("state", "meta")):
        unit(torch.zeros(5, 2, 3), state_like(unit, 1, 2, 4, device="meta"))


@pytest.mark.parametrize("name", SINGLES)
def test_pair_for_a_single_state(name):
    """An LSTM's pair handed to a unit that has no c."""
    state = torch.zeros(1, 2, 4)
    with pytest.raises(TypeError, match=says("one tensor [1, 2, 4]", "a tuple of 2")):
        lrn.make_unit(name, 3, 4)(torch.zeros(5, 2, 3), (state, state))


@pytest.mark.parametrize("name", PAIRS)
def test_single_state_for_a_pair(name):
    """Half a state, or too much of one."""
    unit, x, state = lrn.make_unit(name, 3, 4), torch.zeros(5, 2, 3), torch.zeros(1, 2, 4)
    with pytest.raises(TypeError, match=says("a pair (h, c)", "[1, 2, 4]", "got a Tensor")):
        unit(x, state)
    with pytest.raises(TypeError, match=says("a pair (h, c)", "got 3 tensors")):
        unit(x, (state, state, state))


@pytest.mark.parametrize("name", PAIRS)
def test_pair_of_something_else(name):
    """The pair's entries are tensors too."""
    with pytest.raises(TypeError, match=says("state", "list")):
        lrn.make_unit(name, 3, 4)(torch.zeros(5, 2, 3), ([0.0], [0.0]))
    with pytest.raises(TypeError, match=says("made of tensors", "got an int")):
        lrn.make_unit(name, 3, 4)(torch.zeros(5, 2, 3), (0, 0))


# Reset ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.uint8])
def test_wrong_reset_dtype(unit, dtype):
    """Numbers could mean anything; marks are bool."""
    with pytest.raises(TypeError, match=says("reset must be a bool tensor", f"got {dtype}")):
        unit(torch.zeros(5, 2, 3), reset=torch.zeros(5, 2, dtype=dtype))


def test_reset_is_not_a_tensor(unit):
    """Nor a list of lists."""
    with pytest.raises(TypeError, match=says("reset must be a bool tensor", "got a list")):
        unit(torch.zeros(5, 2, 3), reset=[[True, False]] * 5)


@pytest.mark.parametrize("shape", [(2, 5), (5,), (5, 2, 3), (5, 1), (4, 2)])
def test_wrong_reset_shape(unit, shape):
    """One mark per step and row; the transposed form belongs to batch_first."""
    with pytest.raises(ValueError, match=says("leading dimensions [5, 2]", f"got {list(shape)}")):
        unit(torch.zeros(5, 2, 3), reset=torch.zeros(shape, dtype=torch.bool))


def test_reset_of_wrong_kind_with_packed(unit):
    """Packed input, packed marks: not padded, not numbers, not packed some other way."""
    x = pack(torch.zeros(5, 2, 3), [5, 2])
    marks = torch.zeros(5, 2, dtype=torch.bool)
    with pytest.raises(TypeError, match=says("reset must be a PackedSequence of bool")):
        unit(x, reset=marks)
    with pytest.raises(TypeError, match=says("reset must be a PackedSequence of bool")):
        unit(x, reset=pack(marks.float(), [5, 2]))
    for other in (pack(marks, [5, 3]), pack(marks, [2, 5], enforce_sorted=False)):
        with pytest.raises(ValueError, match=says("packed like input", "batch_sizes", "order")):
            unit(x, reset=other)


def test_packed_reset_of_wrong_dimensions(unit):
    """A mark a step and row; one with a trailing dimension would be taken for another batch."""
    x, marks = pack(torch.zeros(5, 2, 3), [5, 2]), torch.zeros(5, 2, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match=says("reset must have one mark a row, [7]", "got [7, 1]")):
        unit(x, reset=pack(marks, [5, 2]))


def test_packed_reset_with_padded_input(unit):
    """And the other way round."""
    with pytest.raises(TypeError, match=says("reset must be a bool tensor", "PackedSequence")):
        unit(torch.zeros(5, 2, 3), reset=pack(torch.zeros(5, 2, dtype=torch.bool), [5, 2]))
