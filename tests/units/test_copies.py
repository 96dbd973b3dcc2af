"""Copies, pickles and saved weights are the same unit."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from helpers import VARIANTS, assert_same, make, randn, random_state, tensors

all_variants = pytest.mark.parametrize("variant", VARIANTS)
FULL = {"num_layers": 2, "bidirectional": True, "norm": "rms", "batch_first": True, "dropout": 0.5}


def same_run(one, other):
    x, start = randn(2, 5, 3), random_state(one, 2)
    return assert_same(one.eval()(x, start), other.eval()(x, start), atol=0)


@all_variants
def test_deep_copy(variant):
    """A copy runs the same and shares nothing."""
    unit = make(variant, **FULL)
    twin = copy.deepcopy(unit)
    same_run(unit, twin)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in unit.parameters())


@all_variants
def test_pickle(variant):
    """Workers and caches pickle whole modules."""
    unit = make(variant, **FULL)
    unit.lstm_state = unit.parts == 1
    twin = pickle.loads(pickle.dumps(unit))
    assert repr(twin) == repr(unit)
    assert twin.lstm_state == unit.lstm_state
    same_run(unit, twin)


@all_variants
def test_state_dict_round_trip(variant):
    """Weights alone carry the whole unit, through a file and with weights_only."""
    unit, other = make(variant, **FULL), make(variant, seed=99, **FULL)
    file = io.BytesIO()
    torch.save(unit.state_dict(), file)
    file.seek(0)
    missing = other.load_state_dict(torch.load(file, weights_only=True))
    assert not missing.missing_keys
    assert not missing.unexpected_keys
    same_run(unit, other)


@all_variants
def test_whole_module_save(variant):
    """torch.save of the module itself."""
    unit, file = make(variant, **FULL), io.BytesIO()
    torch.save(unit, file)
    file.seek(0)
    same_run(unit, torch.load(file, weights_only=False))


@all_variants
def test_a_run_leaves_no_trace(variant):
    """A unit that has run, with gradients, can still be copied and saved."""
    unit = make(variant, **FULL)
    output, _ = unit(randn(2, 5, 3))
    output.sum().backward()
    same_run(copy.deepcopy(unit), pickle.loads(pickle.dumps(unit)))


@all_variants
def test_new_parameters_are_used(variant):
    """Nothing derived from the weights is kept: an optimiser's step shows in the next run."""
    unit, x = make(variant, num_layers=2, bidirectional=True), randn(4, 2, 3)
    for name, parameter in unit.named_parameters():
        before = tensors(unit(x))
        with torch.no_grad():
            parameter.add_(0.5)
        changed = zip(before, tensors(unit(x)), strict=True)
        assert any(not torch.equal(old, new) for old, new in changed), name
