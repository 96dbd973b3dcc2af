"""An optimizer made before a swap: mended if it is given, told of at its next step if not."""

from __future__ import annotations

import warnings

import pytest
import torch
from helpers import says
from torch import nn

import lrn


def model_of(kind=nn.LSTM):
    torch.manual_seed(1)
    return nn.ModuleDict({"rnn": kind(3, 4), "head": nn.Linear(4, 2)})


def train(model, optimizer, steps=1):
    x = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(2))
    for _ in range(steps):
        optimizer.zero_grad()
        model["head"](model["rnn"](x)[0]).square().sum().backward()
        optimizer.step()


def held(optimizer):
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def silently(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call(*args, **kwargs)


# Not given --------------------------------------------------------------------------------------


def test_a_stale_optimizer_is_told_of_once():
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    silently(train, model, optimizer)
    silently(lrn.replace, model, verbose=False)
    with pytest.warns(
        UserWarning, match=says("this Adam was made before lrn.replace", "rnn.weight_ih_l0")
    ) as told:
        train(model, optimizer)
    assert [each.filename for each in told] == [__file__]
    silently(train, model, optimizer)


def test_a_new_optimizer_is_not():
    model = model_of()
    silently(lrn.replace, model, verbose=False)
    silently(train, model, torch.optim.SGD(model.parameters(), 0.1))


def test_an_optimizer_of_another_model_is_not():
    other, model = model_of(), model_of()
    optimizer = torch.optim.SGD(other.parameters(), 0.1)
    silently(lrn.replace, model, verbose=False)
    silently(train, other, optimizer)


def test_an_optimizer_of_the_rest_is_not():
    model = model_of()
    optimizer = torch.optim.SGD(model["head"].parameters(), 0.1)
    silently(lrn.replace, model, verbose=False)
    silently(train, model, optimizer)


def test_a_layer_that_is_left_to_the_user_is_not():
    """It is returned anew, and the old one is as good as before."""
    layer = nn.LSTM(3, 4)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    silently(lrn.replace, layer, verbose=False)
    layer(torch.randn(5, 2, 3))[0].sum().backward()
    silently(optimizer.step)


# Given ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", lrn.UNITS)
def test_mended(name):
    """It holds the model's parameters, no other, and trains them."""
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    train(model, optimizer)
    silently(lrn.replace, model, name, optimizer=optimizer, verbose=False)
    assert held(optimizer) == {id(p) for p in model.parameters()}
    assert {id(p) for p in optimizer.state} <= held(optimizer)
    before = [p.detach().clone() for p in model.parameters()]
    silently(train, model, optimizer, 2)
    assert all(not torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))


def test_moments_of_kept_weights_are_kept():
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, 3)
    old = model["rnn"]
    moments = {name: optimizer.state[p]["exp_avg"].clone() for name, p in old.named_parameters()}
    lrn.replace(model, "lstm", optimizer=optimizer, verbose=False)
    for name, parameter in model["rnn"].named_parameters():
        assert torch.equal(optimizer.state[parameter]["exp_avg"], moments[name]), name
    assert optimizer.state[model["rnn"].weight_ih_l0]["step"] == 3


def test_moments_of_new_weights_are_not():
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    lrn.replace(model, "lrn", optimizer=optimizer, verbose=False)
    assert {id(p) for p in optimizer.state} == {id(p) for p in model["head"].parameters()}


def test_groups_and_names_stay():
    """A new parameter goes where the one was from which it follows."""
    model = model_of()
    biases = [(n, p) for n, p in model.named_parameters() if "bias" in n]
    others = [(n, p) for n, p in model.named_parameters() if "bias" not in n]
    optimizer = torch.optim.SGD([{"params": others}, {"params": biases, "lr": 0.5}], lr=0.1)
    lrn.replace(model, "sru", norm="layer", optimizer=optimizer, verbose=False)
    names = [sorted(group["param_names"]) for group in optimizer.param_groups]
    assert names[1] == ["head.bias", "rnn.bias_ih_l0"]
    assert names[0] == sorted(set(dict(model.named_parameters())) - set(names[1]))
    for group in optimizer.param_groups:
        own = dict(model.named_parameters())
        assert [id(p) for p in group["params"]] == [id(own[name]) for name in group["param_names"]]


def test_several_optimizers():
    model = model_of()
    both = [torch.optim.SGD(part.parameters(), 0.1) for part in (model["rnn"], model["head"])]
    lrn.replace(model, optimizer=both, verbose=False)
    assert held(both[0]) == {id(p) for p in model["rnn"].parameters()}
    assert held(both[1]) == {id(p) for p in model["head"].parameters()}


def test_what_cannot_be_mended_is_refused():
    """Before anything has changed."""
    model, other = model_of(), model_of()
    cases = [
        (torch.optim.SGD(other.parameters(), 0.1), ValueError, "holds no parameter of the layers to swap"),
        (torch.optim.LBFGS(model.parameters()), ValueError, "LBFGS cannot be mended"),
        ("adam", TypeError, "optimizer must be a torch.optim.Optimizer, got a str"),
    ]
    for optimizer, error, text in cases:
        with pytest.raises(error, match=text):
            lrn.replace(model, optimizer=optimizer, verbose=False)
        assert type(model["rnn"]) is nn.LSTM
