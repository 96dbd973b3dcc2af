"""The weights of nn.LSTM and nn.GRU load as they are, and come to the same numbers."""

from __future__ import annotations

import itertools

import pytest
import torch
from helpers import make, parts, randn, random_state, says, tensors
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import lrn

KINDS = {"lstm": (nn.LSTM, lrn.LSTM, {}), "gru": (nn.GRU, lrn.GRU, {"hidden_bias": True})}
kinds = pytest.mark.parametrize("kind", KINDS)
SHAPES = [
    {"num_layers": layers, "bidirectional": both, "batch_first": first}
    for layers, both, first in itertools.product([1, 2], [False, True], [False, True])
]


def theirs_of(kind, **kwargs):
    """torch's layer, with all weights random: by itself its biases are as small as the matrices."""
    layer = KINDS[kind][0](3, 4, dtype=torch.float64, **kwargs)
    for n, parameter in enumerate(layer.parameters()):
        parameter.data.copy_(0.6 * randn(*parameter.shape, seed=n))
    return layer


def loaded(kind, theirs, **kwargs):
    """Our unit with the weights of torch's."""
    _, cls, own = KINDS[kind]
    own = own if kwargs.get("bias", True) else {}
    unit = cls(3, 4, dtype=torch.float64, **own, **kwargs)
    found = unit.load_state_dict(theirs.state_dict())
    assert not found.missing_keys
    assert not found.unexpected_keys
    return unit


def assert_alike(actual, expected):
    for one, other in zip(tensors(actual), tensors(expected), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kwargs", SHAPES, ids=str)
@kinds
def test_same_numbers(kind, kwargs):
    """Layers, directions, layouts, with a state and without."""
    theirs = theirs_of(kind, **kwargs)
    ours = loaded(kind, theirs, **kwargs)
    x = randn(2, 5, 3) if kwargs["batch_first"] else randn(5, 2, 3)
    state = random_state(ours, 2)
    assert_alike(ours(x), theirs(x))
    assert_alike(ours(x, state), theirs(x, state))


@kinds
def test_same_numbers_with_lengths(kind):
    """Packed as torch has it, or by lengths, which torch has not; on our own walk too."""
    kwargs = {"num_layers": 2, "bidirectional": True}
    theirs = theirs_of(kind, **kwargs)
    ours, x, lengths = loaded(kind, theirs, **kwargs), randn(5, 3, 3), torch.tensor([2, 5, 4])
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    expected, final = theirs(packed)
    padded = pad_packed_sequence(expected)[0]
    assert_alike(ours(packed), (expected, final))
    assert_alike(ours(x, lengths=lengths), (padded, final))
    assert_alike(ours(x, lengths=lengths, reset=torch.zeros(5, 3, dtype=torch.bool)), (padded, final))


@kinds
def test_same_numbers_step_by_step(kind):
    theirs = theirs_of(kind)
    ours, x, state = loaded(kind, theirs), randn(5, 2, 3), None
    outputs = []
    for x_t in x:
        output, state = ours.step(x_t, state)
        outputs.append(output)
    expected, final = theirs(x)
    assert_alike((torch.stack(outputs), *parts(state)), (expected, *parts(final)))
    assert_alike(ours.recur(ours.project(x)), (expected, final))


@kinds
def test_without_bias(kind):
    theirs = theirs_of(kind, bias=False)
    assert_alike(loaded(kind, theirs, bias=False)(randn(5, 2, 3)), theirs(randn(5, 2, 3)))


@kinds
def test_inside_a_model(kind):
    """Under a prefix, among other weights, and into a unit of single precision."""
    _, cls, own = KINDS[kind]
    theirs = nn.ModuleDict({"head": nn.Linear(4, 2), "body": nn.Sequential(theirs_of(kind))})
    ours = nn.ModuleDict({"head": nn.Linear(4, 2), "body": nn.Sequential(cls(3, 4, **own))})
    weights = theirs.state_dict()
    before = list(weights)
    ours.load_state_dict(weights)
    assert list(weights) == before  # what is the caller's stays as it was
    x = randn(5, 2, 3)
    output, _ = ours["body"].double()(x)
    torch.testing.assert_close(output, theirs["body"](x)[0], rtol=0, atol=1e-6)


@kinds
def test_assigned(kind):
    """assign=True takes the tensors' own type, and leaves parameters that can be trained."""
    theirs = theirs_of(kind)
    _, cls, own = KINDS[kind]
    unit = cls(3, 4, **own)
    unit.load_state_dict(theirs.state_dict(keep_vars=True), assign=True)
    assert {p.dtype for p in unit.parameters()} == {torch.float64}
    assert all(p.requires_grad and p.is_leaf for p in unit.parameters())
    assert_alike(unit(randn(5, 2, 3)), theirs(randn(5, 2, 3)))


def test_own_weights_are_loaded_as_ever():
    """A unit's own state_dict has one bias, which is not added to anything."""
    for variant in ("lstm", "gru", "gru-hidden_bias"):
        one, other = make(variant, num_layers=2), make(variant, num_layers=2, seed=5)
        other.load_state_dict(one.state_dict())
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)


def test_a_candidate_bias_of_zero_needs_no_place():
    theirs = theirs_of("gru", bidirectional=True)
    with torch.no_grad():
        theirs.bias_hh_l0[8:] = 0
        theirs.bias_hh_l0_reverse[8:] = 0
    unit = lrn.GRU(3, 4, bidirectional=True, dtype=torch.float64)
    unit.load_state_dict(theirs.state_dict())
    assert_alike(unit(randn(5, 2, 3)), theirs(randn(5, 2, 3)))


@pytest.mark.parametrize("strict", [True, False])
def test_a_candidate_bias_without_a_place_is_refused(strict):
    """Left out, it would change the numbers in silence; strict or not."""
    model = nn.ModuleDict({"rnn": lrn.GRU(3, 4)})
    with pytest.raises(RuntimeError, match=says("rnn.bias_hh_l0", "not zero", "hidden_bias=True")):
        model.load_state_dict({f"rnn.{k}": v for k, v in theirs_of("gru").state_dict().items()}, strict)


def test_weights_without_numbers():
    """On the meta device there is nothing to look at."""
    unit = lrn.GRU(3, 4, device="meta")
    unit.load_state_dict(nn.GRU(3, 4, device="meta").state_dict(), assign=True)


@kinds
def test_what_does_not_fit_is_said(kind):
    """torch's own strict errors stay: nothing is filled in, nothing dropped."""
    torchs, cls, own = KINDS[kind]
    full = torchs(3, 4).state_dict()
    with pytest.raises(RuntimeError, match=says("Unexpected", "bias_ih_l0", "bias_hh_l0")):
        cls(3, 4, bias=False).load_state_dict(full)
    with pytest.raises(RuntimeError, match=says("Missing", "bias_ih_l0")):
        cls(3, 4, **own).load_state_dict(torchs(3, 4, bias=False).state_dict())
    with pytest.raises(RuntimeError, match=says("size mismatch for bias_ih_l0")):
        cls(3, 5, **own).load_state_dict(full)
    with pytest.raises(RuntimeError, match=says("size mismatch for bias_hh_l0", "(7,)")):
        cls(3, 4, **own).load_state_dict(full | {"bias_hh_l0": torch.zeros(7)})
    with pytest.raises(RuntimeError, match=says("Unexpected", "weight_ih_l1")):
        cls(3, 4, **own).load_state_dict(torchs(3, 4, 2).state_dict())
    with pytest.raises(RuntimeError, match=says("Missing", "weight_ih_l0_reverse")):
        cls(3, 4, bidirectional=True, **own).load_state_dict(full)
    with pytest.raises(RuntimeError, match=says("Missing", "norm_ih_l0")):
        cls(3, 4, norm="layer", **own).load_state_dict(full)
    alone = {name: value for name, value in full.items() if name != "bias_ih_l0"}
    with pytest.raises(RuntimeError, match=says("Missing", "bias_ih_l0")) as raised:
        cls(3, 4, **own).load_state_dict(alone)
    assert 'Unexpected key(s) in state_dict: "bias_hh_l0"' in str(raised.value)


def test_projections_are_no_surprise():
    """proj_size has a matrix that no unit has."""
    with pytest.raises(RuntimeError, match="weight_hr_l0"):
        lrn.LSTM(3, 4).load_state_dict(nn.LSTM(3, 4, proj_size=2).state_dict())
