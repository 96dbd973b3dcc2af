"""Misuse of constructors, names, engines and of the single halves and steps of a unit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from helpers import ACTIVATED, says

import lrn
from lrn.names import ENGINES

names = pytest.mark.parametrize("name", lrn.UNITS)


@pytest.mark.parametrize(
    ("given", "near"), [("lsrn", "lrn"), ("LSTMM", "lstm"), ("lstmm", "lstm"), ("olnr", "olrn")]
)
def test_unknown_unit(given, near):
    """All names, and the nearest one if there is one near."""
    words = [f"unknown unit '{given}'", ", ".join(lrn.UNITS)]
    words += [f"did you mean '{near}'?"] if near else []
    with pytest.raises(ValueError, match=says(*words)):
        lrn.make_unit(given, 3, 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "a NoneType"),
        (3, "an int"),
        (lrn.LRN(3, 4), "an LRN"),
        (torch.nn.LSTM, "the class LSTM"),
        (lrn.Unit, "the class Unit"),
        (lrn.CustomUnit, "the class CustomUnit"),
    ],
    ids=["None", "number", "unit", "torch's", "Unit", "CustomUnit"],
)
@pytest.mark.parametrize(
    "call",
    [lambda unit: lrn.make_unit(unit, 3, 4), lambda unit: lrn.replace(torch.nn.LSTM(3, 4), unit)],
    ids=["make_unit", "replace"],
)
def test_what_is_no_unit(call, given, said):
    """The same words wherever a unit is asked for."""
    with pytest.raises(TypeError, match=says("unit must be a name (lrn, ", "or the class of a unit", said)):
        call(given)


@names
def test_any_case_and_the_class(name):
    kind = getattr(lrn, name.upper())
    for unit in (name, name.upper(), name.title(), kind, type("Mine", (kind,), {})):
        assert isinstance(lrn.make_unit(unit, 3, 4), kind)


@names
def test_unknown_norm(name):
    """The allowed ones are listed."""
    with pytest.raises(ValueError, match=says("unknown norm 'batch'", "None, layer, rms")):
        lrn.make_unit(name, 3, 4, norm="batch")
    with pytest.raises(ValueError, match=says("unknown norm 'layr'", "did you mean 'layer'?")):
        lrn.make_unit(name, 3, 4, norm="layr")


@pytest.mark.parametrize("name", ACTIVATED)
def test_unknown_activation(name):
    """The allowed ones are listed."""
    with pytest.raises(ValueError, match=says("unknown activation 'relu'", "tanh, identity")):
        lrn.make_unit(name, 3, 4, activation="relu")


@pytest.mark.parametrize("name", [name for name in lrn.UNITS if name not in ACTIVATED])
def test_no_activation_to_choose(name):
    """Units without the choice do not silently take it."""
    with pytest.raises(
        TypeError, match=says(f"{name.upper()} has no argument 'activation'; allowed: input_size")
    ):
        lrn.make_unit(name, 3, 4, activation="tanh")


class Own(lrn.LRN):
    def __init__(self, size, *args, **kwargs):
        super().__init__(size, size, *args, **kwargs)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda kind: kind(8, 16, bidirectionl=True), "bidirectionl'; .*; did you mean 'bidirectional'[?]$"),
        (
            lambda kind: kind(8, 16, proj_size=4),
            "has no argument 'proj_size'; allowed: input_size, .*, dtype",
        ),
        (lambda kind: kind(8, hiden_size=16), "'hiden_size'; .*; did you mean 'hidden_size'[?]$"),
        (lambda kind: kind(), ": missing a required argument: 'input_size'$"),
        (lambda kind: kind(8, 16, 1, True, False, 0.0, False, "rms"), ": too many positional arguments$"),
        (lambda kind: kind(8, 16, input_size=3), ": multiple values for argument 'input_size'$"),
        (
            lambda kind: lrn.replace(torch.nn.LSTM(3, 4), kind, nrm="rms"),
            "'nrm'; .*; did you mean 'norm'[?]$",
        ),
    ],
    ids=["misspelt", "torch's", "misspelt and missing", "none", "too many", "twice", "in replace"],
)
@pytest.mark.parametrize("kind", [getattr(lrn, name.upper()) for name in lrn.UNITS], ids=lrn.UNITS)
def test_arguments_that_are_not_there(kind, call, said):
    """In the name of the unit, whichever class has the constructor."""
    with pytest.raises(TypeError, match=rf"^{kind.__name__}.*{said}"):
        call(kind)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Own(), "Own: missing a required argument: 'size'"),
        (lambda: Own(8, nrm="rms"), "Own has no argument 'nrm'; allowed: input_size"),
        (lambda: Own(8, device=3.5), "device"),
    ],
    ids=["the user's", "ours", "none of both"],
)
def test_arguments_of_a_class_of_ones_own(call, said):
    """And what is wrong with something else is left as it is."""
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(("given", "meant"), [("lstm", "LSTM"), ("Lrn", "LRN"), ("makeunit", "make_unit")])
def test_a_name_that_the_package_has_not(given, meant):
    with pytest.raises(AttributeError, match=says(f"module 'lrn' has no attribute '{given}'", f"'{meant}'?")):
        getattr(lrn, given)
    assert not hasattr(lrn, "__wrapped__")


def test_a_second_bias_without_a_first():
    with pytest.raises(ValueError, match=says("hidden_bias=True", "bias=False")):
        lrn.GRU(3, 4, bias=False, hidden_bias=True)


@pytest.mark.parametrize(("given", "near"), [("cuda", ""), ("tritn", "triton"), (None, ""), (["cpu"], "")])
def test_unknown_engine(given, near):
    """The allowed ones are listed at the call, with a block behind it or without one, and nothing changes."""
    words = [f"unknown engine {given!r}", f"allowed: {', '.join(ENGINES)}"] + [f"'{near}'?"] * bool(near)
    with pytest.raises(ValueError, match=says(*words)):
        lrn.engine(given)
    lrn.LRN(3, 4)(torch.zeros(5, 2, 3))


@pytest.mark.parametrize("what", ["input_size", "hidden_size", "num_layers"])
@pytest.mark.parametrize("given", [0, -1, 2.0, "4", None, True])
@names
def test_counts_are_positive_whole_numbers(name, what, given):
    """An empty layer is a mistake further up."""
    sizes = {"input_size": 3, "hidden_size": 4} | {what: given}
    with pytest.raises(ValueError, match=says(f"{what} must be a positive whole number", repr(given))):
        lrn.make_unit(name, **sizes)


@names
def test_counts_of_numpys(name):
    """As they come from the shape of an array."""
    unit = lrn.make_unit(name, np.int64(3), np.int32(4), np.int64(2))
    assert [type(size) for size in (unit.input_size, unit.hidden_size, unit.num_layers)] == [int] * 3
    assert unit(torch.zeros(5, 2, 3))[0].shape == (5, 2, 4)


@pytest.mark.parametrize("what", ["bias", "batch_first", "bidirectional", "residual"])
@pytest.mark.parametrize("given", ["False", "yes", None, 2])
@names
def test_flags_are_true_or_false(name, what, given):
    """A text of a configuration is true, whatever it says."""
    with pytest.raises(TypeError, match=says(f"{what} must be True or False, got {given!r}")):
        lrn.make_unit(name, 3, 4, **{what: given})


def test_flags_that_are_as_good():
    """Numbers, as nn.LSTM takes them; and GRU's own flag."""
    unit = lrn.GRU(3, 4, bias=np.bool_(True), bidirectional=1, batch_first=0)
    assert repr(unit) == "GRU(3, 4, bidirectional=True)"
    with pytest.raises(TypeError, match="hidden_bias must be True or False, got 'no'"):
        lrn.GRU(3, 4, hidden_bias="no")


@pytest.mark.parametrize("given", [1.5, -0.1, float("nan"), True, "0.5"])
@names
def test_dropout_is_a_probability(name, given):
    """A percentage is not one."""
    with pytest.raises(ValueError, match=says("dropout must be a probability from 0 to 1", repr(given))):
        lrn.make_unit(name, 3, 4, num_layers=2, dropout=given)


@names
def test_dropout_with_one_layer_warns(name):
    """It would do nothing, and the user thinks it does."""
    with pytest.warns(UserWarning, match=says("dropout=0.5", "between layers", "only one")):
        lrn.make_unit(name, 3, 4, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lrn.make_unit(name, 3, 4, num_layers=2, dropout=0.5)
        lrn.make_unit(name, 3, 4, dropout=0.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda kind: kind(3, 4, dropout=0.5),
        lambda kind: lrn.make_unit(kind, 3, 4, dropout=0.5),
        lambda kind: type("Mine", (kind,), {})(3, 4, dropout=0.5),
    ],
    ids=["class", "make_unit", "subclass"],
)
@names
def test_dropout_warning_points_at_the_caller(name, call):
    """The line to change is the user's, not one inside the package."""
    with pytest.warns(UserWarning, match="only one") as caught:
        call(getattr(lrn, name.upper()))
    assert [warning.filename for warning in caught] == [__file__]


@names
def test_step_of_a_bidirectional_unit(name):
    """The backward direction begins at the end, which a stream has not reached."""
    unit = lrn.make_unit(name, 3, 4, bidirectional=True)
    with pytest.raises(ValueError, match=says(name.upper(), "bidirectional", "step by step")):
        unit.step(torch.zeros(2, 3))


@pytest.mark.parametrize("shape", [(), (5, 2, 3)])
@pytest.mark.parametrize("batch_first", [False, True])
@names
def test_step_of_a_sequence(name, batch_first, shape):
    """A step has no time dimension."""
    with pytest.raises(ValueError, match=says(f"{name.upper()}.step", "[B, I] or [I]", str(shape))):
        lrn.make_unit(name, 3, 4, batch_first=batch_first).step(torch.zeros(shape))


@names
def test_step_of_wrong_width(name):
    """The same words as for a whole sequence, and the shape that was given."""
    for shape in ((2, 7), (7,)):
        with pytest.raises(ValueError, match=says("3 features", f"got 7: shape {shape}")):
            lrn.make_unit(name, 3, 4).step(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(5, 2, 7), (7,), ()])
@names
def test_project_of_wrong_width(name, shape):
    """Says which layer reads how many."""
    with pytest.raises(
        ValueError, match=says(f"{name.upper()}.project", "layer 0 reads 3 features", str(shape))
    ):
        lrn.make_unit(name, 3, 4).project(torch.zeros(shape))


@names
def test_project_of_an_upper_layer_of_wrong_width(name):
    """The second layer reads what the first puts out, both directions of it."""
    unit = lrn.make_unit(name, 3, 4, num_layers=2, bidirectional=True)
    with pytest.raises(ValueError, match=says("layer 1 reads 8 features", "(5, 2, 3)")):
        unit.project(torch.zeros(5, 2, 3), layer=1)


@names
def test_project_of_wrong_dtype(name):
    """The same words as for the whole unit."""
    with pytest.raises(TypeError, match=says("input must be torch.float32", "got torch.float64")):
        lrn.make_unit(name, 3, 4).project(torch.zeros(5, 2, 3, dtype=torch.float64))


@names
def test_recur_of_something_not_projected(name):
    """The recurrence reads the projection's width, not the input's."""
    unit = lrn.make_unit(name, 300, 4)
    words = (name.upper(), "input of recur is the output of project", f"{4 * unit.gates} features", "got 300")
    with pytest.raises(ValueError, match=says(*words)):
        unit.recur(torch.zeros(5, 2, 300))


@names
def test_recur_with_the_state_of_all_layers(name):
    """One layer takes one layer's state."""
    unit = lrn.make_unit(name, 3, 4, num_layers=2)
    _, state = unit(torch.zeros(5, 2, 3))
    with pytest.raises(ValueError, match=says("state must have shape [1, 2, 4]", "got [2, 2, 4]")):
        unit.recur(unit.project(torch.zeros(5, 2, 3)), state)


@pytest.mark.parametrize("layer", [2, -1, 99])
@names
def test_layer_out_of_range(name, layer):
    """Negative counts from nowhere."""
    unit = lrn.make_unit(name, 3, 4, num_layers=2)
    with pytest.raises(ValueError, match=says(f"{name.upper()} has layers 0 to 1", f"got {layer}")):
        unit.project(torch.zeros(5, 2, 3), layer=layer)
    with pytest.raises(ValueError, match=says(f"{name.upper()} has layers 0 to 1", f"got {layer}")):
        unit.recur(unit.project(torch.zeros(5, 2, 3)), layer=layer)
