"""What a swap hands on: weights, frozen flags, hooks; and what it warns of because it cannot."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from helpers import parts, randn, says, tensors
from torch import nn

import lrn

ALL = {"num_layers": 2, "bidirectional": True, "batch_first": True}


def swapped(model, unit="lrn", **kwargs):
    """Without a line, and without anything to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return lrn.replace(model, unit, verbose=False, **kwargs)


# Weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [{}, ALL, {"bias": False}], ids=str)
@pytest.mark.parametrize(("kind", "name"), [(nn.LSTM, "lstm"), (nn.GRU, "gru")])
def test_weights_are_kept(kind, name, kwargs):
    """The swapped model computes what it did."""
    old = kind(3, 4, dtype=torch.float64, **kwargs)
    new = swapped(old, name)
    assert type(new) is getattr(lrn, name.upper())
    x = randn(5, 2, 3)
    for one, other in zip(tensors(new(x)), tensors(old(x)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_weights_are_kept_inside_a_model():
    model = nn.ModuleDict({"a": nn.GRU(3, 4), "b": nn.Linear(4, 2), "c": nn.GRU(4, 4)}).double().eval()
    before = copy.deepcopy(model)
    swapped(model, "gru")

    def run(model, x):
        return model["c"](torch.tanh(model["a"](x)[0]))[0]

    torch.testing.assert_close(run(model, randn(5, 2, 3)), run(before, randn(5, 2, 3)), rtol=0, atol=1e-12)


def test_gru_gets_a_second_bias_where_there_is_something_to_put():
    old = nn.GRU(3, 4, bidirectional=True)
    assert swapped(old, "gru").hidden_bias
    with torch.no_grad():
        for bias in (old.bias_hh_l0, old.bias_hh_l0_reverse):
            bias[8:] = 0
    assert not swapped(old, "gru").hidden_bias
    assert swapped(old, "gru", hidden_bias=True).hidden_bias
    assert not swapped(nn.GRU(3, 4, bias=False), "gru").hidden_bias
    assert not swapped(nn.LSTM(3, 4), "gru").hidden_bias
    assert swapped(nn.GRU(3, 4, device="meta"), "gru").hidden_bias


def test_a_second_bias_that_may_not_be_is_refused():
    model = nn.ModuleDict({"rnn": nn.GRU(3, 4)})
    with pytest.raises(ValueError, match=says("cannot replace rnn", "bias_hh_l0", "hidden_bias=True")):
        lrn.replace(model, "gru", hidden_bias=False)
    assert type(model["rnn"]) is nn.GRU


def test_another_function_has_new_weights():
    """Weights that mean something else are not kept, and that is no error."""
    old = nn.LSTM(3, 4)
    new = swapped(old, "lstm", norm="layer")
    assert not torch.equal(new.weight_ih_l0, old.weight_ih_l0)


@pytest.mark.parametrize(("kind", "name"), [(nn.LSTM, "lstm"), (nn.GRU, "gru")])
def test_with_residual_connections_it_is_another_function(kind, name):
    old = kind(4, 4)
    new = swapped(old, name, residual=True)
    assert not torch.equal(new.weight_ih_l0, old.weight_ih_l0)


def test_names_stay():
    """Whoever saved a model by name finds its parts again."""
    model = nn.ModuleDict({"first": nn.Linear(3, 3), "rnn": nn.LSTM(3, 4), "last": nn.Linear(4, 3)})
    names = [name for name, _ in model.named_modules()]
    before = model.state_dict()
    swapped(model, "lstm")
    assert [name for name, _ in model.named_modules()] == names
    assert set(before) - set(model.state_dict()) == {"rnn.bias_hh_l0"}
    model.load_state_dict(before)  # what was saved before the swap


# Frozen flags -----------------------------------------------------------------------------------


def test_frozen_weights_stay_frozen():
    old = nn.LSTM(3, 4, 2).requires_grad_(False)
    old.weight_hh_l0.requires_grad_()
    old.bias_hh_l1.requires_grad_()
    new = swapped(old, "lstm")
    assert {name for name, p in new.named_parameters() if p.requires_grad} == {"weight_hh_l0", "bias_ih_l1"}
    assert not any(p.requires_grad for p in swapped(nn.GRU(3, 4).requires_grad_(False), "gru").parameters())
    assert all(p.requires_grad for p in swapped(nn.GRU(3, 4), "gru").parameters())


def test_new_weights_that_are_frozen_are_told():
    """They are random, and nothing would ever change them."""
    model = nn.ModuleDict({"a": nn.LSTM(3, 4).requires_grad_(False), "b": nn.LSTM(3, 4)})
    with pytest.warns(
        UserWarning, match=says("a: weights that were frozen are new now", "requires_grad_")
    ) as told:
        lrn.replace(model, "sru", norm="rms", verbose=False)
    assert len(told) == 1
    assert not any(p.requires_grad for p in model["a"].parameters())
    assert all(p.requires_grad for p in model["b"].parameters())


# Hooks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", lrn.UNITS)
def test_hooks_are_carried(name):
    """Those before, after, with keywords, always, and those of the backward pass; each can be removed."""
    layer, seen = nn.LSTM(3, 4), []
    handles = [
        layer.register_forward_pre_hook(lambda module, args: seen.append("before")),
        layer.register_forward_pre_hook(lambda m, a, k: seen.append(f"before {sorted(k)}"), with_kwargs=True),
        layer.register_forward_hook(lambda module, args, result: seen.append("after")),
        layer.register_forward_hook(lambda m, a, r: seen.append("always"), always_call=True),
        layer.register_full_backward_hook(lambda module, inside, outside: seen.append("back")),
        layer.register_full_backward_pre_hook(lambda module, outside: seen.append("going back")),
    ]
    model = nn.ModuleDict({"rnn": layer})
    swapped(model, name)
    output, _ = model["rnn"](torch.randn(5, 2, 3, requires_grad=True), hx=None)
    output.sum().backward()
    assert seen == ["before", "before ['hx']", "after", "always", "going back", "back"]
    for handle in handles:
        handle.remove()
    seen.clear()
    model["rnn"](torch.randn(5, 2, 3))
    assert seen == []


def test_a_hook_changes_what_comes_out():
    layer = nn.GRU(3, 4)
    layer.register_forward_hook(lambda module, args, result: (2 * result[0], result[1]))
    new = swapped(layer, "gru")
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(new(x), layer(x))


def test_hooks_that_cannot_be_carried_are_told():
    layer = nn.LSTM(3, 4)
    layer.register_state_dict_post_hook(lambda *args: None)
    layer.register_load_state_dict_pre_hook(lambda *args: None)
    layer.weight_ih_l0.register_hook(lambda grad: grad)
    layer.bias_ih_l0.register_post_accumulate_grad_hook(lambda parameter: None)
    with pytest.warns(UserWarning) as told:  # noqa: PT030
        lrn.replace(nn.ModuleDict({"rnn": layer}), verbose=False)
    texts = sorted(str(each.message) for each in told)
    assert len(texts) == 2
    assert texts[0].startswith("rnn: its hooks on load_state_dict and state_dict are not carried over")
    assert "rnn: the gradient hooks on weight_ih_l0, bias_ih_l0 are not carried over" in texts[1]


def test_weights_that_were_shared_are_told():
    one, other = nn.LSTM(3, 4), nn.LSTM(3, 4)
    other.weight_hh_l0 = one.weight_hh_l0
    with pytest.warns(UserWarning, match=says("weight_hh_l0 was shared with", "weight_hh_l0")) as told:
        lrn.replace(nn.ModuleDict({"one": one, "other": other}), verbose=False)
    assert [str(each.message).split(",")[0] for each in told] == [
        "one: weight_hh_l0 was shared with other.weight_hh_l0",
        "other: weight_hh_l0 was shared with one.weight_hh_l0",
    ]


def test_warnings_that_are_errors_come_before_anything_has_changed():
    model = nn.ModuleDict({"rnn": nn.GRU(3, 4)})
    with pytest.raises(UserWarning, match="pair"):
        swapped(model, "lstm")
    assert type(model["rnn"]) is nn.GRU


def test_a_swapped_model_trains():
    """All that was handed on together: the loss falls."""
    torch.manual_seed(1)
    model = swapped(nn.ModuleDict({"rnn": nn.LSTM(3, 8), "head": nn.Linear(8, 1)}), "lstm")
    optimizer, x = torch.optim.Adam(model.parameters(), 0.02), torch.randn(6, 16, 3)
    losses = []
    for _ in range(40):
        output, state = model["rnn"](x)
        assert len(parts(state)) == 2
        loss = (model["head"](output[-1]).squeeze(-1) - x.sum((0, 2))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
