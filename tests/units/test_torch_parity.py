"""LSTM and GRU are torch.nn's, bit for bit, with its second bias at zero."""

from __future__ import annotations

import itertools

import pytest
import torch
from helpers import gradients, make, parts, randn, random_state, tensors
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

OPTIONS = [
    {"num_layers": layers, "bidirectional": both, "batch_first": first, "bias": bias}
    for layers, both, first, bias in itertools.product([1, 2], [False, True], [False, True], [True, False])
]

kinds = pytest.mark.parametrize("name", ["lstm", "gru"])
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
PACKED_OPTIONS = [option for option in OPTIONS if option["bias"] != option["batch_first"]]


def option_name(option):
    return "-".join(f"{key}={value}" for key, value in option.items())


options = pytest.mark.parametrize("kwargs", OPTIONS, ids=option_name)
states_given = pytest.mark.parametrize("with_state", [False, True], ids=["no-state", "state"])


def twins(name, dtype, **kwargs):
    """Our unit and torch's, with the same weights."""
    ours = make(name, 3, 4, dtype=dtype, **kwargs)
    theirs = getattr(nn, name.upper())(3, 4, dtype=dtype, **kwargs)
    own = ours.state_dict()
    theirs.load_state_dict(
        {key: own.get(key, torch.zeros_like(value)) for key, value in theirs.state_dict().items()}
    )
    return ours, theirs


def assert_equal(actual, expected):
    """Every bit the same."""
    for one, other in zip(tensors(actual), tensors(expected), strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def compare(ours, theirs, x, state, run):
    """Outputs, states and all gradients of ``run(module, x, state)``."""
    results = []
    for module in (ours, theirs):
        leaf = x.detach().clone().requires_grad_()
        start = None
        if state is not None:
            start = tuple(part.detach().clone().requires_grad_() for part in parts(state))
        weights = [dict(module.named_parameters())[name] for name, _ in ours.named_parameters()]
        given = start if start is None or len(start) == 2 else start[0]
        result = run(module, leaf, given)
        results.append((result, gradients(result, [leaf, *(start or ()), *weights])))
    assert_equal(results[0][0], results[1][0])
    assert_equal(results[0][1], results[1][1])


@states_given
@options
@dtypes
@kinds
def test_padded_rows(name, dtype, kwargs, with_state):
    """Same result, same final state, same gradients, in training as in evaluation."""
    ours, theirs = twins(name, dtype, **kwargs)
    x = randn(2, 5, 3, dtype=dtype) if kwargs["batch_first"] else randn(5, 2, 3, dtype=dtype)
    state = random_state(ours, 2) if with_state else None
    compare(ours, theirs, x, state, lambda module, x, state: module(x, state))
    with torch.no_grad():
        assert_equal(ours.eval()(x, state), theirs.eval()(x, state))


@states_given
@pytest.mark.parametrize("in_order", [True, False], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("kwargs", PACKED_OPTIONS, ids=option_name)
@dtypes
@kinds
def test_packed_rows(name, dtype, kwargs, in_order, with_state):
    """Packed input comes back packed, with the same order and the same bits."""
    ours, theirs = twins(name, dtype, **kwargs)
    lengths = torch.tensor([5, 3, 1] if in_order else [3, 1, 5])
    state = random_state(ours, 3) if with_state else None

    def run(module, x, state):
        packed = pack_padded_sequence(x, lengths, enforce_sorted=in_order)
        output, final = module(packed, state)
        assert torch.equal(output.batch_sizes, packed.batch_sizes)
        assert (output.sorted_indices is None) == in_order
        padded, _ = pad_packed_sequence(output, total_length=5)
        return padded, final

    compare(ours, theirs, randn(5, 3, 3, dtype=dtype), state, run)


@pytest.mark.parametrize("bidirectional", [False, True])
@dtypes
@kinds
def test_lengths_are_torch_packing(name, dtype, bidirectional):
    """`lengths` does by itself what packing and padding around torch.nn does."""
    ours, theirs = twins(name, dtype, num_layers=2, bidirectional=bidirectional)
    x, state, lengths = randn(5, 3, 3, dtype=dtype), random_state(ours, 3), torch.tensor([2, 5, 4])

    def run(module, x, state):
        if module is ours:
            return module(x, state, lengths=lengths)
        output, final = module(pack_padded_sequence(x, lengths, enforce_sorted=False), state)
        return pad_packed_sequence(output, total_length=5)[0], final

    compare(ours, theirs, x, state, run)


@states_given
@dtypes
@kinds
def test_unbatched(name, dtype, with_state):
    """One row without a batch dimension."""
    ours, theirs = twins(name, dtype, num_layers=2, bidirectional=True)
    state = random_state(ours) if with_state else None
    compare(ours, theirs, randn(5, 3, dtype=dtype), state, lambda module, x, state: module(x, state))


@dtypes
@kinds
def test_dropout_draws_the_same(name, dtype):
    """With the same seed even the dropped entries are the same."""
    ours, theirs = twins(name, dtype, num_layers=3, dropout=0.4)

    def run(module, x, state):
        torch.manual_seed(3)
        return module(x, state)

    compare(ours, theirs, randn(5, 2, 3, dtype=dtype), None, run)


@pytest.mark.parametrize("way", ["reset", "recur"])
@kinds
def test_our_own_walk_agrees(name, way):
    """Where torch's kernels cannot run, our definition does: the same numbers in float64."""
    ours, theirs = twins(name, torch.float64, bidirectional=True)
    x, state = randn(5, 2, 3), random_state(ours, 2)
    if way == "reset":
        actual = ours(x, state, reset=torch.zeros(5, 2, dtype=torch.bool))
    else:
        actual = ours.recur(ours.project(x), state)
    for one, other in zip(tensors(actual), tensors(theirs(x, state)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


@kinds
def test_a_longer_run(name):
    """A size at which torch splits its work, in float32."""
    ours = make(name, 16, 32, num_layers=2, bidirectional=True, dtype=torch.float32)
    theirs = getattr(nn, name.upper())(16, 32, num_layers=2, bidirectional=True)
    own = ours.state_dict()
    theirs.load_state_dict({k: own.get(k, torch.zeros_like(v)) for k, v in theirs.state_dict().items()})
    x = randn(40, 8, 16, dtype=torch.float32)
    compare(ours, theirs, x, random_state(ours, 8), lambda module, x, state: module(x, state))
