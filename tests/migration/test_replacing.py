"""`lrn.replace`: what is swapped, what is said, what is refused, and the models that keep running."""

from __future__ import annotations

import warnings

import pytest
import torch
from helpers import parts, randn, says
from torch import nn

import lrn

names = pytest.mark.parametrize("name", lrn.UNITS)


class Tagger(nn.Module):
    """A model with a recurrent layer two levels down, beside layers that must stay as they are."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 3)
        self.body = nn.ModuleDict({"encoder": nn.ModuleList([rnn])})
        self.head = nn.Linear(4, 5)

    def forward(self, tokens):
        output, _ = self.body["encoder"][0](self.embed(tokens))
        return self.head(output)


def kinds(model):
    return [type(module).__name__ for module in model.modules()]


# What is swapped --------------------------------------------------------------------------------


@names
def test_nested_model(name):
    """The one recurrent layer changes, everything else is the very same object."""
    model = Tagger(nn.LSTM(3, 4))
    embed, head = model.embed, model.head
    assert lrn.replace(model, name, verbose=False) is model
    assert type(model.body["encoder"][0]) is getattr(lrn, name.upper())
    assert model.embed is embed
    assert model.head is head
    assert model(torch.randint(10, (6, 2))).shape == (6, 2, 5)


def test_default_is_lrn():
    """The package's own unit."""
    assert isinstance(lrn.replace(nn.LSTM(3, 4), verbose=False), lrn.LRN)


def test_sequential_and_module_list():
    """Children keep their place in the order."""
    model = nn.Sequential(
        nn.Linear(3, 3), nn.GRU(3, 4), nn.ModuleList([nn.LSTM(4, 4), nn.ReLU(), nn.GRU(4, 2)])
    )
    lrn.replace(model, "lrn", verbose=False)
    assert kinds(model) == ["Sequential", "Linear", "LRN", "ModuleList", "LRN", "ReLU", "LRN"]
    assert (model[2][0].input_size, model[2][2].hidden_size) == (4, 2)
    output, _ = model[1](model[0](torch.zeros(5, 2, 3)))
    assert output.shape == (5, 2, 4)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_model_that_is_itself_a_layer(kind):
    """It cannot be changed in place, so the new unit comes back."""
    model = kind(3, 4)
    unit = lrn.replace(model, "olrn", verbose=False)
    assert isinstance(unit, lrn.OLRN)
    assert type(model) is kind
    assert unit(torch.zeros(5, 2, 3))[0].shape == (5, 2, 4)


def test_shared_layer_is_swapped_once():
    """Weights that were shared stay shared, also where a whole block is."""
    rnn = nn.LSTM(3, 4)
    block = nn.Sequential(rnn)
    model = nn.ModuleDict({"a": rnn, "b": rnn, "c": block, "d": block})
    lrn.replace(model, "lrn", verbose=False)
    assert isinstance(model["a"], lrn.LRN)
    assert model["a"] is model["b"] is model["c"][0] is model["d"][0]
    assert model["c"] is model["d"]
    assert len(list(model.parameters())) == len(list(model["a"].parameters()))


def test_other_layers_are_left_alone():
    """nn.RNN and cells have no counterpart here, and that is said."""
    model = nn.ModuleList([nn.RNN(3, 4), nn.LSTMCell(3, 4), nn.LSTM(3, 4), lrn.SRU(3, 4), nn.GRUCell(3, 4)])
    with pytest.warns(
        UserWarning, match=says("left as they are: 0 (RNN), 1 (LSTMCell), 4 (GRUCell)")
    ) as told:
        lrn.replace(model, "lrn", verbose=False)
    assert kinds(model) == ["ModuleList", "RNN", "LSTMCell", "LRN", "SRU", "GRUCell"]
    assert [each.filename for each in told] == [__file__]


@pytest.mark.parametrize("unit", ["LRN", "Lrn", lrn.LRN])
def test_any_case_and_the_class(unit):
    assert type(lrn.replace(nn.LSTM(3, 4), unit, verbose=False)) is lrn.LRN


def test_a_class_of_the_users_own():
    class Mine(lrn.GRU):
        pass

    assert type(lrn.replace(nn.GRU(3, 4), Mine, verbose=False)) is Mine


# What is kept -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@names
def test_settings_are_kept(name, kind):
    """A swapped model has the shape it had."""
    old = kind(
        3, 4, 2, bias=False, batch_first=True, dropout=0.3, bidirectional=True, dtype=torch.float64
    ).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a pair in place of one
        new = lrn.replace(old, name, verbose=False)
    settings = "input_size hidden_size num_layers bias batch_first dropout bidirectional training"
    for setting in settings.split():
        assert getattr(new, setting) == getattr(old, setting), setting
    assert {parameter.dtype for parameter in new.parameters()} == {torch.float64}
    x = randn(2, 5, 3)
    assert new(x)[0].shape == old(x)[0].shape
    assert parts(new(x)[1])[0].shape == parts(old(x)[1])[0].shape


def test_device_and_training_mode_are_kept():
    """Layer by layer: a frozen encoder in eval mode stays so in a model that trains."""
    model = nn.ModuleList([nn.LSTM(3, 4, device="meta"), nn.GRU(3, 4).eval()])
    lrn.replace(model, "olrn", verbose=False)
    assert {parameter.device.type for parameter in model[0].parameters()} == {"meta"}
    assert [unit.training for unit in model] == [True, False]


def test_options_go_to_the_unit():
    """What torch.nn does not have."""
    model = nn.ModuleList([nn.LSTM(3, 4), nn.GRU(3, 4, num_layers=2)])
    lrn.replace(model, "lrn", verbose=False, norm="layer", activation="identity")
    assert [(unit.norm, unit.activation) for unit in model] == [("layer", "identity")] * 2


@pytest.mark.parametrize(
    "given",
    [
        {"input_size": 3},
        {"hidden_size": 8},
        {"num_layers": 2},
        {"bias": False},
        {"batch_first": True},
        {"dropout": 0.2},
        {"bidirectional": True},
        {"device": "cpu"},
        {"dtype": torch.float64},
    ],
    ids=str,
)
def test_what_is_the_layers_own_cannot_be_given(given):
    """The model around it was written for the layer as it is."""
    (name,) = given
    refused(
        Tagger(nn.LSTM(3, 4)), ValueError, f"{name} is taken from body.encoder.0", "cannot be given", **given
    )


def test_a_residual_connection_goes_to_the_unit():
    model = lrn.replace(nn.Sequential(nn.GRU(4, 4)), "lrn", verbose=False, residual=True)
    x = torch.randn(5, 2, 4)
    output, h_n = model(x)
    torch.testing.assert_close(output[-1] - x[-1], h_n[0])


def test_a_residual_connection_that_a_layer_cannot_have():
    """The layer is named, and nothing is swapped."""
    model = nn.ModuleDict({"fits": nn.LSTM(4, 4), "wide": nn.LSTM(3, 4)})
    with pytest.raises(ValueError, match="cannot replace wide: residual=True needs a layer"):
        lrn.replace(model, "lrn", verbose=False, residual=True)
    assert [type(module) for module in model.values()] == [nn.LSTM, nn.LSTM]


# What it says -----------------------------------------------------------------------------------


def test_message(capsys):
    """One line a swap: where, from what, to what, and the parameters before and after."""
    model = Tagger(nn.LSTM(3, 4, batch_first=True))
    lrn.replace(model, "lrn", norm="rms")
    old, new = 4 * 4 * (3 + 4 + 2), 3 * 4 * (3 + 1) + 3 * 4
    assert capsys.readouterr().out == (
        "body.encoder.0: LSTM(3, 4, batch_first=True) -> LRN(3, 4, batch_first=True, norm='rms'), "
        f"{old} -> {new} parameters, new weights\n"
    )


@pytest.mark.parametrize(("kind", "name"), [(nn.LSTM, "lstm"), (nn.GRU, "gru")])
def test_message_where_weights_are_kept(kind, name, capsys):
    lrn.replace(kind(3, 4), name)
    assert capsys.readouterr().out.endswith("parameters, weights kept\n")
    lrn.replace(kind(3, 4), name, norm="rms")
    assert capsys.readouterr().out.endswith("parameters, new weights\n")


def test_message_for_the_model_itself_and_for_thousands(capsys):
    """A model without a name is called model; numbers are grouped."""
    lrn.replace(nn.GRU(30, 40), "elrn")
    assert capsys.readouterr().out == (
        "model: GRU(30, 40) -> ELRN(30, 40), 8,640 -> 1,240 parameters, new weights\n"
    )


def test_silence(capsys):
    """verbose=False prints nothing at all."""
    lrn.replace(Tagger(nn.LSTM(3, 4)), "lrn", verbose=False)
    assert capsys.readouterr() == ("", "")


# What is refused --------------------------------------------------------------------------------


def refused(model, error, *words, unit="lrn", **kwargs):
    """The error comes before anything has changed."""
    before = list(model.modules())
    with pytest.raises(error, match=says(*words)):
        lrn.replace(model, unit, verbose=False, **kwargs)
    assert all(now is then for now, then in zip(model.modules(), before, strict=True))


def test_projections_are_refused():
    """proj_size has no counterpart; the layer that could be swapped waits too."""
    model = nn.ModuleDict({"fine": nn.LSTM(3, 4), "odd": nn.LSTM(3, 4, proj_size=2)})
    refused(model, ValueError, "cannot replace odd", "proj_size=2", "Linear")


def test_subclasses_are_refused():
    """Their forward may do anything."""

    class NoisyLSTM(nn.LSTM):
        pass

    model = nn.ModuleDict({"fine": nn.GRU(3, 4), "noisy": NoisyLSTM(3, 4)})
    refused(model, ValueError, "cannot replace noisy", "NoisyLSTM", "subclass", "plain nn.LSTM")
    model["noisy"] = nn.LSTM(3, 4)
    model["noisy"].noise = nn.Parameter(torch.zeros(3))
    refused(model, ValueError, "cannot replace noisy", "parameters of its own", "plain nn.LSTM")


def test_parametrised_layers_are_refused():
    """Their weights are computed; the swap would lose how."""
    normed = torch.nn.utils.parametrizations.weight_norm(nn.LSTM(3, 4), "weight_hh_l0")
    model = nn.ModuleList([nn.GRU(3, 4), normed])
    refused(
        model, ValueError, "cannot replace 1: its weight_hh_l0 is parametrised", "remove_parametrizations"
    )
    torch.nn.utils.parametrize.remove_parametrizations(normed, "weight_hh_l0")
    with pytest.warns(UserWarning, match="hooks on load_state_dict"):  # torch leaves its own behind
        lrn.replace(model, verbose=False)
    assert kinds(model) == ["ModuleList", "LRN", "LRN"]


def test_layers_parametrised_by_hooks_are_refused():
    """The older way to the same thing, as weight-dropped LSTMs and pruning use it: a hook sets the weight."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        normed = torch.nn.utils.weight_norm(nn.LSTM(3, 4), "weight_hh_l0")
    words = ("cannot replace 1: its weight_hh_l0 is set by a hook", "remove_weight_norm")
    refused(nn.ModuleList([nn.GRU(3, 4), normed]), ValueError, *words)


def test_nothing_to_replace():
    """Silence would look like success."""
    refused(nn.Sequential(nn.Linear(3, 4)), ValueError, "Sequential has no nn.LSTM or nn.GRU inside")
    refused(nn.Sequential(nn.GRUCell(3, 4)), ValueError, "no nn.LSTM", "0 (GRUCell) cannot be swapped")
    model = nn.Sequential(lrn.LRN(3, 4), lrn.SRU(4, 4))
    refused(model, ValueError, "no nn.LSTM", "inside; 0 (LRN), 1 (SRU): already lrn's")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda model: torch.jit.script(model), "0 (LSTM, scripted) cannot be swapped"),
        (
            lambda model: torch.ao.quantization.quantize_dynamic(model, {nn.LSTM}),
            "0 (LSTM, quantized) cannot be swapped",
        ),
    ],
    ids=["scripted", "quantized"],
)
def test_layers_that_are_no_longer_torchs_own(made, said):
    """Their names say LSTM and their classes do not."""
    refused(made(nn.Sequential(nn.LSTM(3, 4))), ValueError, "has no nn.LSTM or nn.GRU inside", said)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ([nn.LSTM(3, 4)], "model must be an nn.Module, got a list"),
        ({"weight": torch.zeros(3)}, "got a dict"),
        (torch.zeros(300, 300), "got a Tensor"),
        (nn.LSTM, "got the class LSTM"),
        (None, "got a NoneType"),
    ],
    ids=["list", "state_dict", "tensor", "class", "None"],
)
def test_what_is_no_model(model, said):
    with pytest.raises(TypeError, match=says(said)):
        lrn.replace(model, "lrn")


@pytest.mark.parametrize("model", ["lrn", lrn.LRN])
def test_swapped_arguments(model):
    """Which comes first is said, and the model is not printed."""
    with pytest.raises(TypeError) as caught:
        lrn.replace(model, Tagger(nn.LSTM(3, 4)))
    assert str(caught.value).endswith("; the model comes first: lrn.replace(model, unit)")
    assert len(str(caught.value)) < 120


def test_wrapped_models_are_refused():
    """What DistributedDataParallel adds up are the gradients of the parameters that it was made with."""

    class Wrapped(nn.parallel.DistributedDataParallel):
        def __init__(self, module):
            nn.Module.__init__(self)
            self.module = module

    refused(Wrapped(Tagger(nn.LSTM(3, 4))), ValueError, "DistributedDataParallel", "replace first")


def test_wrong_names_and_options_change_nothing():
    """Unit names and options are checked as everywhere else."""
    refused(Tagger(nn.LSTM(3, 4)), ValueError, "unknown unit 'lrm'", "did you mean 'lrn'?", unit="lrm")
    refused(Tagger(nn.LSTM(3, 4)), ValueError, "unknown norm 'batch'", norm="batch")
    refused(Tagger(nn.LSTM(3, 4)), TypeError, "activation", unit="olrn", activation="tanh")
    refused(Tagger(nn.LSTM(3, 4)), TypeError, "unit must be a name (lrn, ", "or the class", unit=nn.LSTM)
    refused(Tagger(nn.LSTM(3, 4)), TypeError, "unit must be", "got an LRN", unit=lrn.LRN(3, 4))
    refused(Tagger(nn.LSTM(3, 4)), TypeError, "unit must be", unit=lrn.Unit)


@pytest.mark.parametrize("name", ["lstm", "sru"])
def test_a_pair_in_place_of_a_single_state_is_told(name, capsys):
    """Whoever indexes the state of an nn.GRU must hear that it is a pair now."""
    with pytest.warns(UserWarning, match=says("model: the state was one tensor and is now a pair (h, c)")):
        lrn.replace(nn.GRU(3, 4), name)
    assert "state now a pair (h, c)" in capsys.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lrn.replace(nn.LSTM(3, 4), name)
    assert "pair" not in capsys.readouterr().out


def test_dropout_on_one_layer_is_not_warned_of_twice():
    """torch has, when the layer was made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = nn.LSTM(3, 4, dropout=0.5)
        warnings.simplefilter("error")
        assert lrn.replace(layer, verbose=False).dropout == 0.5
