"""A unit with dropped weights is the plain unit with some of its matrices' entries gone."""

import copy

import pytest
import torch
from helpers import assert_same, gradients, make, randn, random_state, says, tensors

import lrn
from lrn.nn import drop_weights, one_mask

STEPS, BATCH, INPUT, HIDDEN, P = 6, 3, 5, 20, 0.4

SHAPES = {
    "one layer": {},
    "two layers": {"num_layers": 2},
    "bidirectional": {"bidirectional": True},
    "two layers, bidirectional": {"num_layers": 2, "bidirectional": True},
}

MATRICES = dict.fromkeys(lrn.UNITS, ("weight_ih",)) | dict.fromkeys(
    ("atr", "lstm", "gru"), ("weight_ih", "weight_hh")
)

units = pytest.mark.parametrize("name", lrn.UNITS)
shapes = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def plain(name, shape="two layers, bidirectional", **options):
    return make(name, INPUT, HIDDEN, **SHAPES[shape], **options)


def dropped(name, shape="two layers, bidirectional", p=P, **options):
    unit = plain(name, shape, **options)
    return unit, drop_weights(unit, p)


def original(unit, name):
    return unit.parametrizations[name].original


def with_the_weights_of(unit, names, name, shape, **options):
    """The plain unit whose matrices are what ``unit`` has now, in the block around."""
    other = plain(name, shape, **options)
    for matrix in names:
        getattr(other, matrix).data.copy_(getattr(unit, matrix).detach())
    return other


x = randn(STEPS, BATCH, INPUT)


# What is dropped ----------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, "layer"])
@shapes
@units
def test_names_are_the_matrices(name, shape, norm):
    _, names = dropped(name, shape, norm=norm)
    layers = SHAPES[shape].get("num_layers", 1)
    sides = ("", "_reverse") if SHAPES[shape].get("bidirectional") else ("",)
    expected = [f"{m}_l{n}{side}" for n in range(layers) for side in sides for m in MATRICES[name]]
    assert names == expected


@shapes
@units
def test_biases_and_vectors_are_left_alone(name, shape):
    before = dict(plain(name, shape).named_parameters())
    unit, names = dropped(name, shape)
    left = dict(unit.named_parameters(recurse=False))
    assert left.keys() == before.keys() - set(names)
    with one_mask():
        for key in left:
            assert torch.equal(getattr(unit, key), before[key])
    assert {key.rpartition("_l")[0] for key in left} == {
        "sru": {"bias_ih", "v_r", "v_f"},
        "atr": {"bias_ih", "bias_hh"},
    }.get(name, {"bias_ih"})


@pytest.mark.parametrize("p", [0.2, 0.5])
@units
def test_as_many_as_asked_for_are_gone_and_the_rest_scaled(name, p):
    unit, names = dropped(name, p=p)
    with one_mask():
        for matrix in names:
            now, before = getattr(unit, matrix), original(unit, matrix)
            kept = now != 0
            torch.testing.assert_close(now, before * kept / (1 - p), rtol=0, atol=1e-12)
            gone = 1 - kept.double().mean().item()
            assert abs(gone - p) < 5 * (p * (1 - p) / now.numel()) ** 0.5


@units
def test_matrices_have_masks_of_their_own(name):
    unit, _ = dropped(name)
    with one_mask():
        masks = [getattr(unit, f"weight_ih_l0{side}") != 0 for side in ("", "_reverse")]
    assert not torch.equal(*masks)


@units
def test_nothing_is_dropped_at_zero(name):
    unit, _ = dropped(name, p=0.0)
    with one_mask():
        assert_same(unit(x), plain(name)(x))


def test_not_a_probability():
    with pytest.raises(ValueError, match=says("weight drop", "got 1.5")):
        drop_weights(plain("lrn"), 1.5)


# When it is drawn ---------------------------------------------------------------------------------


@shapes
@units
def test_one_mask_within_a_block_another_in_the_next(name, shape):
    unit, names = dropped(name, shape)
    outputs, matrices = [], []
    for _ in range(2):
        with one_mask():
            first = unit(x)
            assert_same(unit(x), first, atol=0)
            outputs.append(first[0])
            matrices.append([getattr(unit, matrix) for matrix in names])
    assert not torch.allclose(*outputs)
    for one, other in zip(*matrices, strict=True):
        assert not torch.equal(one, other)


@units
def test_one_mask_for_all_steps(name):
    """Step by step is the whole sequence, as long as the block lasts."""
    unit, _ = dropped(name, "two layers")
    with one_mask():
        expected, state, outputs = unit(x), None, []
        for x_t in x:
            output, state = unit.step(x_t, state)
            outputs.append(output)
    assert_same((torch.stack(outputs), state), expected)


def test_two_units_in_a_block():
    """The block is everybody's, the masks are not."""
    one, other = dropped("lrn")[0], dropped("lrn")[0]
    with one_mask():
        assert not torch.equal(one.weight_ih_l0, other.weight_ih_l0)


@shapes
@units
def test_evaluation_is_the_plain_unit(name, shape):
    unit, _ = dropped(name, shape)
    unit.eval()
    expected = plain(name, shape).eval()(x)
    assert_same(unit(x), expected, atol=0)
    with one_mask():
        assert_same(unit(x), expected, atol=0)
    unit.train()
    with one_mask():
        assert not torch.allclose(unit(x)[0], expected[0])


# The maths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", lrn.engines())
@shapes
@units
def test_the_plain_unit_with_those_matrices(name, shape, engine):
    """Output, state and gradients; the gradient of an entry that is gone is zero, others' are scaled."""
    unit, names = dropped(name, shape)
    state = random_state(plain(name, shape), BATCH)
    with lrn.engine(engine), one_mask():
        other = with_the_weights_of(unit, names, name, shape)
        masks = {matrix: (getattr(unit, matrix) != 0).double() / (1 - P) for matrix in names}
        found, expected = unit(x, state), other(x, state)
    assert_same(found, expected)
    others = dict(other.named_parameters())
    own = [original(unit, key) if key in masks else getattr(unit, key) for key in others]
    assert all(isinstance(parameter, torch.nn.Parameter) for parameter in own)
    wanted = gradients(expected, others.values())
    for key, ours, theirs in zip(others, gradients(found, own), wanted, strict=True):
        assert ours.abs().max() > 0, key
        assert_same(ours, theirs * masks.get(key, 1))


@pytest.mark.skipif("cpu" not in lrn.engines(), reason="the C++ engine is not here")
@pytest.mark.parametrize("norm", [None, "rms"])
@shapes
@units
def test_engines_agree_on_a_mask(name, shape, norm):
    unit, _ = dropped(name, shape, norm=norm)
    results = []
    with one_mask():
        for engine in ("cpu", "torch"):
            with lrn.engine(engine):
                results.append(unit(x))
    assert_same(*results)
    difference = [one - other for one, other in zip(*map(tensors, results), strict=True)]
    for gradient in gradients(difference, unit.parameters()):
        assert gradient.abs().max() < 1e-10


@units
def test_lengths_and_reset(name):
    unit, names = dropped(name)
    lengths, reset = [STEPS, 0, 3], torch.rand(STEPS, BATCH) < 0.3
    with one_mask():
        other = with_the_weights_of(unit, names, name, "two layers, bidirectional")
        assert_same(unit(x, lengths=lengths, reset=reset), other(x, lengths=lengths, reset=reset))
        assert_same(unit(x, lengths=lengths), other(x, lengths=lengths))


@units
def test_projection_and_walk_apart(name):
    unit, _ = dropped(name, "one layer")
    with one_mask():
        assert_same(unit.recur(unit.project(x)), unit(x))


@units
def test_an_optimiser_moves_the_original(name):
    unit, names = dropped(name)
    before = copy.deepcopy({matrix: original(unit, matrix) for matrix in names})
    with one_mask():
        unit(x)[0].square().sum().backward()
    torch.optim.SGD(unit.parameters(), lr=0.1).step()
    for matrix in names:
        assert not torch.equal(original(unit, matrix), before[matrix])


@units
def test_errors_name_the_unit(name):
    unit, _ = dropped(name)
    with pytest.raises(ValueError, match=f"^{type(plain(name)).__name__}"):
        unit(randn(STEPS, BATCH, INPUT + 1))
