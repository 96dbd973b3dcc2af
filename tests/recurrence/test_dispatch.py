"""Which engine runs: the ``with`` block, the environment, the device of the tensor at hand."""

import warnings

import pytest
import torch
from recurrence.cases import NAMES, Case, here, run
from recurrence.processes import python

import lrn
from lrn import names
from lrn.recurrence import dispatch, schemas

ALLOWED = f"allowed: {', '.join(names.ENGINES)}"


def chosen():
    """What runs tensors on the device of the engine that is tested."""
    return dispatch.choose(torch.device(here.device))


def default():
    """The same when nobody asks for one: another, if the one that is tested only runs there when it is
    asked.
    """
    return dispatch._FASTEST[here.device]


@pytest.fixture
def no_wish(monkeypatch):
    """As if LRN_ENGINE were not set."""
    token = dispatch._chosen.set(None)
    yield
    dispatch._chosen.reset(token)


def test_the_fastest_by_default(no_wish):
    assert lrn.engines() == tuple(name for name in names.ENGINES if name not in dispatch.MISSING)
    assert chosen() == default()
    assert dispatch.choose(torch.device("meta")) == "torch"


def test_the_table():
    """It agrees with the list of names; the last ones run everywhere; every op has a schema.

    An op has one implementation for a type of device: two engines for the same one would be in each other's
    way.
    """
    assert tuple(dispatch.TABLE) == names.ENGINES
    assert [name for name, engine in dispatch.TABLE.items() if not engine.devices] == ["parallel", "torch"]
    served = [device for name in lrn.engines() for device in dispatch.TABLE[name].devices]
    assert len(set(served)) == len(served)
    defined = {schema.split("(")[0] for schema in schemas.SCHEMAS}
    for engine in dispatch.TABLE.values():
        assert engine.ops <= defined
        assert engine.runs(torch.device((*engine.devices, "meta")[0]))


def test_ops_exist_without_engines():
    """Schemas, gradients and the rules for autocast need no library: another engine may come without it."""
    for schema in schemas.SCHEMAS:
        name, _, overload = schema.split("(")[0].partition(".")
        op = getattr(getattr(torch.ops.lrn, name), overload or "default")
        assert str(op._schema) == f"lrn::{schema}"
    for key in ("AutocastCPU", "AutocastCUDA", "AutocastPrivateUse1"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key("lrn::scan", key)


def test_another_engine(monkeypatch, no_wish):
    """A line in the table is all the choice needs: its devices go to it, the others as before."""
    meta = dispatch.Engine("meta", ("meta",), frozenset({"scan"}), lambda: None)
    monkeypatch.setitem(dispatch.TABLE, "meta", meta)
    monkeypatch.setitem(dispatch._FASTEST, "meta", "meta")
    assert dispatch.choose(torch.device("meta")) == "meta"
    assert chosen() == default()
    assert dispatch.implemented("scan", torch.device("meta"))
    assert not dispatch.implemented("atr", torch.device("meta"))
    output, _ = lrn.LRN(3, 4, device="meta")(torch.empty(5, 2, 3, device="meta"))  # by the op's fake
    assert output.shape == (5, 2, 4)
    with (
        lrn.engine("meta"),
        pytest.raises(ValueError, match=f"'meta' runs tensors on meta only, got one on {here.device}"),
    ):
        lrn.LRN(3, 4)(torch.zeros(5, 2, 3))


def test_blocks_nest_and_end(no_wish):
    """The innermost block counts, and leaving it brings the outer one back."""
    with lrn.engine("torch"):
        assert chosen() == "torch"
        with lrn.engine(here.engine):
            assert chosen() == here.engine
        assert chosen() == "torch"
    assert chosen() == default()


def test_an_exception_ends_the_block_too(no_wish):
    with pytest.raises(KeyError), lrn.engine("torch"):
        raise KeyError
    assert chosen() == default()


def test_the_block_decides_what_runs(no_wish):
    """Seen in the graph: the engine is one op, the definition a hundred small ones."""
    unit, x = lrn.LRN(3, 4), torch.zeros(5, 2, 3)
    seen = {}
    for engine in (here.engine, "torch"):
        with lrn.engine(engine), torch.profiler.profile() as profile:
            unit(x)
        seen[engine] = {event.key for event in profile.key_averages()}
    assert "lrn::scan" in seen[here.engine]
    assert "lrn::scan" not in seen["torch"]


def test_a_missing_engine_is_told_once(monkeypatch, no_wish):
    """Tensors whose engine is not here run all the same, with one warning that says how to get it."""
    monkeypatch.setitem(dispatch.MISSING, "triton", "it is not here")
    monkeypatch.setattr(dispatch, "_LACKING", {"meta": "triton"})
    monkeypatch.setattr(dispatch, "_told", set())
    with pytest.warns(RuntimeWarning, match=r"'triton' is missing \(it is not here\).*lrn-torch\[gpu\]"):
        assert dispatch.choose(torch.device("meta")) == "torch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dispatch.choose(torch.device("meta")) == "torch"


@pytest.mark.parametrize("name", ["cuda", "CPU", ""])
def test_unknown_engine(name):
    with pytest.raises(ValueError, match=f"unknown engine .*{ALLOWED}"), lrn.engine(name):
        pass


# In a process of its own ---------------------------------------------------------------------------------

CHOICE = """
import torch, lrn
from lrn.recurrence import dispatch
print(dispatch.choose(torch.device("DEVICE")))
with lrn.engine("ENGINE"):
    print(dispatch.choose(torch.device("DEVICE")))
"""


@pytest.mark.parametrize("wish", ["torch", ""])
def test_environment(wish):
    """LRN_ENGINE is the default, and a block still goes before it; empty is as good as unset."""
    code = CHOICE.replace("DEVICE", here.device).replace("ENGINE", here.engine)
    done = python(code, LRN_ENGINE=wish)
    assert done.stdout.split() == [wish or default(), here.engine], done.stderr
    assert not done.stderr


def test_environment_asks_for_nonsense():
    done = python("import lrn.recurrence", LRN_ENGINE="bogus")
    assert done.returncode != 0
    assert f"ValueError: environment variable LRN_ENGINE: unknown engine 'bogus'; {ALLOWED}" in done.stderr


@pytest.mark.parametrize("cell", NAMES)
def test_every_engine_runs_every_cell(cell):
    """No cell is missing from a library, in any type."""
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for engine in (here.engine, "torch"):
            assert run(Case(cell, dtype=dtype), engine)["output"].isfinite().all()
