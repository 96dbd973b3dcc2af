"""`lrn.quantize`: which parts become int8, what it says, what it refuses; the model stays as it was."""

from __future__ import annotations

import pytest
import torch
from helpers import says
from torch import nn

import lrn
from lrn.migration import quantizing
from lrn.migration.int8 import INT8, Int8Linear


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.embed = nn.Embedding(9, 8)
        self.rnn = lrn.LRN(8, 16, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens, lengths=None):
        output, _ = self.rnn(self.embed(tokens), lengths=lengths)
        return self.head(output)


@pytest.fixture
def gains(monkeypatch):
    """Timings that are not left to chance: by what part they are of, in order."""
    given: list[float] = []
    monkeypatch.setattr(quantizing, "_gain", lambda before, after: given.pop(0))
    return given


TOKENS = torch.tensor([[1, 2], [3, 4], [5, 6]])


def test_a_copy_with_int8_where_it_gains(gains, capsys):
    model = Tagger()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gains += [1.5, 0.8]
    small = lrn.quantize(model)
    assert type(small.rnn) is INT8[lrn.LRN]
    assert type(small.head) is nn.Linear
    assert type(model.rnn) is lrn.LRN
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(module.training for module in small.modules())
    assert not any(parameter.requires_grad for parameter in small.parameters())
    expected = model.eval()(TOKENS)
    found = small(TOKENS)
    assert 0 < (found - expected).norm() < 0.1 * expected.norm()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("rnn: LRN(8, 16, bidirectional=True) -> int8, 1.50 times as fast, outputs ")
    assert first.endswith("% apart, 3,456 -> 1,536 bytes")
    assert second == (
        "head: Linear(in_features=32, out_features=5, bias=True) stays in float32: "
        "with int8 it is 0.80 times as fast"
    )


def test_nothing_gained_is_refused(gains):
    model = Tagger()
    gains += [0.9, 1.04]
    with pytest.raises(RuntimeError, match=says("gains nothing", "rnn: LRN", "0.90", "head", "force=True")):
        lrn.quantize(model)
    gains += [0.9, 1.04]
    small = lrn.quantize(model, force=True, verbose=False)
    assert (type(small.rnn), type(small.head)) == (INT8[lrn.LRN], Int8Linear)


def test_linear_maps_can_be_left_alone(gains):
    gains += [2.0]
    small = lrn.quantize(Tagger(), linear=False, verbose=False)
    assert type(small.head) is nn.Linear


def test_a_unit_itself(gains, capsys):
    gains += [2.0]
    assert type(lrn.quantize(lrn.SRU(3, 4))) is INT8[lrn.SRU]
    assert capsys.readouterr().out.startswith("model: SRU(3, 4) -> int8, 2.00 times as fast")


def test_shared_parts_stay_shared(gains):
    unit = lrn.LRN(4, 4)
    gains += [2.0]
    small = lrn.quantize(nn.ModuleDict({"a": unit, "b": nn.Sequential(unit)}), verbose=False)
    assert small["a"] is small["b"][0]


def test_hooks_stay(gains):
    model, seen = Tagger(), []
    model.head.register_forward_hook(lambda *args: seen.append("head"))
    model.rnn.register_forward_hook(lambda *args: seen.append("rnn"))
    gains += [2.0, 2.0]
    small = lrn.quantize(model, verbose=False)
    seen.clear()
    small(TOKENS)
    assert seen == ["rnn", "head"]


# What a part is timed on ------------------------------------------------------------------------


def timed(monkeypatch, model, *args, **kwargs):
    """What went into each part that was timed: its shape, and the names of keywords."""
    given = {}
    real = quantizing._timed

    def time_it(name, part, inputs):
        given[name] = (tuple(inputs[0][0].shape), sorted(inputs[1]))
        return real(name, part, inputs)

    monkeypatch.setattr(quantizing, "_timed", time_it)
    lrn.quantize(model, *args, verbose=False, force=True, **kwargs)
    monkeypatch.undo()
    return given


@pytest.mark.parametrize(("tokens", "shape"), [(256, (32, 8)), (1, (1, 1)), (20, (2, 8))])
def test_made_up_tokens(monkeypatch, tokens, shape):
    found = timed(monkeypatch, Tagger(), tokens=tokens)
    assert found == {"rnn": ((*shape, 8), []), "head": ((tokens, 32), [])}


def test_an_example(monkeypatch):
    """Each part on what it gets when the model runs, keywords included; one that is not run, as without."""
    model = Tagger()
    model.other = nn.Linear(7, 3)
    found = timed(monkeypatch, model, {"tokens": TOKENS, "lengths": [3, 1]}, tokens=10)
    assert found == {"rnn": ((3, 2, 8), ["lengths"]), "head": ((3, 2, 32), []), "other": ((10, 7), [])}
    found = timed(monkeypatch, model, TOKENS, call=lambda model, tokens: model(tokens[:2]))
    assert found["rnn"] == ((2, 2, 8), ["lengths"])


def test_timing_itself():
    """A call that waits is told from one that does not."""
    import time

    assert quantizing._gain(lambda: time.sleep(0.004), lambda: None) > 2
    assert quantizing._gain(lambda: None, lambda: time.sleep(0.004)) < 0.5


# What is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.ReLU(), ["nothing in ReLU can have int8 weights", "no unit of lrn and no nn.Linear"]),
        (nn.LSTM(3, 4), ["nothing in LSTM", "lrn.replace first"]),
        (lrn.LRN(3, 4, dtype=torch.float64), ["model is torch.float64 on cpu, not float32 on the CPU"]),
        (lrn.LRN(3, 4, device="meta"), ["torch.float32 on meta"]),
        (type("Mine", (lrn.LRN,), {})(3, 4), ["model (Mine) is a unit of another class"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_to_quantize(model, words):
    with pytest.raises(ValueError, match=says(*words)):
        lrn.quantize(model)


def test_wrong_arguments():
    with pytest.raises(TypeError, match=says("model must be an nn.Module, got a str")):
        lrn.quantize("model")
    with pytest.raises(ValueError, match="tokens must be a positive whole number, got 0"):
        lrn.quantize(lrn.LRN(3, 4), tokens=0)
    small = lrn.quantize(lrn.LRN(3, 4), force=True, verbose=False)
    with pytest.raises(ValueError, match="int8 weights already"):
        lrn.quantize(small)


def test_a_torch_without_the_kernels(monkeypatch):
    monkeypatch.setattr(quantizing, "why_missing", lambda: "no such operator")
    with pytest.raises(RuntimeError, match=says("torch's int8 kernels cannot run here: no such operator")):
        lrn.quantize(lrn.LRN(3, 4))
