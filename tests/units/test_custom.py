"""A user's own unit: ours, written as one, must come out the same; and what is wrong with one is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from compare.cases import timed
from helpers import assert_same, says
from torch.autograd import gradcheck
from torch.nn.utils.rnn import pack_padded_sequence

import lrn
from lrn import cli, compare
from lrn.report.results import Comparison
from lrn.units import unit_class

T, B, N, H = 6, 3, 5, 4
LENGTHS = torch.tensor([6, 2, 0])
RESET = torch.tensor([[False, True, False], [True, False, False]] * 3)


class OwnLRN(lrn.CustomUnit):
    gates = 3

    def advance(self, x, state, learnt):
        (q, k, v), (h,) = x, state
        return (torch.tanh(torch.sigmoid(k + h) * v + torch.sigmoid(q - h) * h),)


class OwnGRU(lrn.CustomUnit):
    gates = 3
    hidden_gates = 3

    def advance(self, x, state, learnt):
        (x_r, x_z, x_n), (h,) = x, state
        h_r, h_z, h_n = learnt.product(h)
        z = torch.sigmoid(x_z + h_z)
        return ((1 - z) * torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n) + z * h,)


class OwnSRU(lrn.CustomUnit):
    gates = 4
    parts = 2
    vectors = ("v_r", "v_f")

    def advance(self, x, state, learnt):
        (x_r, x_f, x_c, x_h), (_, c) = x, state
        r = torch.sigmoid(x_r + learnt.vectors["v_r"] * c)
        f = torch.sigmoid(x_f + learnt.vectors["v_f"] * c)
        c = f * c + (1 - f) * x_c
        return r * c + (1 - r) * x_h, c


PAIRS = {"lrn": (OwnLRN, lrn.LRN), "gru": (OwnGRU, lrn.GRU), "sru": (OwnSRU, lrn.SRU)}
each_pair = pytest.mark.parametrize("name", PAIRS)
each_setting = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bidirectional": True, "num_layers": 2},
        {"norm": "layer", "bidirectional": True},
        {"bias": False, "batch_first": True},
    ],
    ids=str,
)


def both(name, **settings):
    """A unit as the user has written it, and ours with the same weights, in float64."""
    own, ours = (kind(N, H, dtype=torch.float64, **settings) for kind in PAIRS[name])
    ours.load_state_dict(own.state_dict())
    return own, ours


def flat(state):
    return state if isinstance(state, tuple) else (state,)


@each_pair
@each_setting
def test_a_unit_of_ones_own_is_what_ours_is(name, settings):
    torch.manual_seed(1)
    own, ours = both(name, **settings)
    x = torch.randn(T, B, N, dtype=torch.float64)
    lengths, reset = LENGTHS, RESET
    if settings.get("batch_first"):
        x, reset = x.transpose(0, 1), reset.T
    for rows in ({}, {"lengths": lengths}, {"lengths": lengths, "reset": reset}):
        (output, state), (expected, final) = own(x, **rows), ours(x, **rows)
        assert_same(output, expected)
        for found, wanted in zip(flat(state), flat(final), strict=True):
            assert_same(found, wanted)
    packed = pack_padded_sequence(
        x, [6, 4, 1], batch_first=settings.get("batch_first", False), enforce_sorted=False
    )
    assert_same(own(packed)[0].data, ours(packed)[0].data)


@each_pair
def test_steps_are_the_sequence(name):
    own, _ = both(name, num_layers=2)
    x, state, outputs = torch.randn(T, B, N, dtype=torch.float64), None, []
    for x_t in x:
        h, state = own.step(x_t, state)
        outputs.append(h)
    assert_same(torch.stack(outputs), own(x)[0])


@each_pair
def test_its_gradient_is_right(name):
    own, _ = both(name, bidirectional=True)
    x = torch.randn(3, 2, N, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, *_: own(x)[0], (x, *own.parameters()))


@each_pair
def test_as_a_cell_of_translation_it_is_what_ours_is(name):
    from lrn.nn.two_cells import TwoCells

    (low, ours_low), (high, ours_high) = both(name), both(name)
    x, y = (torch.randn(5, N, dtype=torch.float64) for _ in range(2))
    start = torch.zeros(1, 3, H, dtype=torch.float64)
    state = (start, start) if low.parts == 2 else start
    own, ours = TwoCells(low, high), TwoCells(ours_low, ours_high)
    assert not own.walks_at_once
    assert_same(own(x, y, [3, 2], state)[0], ours(x, y, [3, 2], state)[0])


# What can be wrong with one -----------------------------------------------------------------------


def new(**attributes):
    return type("Mine", (lrn.CustomUnit,), {"gates": 1, "advance": lambda *_: None, **attributes})


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"gates": 0}, "Mine.gates must be a whole number from 1, got 0"),
        ({"gates": None}, "Mine.gates must be a whole number from 1, got None"),
        ({"hidden_gates": True}, "Mine.hidden_gates must be a whole number from 0, got True"),
        ({"parts": 3}, "Mine.parts must be 1 (h) or 2 (h and c), got 3"),
        ({"vectors": "v"}, "Mine.vectors must be names, like (\"v\",), got 'v'"),
        ({"vectors": ("bias_v",)}, "may not begin with weight, bias or norm, got 'bias_v'"),
        (
            {"advance": lrn.CustomUnit.advance},
            "Mine needs a method advance(self, x, state, learnt), its step",
        ),
    ],
    ids=["no gates", "gates unsaid", "gates true", "three parts", "a text", "a name of ours", "no step"],
)
def test_a_class_that_is_none_is_refused(attributes, said):
    with pytest.raises(TypeError, match=says(said)):
        new(**attributes)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (lambda h: h, TypeError, "Mine.advance must return a tuple of 1, the new state; got Tensor"),
        (lambda h: (h, h), TypeError, "Mine.advance must return a tuple of 1, the new state; got 2 of them"),
        (lambda h: (h[:, :2],), ValueError, "must return tensors of shape (3, 4), got (3, 2)"),
        (lambda h: (None,), ValueError, "must return tensors of shape (3, 4), got NoneType"),
    ],
)
def test_a_step_that_gives_no_state_is_refused(given, kind, said):
    unit = new(advance=lambda self, x, state, learnt: given(state[0]))(N, H)
    with pytest.raises(kind, match=says(said)):
        unit(torch.randn(T, B, N))


def test_a_product_without_weights_is_refused():
    unit = new(advance=lambda self, x, state, learnt: (learnt.product(state[0])[0],))(N, H)
    with pytest.raises(TypeError, match=says("Mine has no products of the hidden state")):
        unit(torch.randn(T, B, N))


# By name --------------------------------------------------------------------------------------------

MODULE = """
import lrn, torch
class Leaky(lrn.CustomUnit):
    gates = 2
    def advance(self, x, state, learnt):
        (q, v), (h,) = x, state
        f = torch.sigmoid(q)
        return (f * h + (1 - f) * v,)
class Other:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with a unit in the current folder, which nothing has imported."""
    (tmp_path / "leaky_of_tests.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LRN_UNITS", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "leaky_of_tests"
    sys.modules.pop("leaky_of_tests", None)


def test_a_name_is_imported_only_if_the_user_says_so(module):
    from lrn import own

    with pytest.raises(ValueError, match=says("LRN_UNITS=leaky_of_tests before the command")):
        unit_class("leaky_of_tests:Leaky")
    own.trust("leaky_of_tests:Leaky")
    assert unit_class("leaky_of_tests:Leaky").__name__ == "Leaky"
    assert type(lrn.make_unit("leaky_of_tests:Leaky", 3, 4)).__name__ == "Leaky"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("leaky_of_tests:Leeky", "leaky_of_tests has no Leeky"),
        ("leaky_of_tests:Other", "it must be a class that inherits lrn.CustomUnit"),
        ("leaky_of_tests:torch", "it must be a class that inherits lrn.CustomUnit"),
        ("there_is_none:Leaky", "there is no module there_is_none, neither in"),
        ("leaky_of_tests:Lea-ky", "a unit of your own is written my_module:MyUnit"),
        ("leaky_of_tests", "unknown unit 'leaky_of_tests'; allowed: lrn, olrn"),
    ],
)
def test_a_wrong_name_is_said(module, name, said):
    from lrn import own

    if ":" in name:
        own.trust(name)
    with pytest.raises(ValueError, match=says(said)):
        unit_class(name)


@pytest.mark.parametrize(
    ("advance", "kind"),
    [
        (lambda self, x, state, learnt: (learnt.vectors["u"] * state[0],), KeyError),
        (lambda self, x, state, learnt: [q for q, v, w in [x]], ValueError),
        (lambda self, x, state, learnt: [h * c for h, c in [state]], ValueError),
        (lambda self, x, state, learnt: (x[0] @ state[0],), RuntimeError),
    ],
    ids=["a vector", "products", "states", "shapes"],
)
def test_an_error_inside_a_step_says_what_the_step_has(advance, kind):
    unit = new(advance=advance, gates=2, vectors=("v",))(N, H)
    with pytest.raises(kind) as caught:
        unit(torch.randn(T, B, N))
    (note,) = caught.value.__notes__
    assert note == "in Mine.advance: x has 2 tensors (gates), state has 1 (parts), learnt.vectors has v"


@pytest.mark.parametrize("kind", [lrn.CustomUnit, lrn.Unit])
def test_a_class_to_inherit_from_is_no_unit(kind):
    with pytest.raises(
        TypeError, match=says(f"{kind.__name__} is no unit itself", "inherits lrn.CustomUnit")
    ):
        kind(N, H)


# In the commands -----------------------------------------------------------------------------------

SMALL = (
    "--word_width 8 --char_width 4 --hidden 6 --documents 100 --batch_size 16 --epochs 1 --threads 1".split()
)


def forget(monkeypatch):
    """As in a new process, whose user has said nothing."""
    sys.modules.pop("leaky_of_tests", None)
    monkeypatch.setenv("LRN_UNITS", "")


@pytest.mark.slow
def test_a_run_of_it_is_read_only_if_the_user_says_so(module, monkeypatch, capsys):
    assert cli.main(["train", "doc", "--unit", f"{module}:Leaky", "--out", "run", *SMALL]) == 0
    forget(monkeypatch)
    assert cli.main(["evaluate", "run"]) == 2
    assert f"LRN_UNITS={module} before the command" in capsys.readouterr().err
    assert module not in sys.modules
    monkeypatch.setenv("LRN_UNITS", module)
    assert cli.main(["evaluate", "run", "--threads", "1"]) == 0
    assert cli.main(["export", "run", "model.onnx"]) == 2
    assert not Path("model.onnx").exists()


@pytest.mark.slow
def test_it_is_compared_with_ours(module, monkeypatch):
    monkeypatch.setattr(compare, "time_units", lambda task, configs: timed(configs))
    name = f"{module}:Leaky"
    assert cli.main(["compare", "doc", "--units", f"lrn,{name}", "--out", "out", *SMALL]) == 0
    assert list(Comparison.read(Path("out/results.json")).units) == ["lrn", name]
    assert name in Path("out/table.md").read_text()
    assert name in Path("out/report.html").read_text()


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_wrong_one_is_said_before_any_work(module, command, capsys):
    words = ["--unit", f"{module}:Leeky"] if command == "train" else ["--units", f"lrn,{module}:Leeky"]
    assert cli.main([command, "doc", *words, "--out", "out", *SMALL]) == 2
    printed = capsys.readouterr()
    assert f"{module} has no Leeky" in printed.err
    assert "reading the data" not in printed.err + printed.out
    assert not Path("out").exists()
