"""Which engine runs: the ``with`` block, the environment, and life without the library."""

import shutil
from pathlib import Path

import pytest
import torch
from recurrence.cases import NAMES, Case, run
from recurrence.processes import python

import lrn
from lrn import names
from lrn.recurrence import dispatch, schemas

CPU = torch.device("cpu")


@pytest.fixture
def no_wish(monkeypatch):
    """As if LRN_ENGINE were not set."""
    token = dispatch._chosen.set(None)
    yield
    dispatch._chosen.reset(token)


def test_the_fastest_by_default(no_wish):
    assert lrn.engines() == ("cpu", "torch")
    assert dispatch.choose(CPU) == "cpu"
    assert dispatch.choose(torch.device("meta")) == "torch"


def test_the_table():
    """The table and the list of names agree, the last engine runs everywhere, every op has a schema."""
    assert tuple(dispatch.TABLE) == names.ENGINES
    assert [name for name, engine in dispatch.TABLE.items() if not engine.devices] == ["torch"]
    defined = {schema.split("(")[0] for schema in schemas.SCHEMAS}
    for engine in dispatch.TABLE.values():
        assert engine.ops <= defined
        assert engine.runs(torch.device((*engine.devices, "meta")[0]))


def test_ops_exist_without_engines():
    """Schemas, gradients and the rules for autocast need no library: another engine may come without it."""
    for schema in schemas.SCHEMAS:
        op = getattr(torch.ops.lrn, schema.split("(")[0]).default
        assert str(op._schema) == f"lrn::{schema}"
    for key in ("AutocastCPU", "AutocastCUDA", "AutocastPrivateUse1"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key("lrn::scan", key)


def test_another_engine(monkeypatch, no_wish):
    """A line in the table is all the choice needs: its devices go to it, the others as before."""
    meta = dispatch.Engine("meta", ("meta",), frozenset({"scan"}), lambda: None)
    monkeypatch.setitem(dispatch.TABLE, "meta", meta)
    monkeypatch.setitem(dispatch._FASTEST, "meta", "meta")
    assert dispatch.choose(torch.device("meta")) == "meta"
    assert dispatch.choose(CPU) == "cpu"
    assert dispatch.implemented("scan", torch.device("meta"))
    assert not dispatch.implemented("atr", torch.device("meta"))
    output, _ = lrn.LRN(3, 4, device="meta")(torch.empty(5, 2, 3, device="meta"))  # by the op's fake
    assert output.shape == (5, 2, 4)
    with (
        lrn.engine("meta"),
        pytest.raises(ValueError, match="'meta' runs tensors on meta only, got one on cpu"),
    ):
        lrn.LRN(3, 4)(torch.zeros(5, 2, 3))


def test_blocks_nest_and_end(no_wish):
    """The innermost block counts, and leaving it brings the outer one back."""
    with lrn.engine("torch"):
        assert dispatch.choose(CPU) == "torch"
        with lrn.engine("cpu"):
            assert dispatch.choose(CPU) == "cpu"
        assert dispatch.choose(CPU) == "torch"
    assert dispatch.choose(CPU) == "cpu"


def test_an_exception_ends_the_block_too(no_wish):
    with pytest.raises(KeyError), lrn.engine("torch"):
        raise KeyError
    assert dispatch.choose(CPU) == "cpu"


def test_the_block_decides_what_runs(no_wish):
    """Seen in the graph: the engine is one op, the definition a hundred small ones."""
    unit, x = lrn.LRN(3, 4), torch.zeros(5, 2, 3)
    seen = {}
    for engine in ("cpu", "torch"):
        with lrn.engine(engine), torch.profiler.profile() as profile:
            unit(x)
        seen[engine] = {event.key for event in profile.key_averages()}
    assert "lrn::scan" in seen["cpu"]
    assert "lrn::scan" not in seen["torch"]


@pytest.mark.parametrize("name", ["cuda", "CPU", ""])
def test_unknown_engine(name):
    with pytest.raises(ValueError, match=r"unknown engine .*allowed: cpu, torch"), lrn.engine(name):
        pass


def test_cpu_engine_takes_cpu_tensors_only():
    with (
        lrn.engine("cpu"),
        pytest.raises(ValueError, match=r"engine 'cpu' runs tensors on cpu only, got one on meta"),
    ):
        lrn.LRN(3, 4, device="meta")(torch.empty(5, 2, 3, device="meta"))


# In a process of its own ---------------------------------------------------------------------------------

CHOICE = """
import torch, lrn
from lrn.recurrence import dispatch
print(dispatch.choose(torch.device("cpu")))
with lrn.engine("cpu"):
    print(dispatch.choose(torch.device("cpu")))
"""


@pytest.mark.parametrize(("name", "engine"), [("torch", "torch"), ("", "cpu")])
def test_environment(name, engine):
    """LRN_ENGINE is the default, and a block still goes before it; empty is as good as unset."""
    done = python(CHOICE, LRN_ENGINE=name)
    assert done.stdout.split() == [engine, "cpu"], done.stderr
    assert not done.stderr


def test_environment_asks_for_nonsense():
    done = python("import lrn.recurrence", LRN_ENGINE="bogus")
    assert done.returncode != 0
    assert (
        "ValueError: environment variable LRN_ENGINE: unknown engine 'bogus'; allowed: cpu, torch"
        in done.stderr
    )


@pytest.fixture
def copy(tmp_path):
    """The package without its library, and how to import it from there even if lrn is installed editable."""
    shutil.copytree(
        Path(lrn.__file__).parent,
        tmp_path / "lrn",
        ignore=shutil.ignore_patterns("*.so", "*.dylib", "__pycache__"),
    )
    setup = f"""
import sys
sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
sys.path.insert(0, {str(tmp_path)!r})
"""
    return tmp_path / "lrn/recurrence/cpu", setup


WITHOUT = """
import torch, lrn, lrn.recurrence
assert lrn.engines() == ("torch",), lrn.engines()
assert torch.ops.lrn.scan.default and torch.ops.lrn.walk.default  # for another engine to implement
for name in ("lrn", "olrn", "glrn", "elrn", "sru"):
    unit = lrn.make_unit(name, 3, 4, bidirectional=True)
    output, state = unit(torch.randn(5, 2, 3), lengths=[5, 0])
    output.sum().backward()
try:
    with lrn.engine("cpu"):
        pass
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["missing", "corrupt"])
def test_without_the_library(copy, kind):
    """One warning that says why and what to do; then everything runs on the plain engine."""
    folder, setup = copy
    reason = "it was not built when lrn was installed"
    if kind == "corrupt":
        (folder / "liblrn_cpu.so").write_bytes(b"not a library")
        reason = "liblrn_cpu.so does not load here:"
    done = python(setup + WITHOUT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning") == 1, done.stderr
    for words in (reason, "plain torch engine", "pip install --no-build-isolation", "LRN_ENGINE=torch"):
        assert words in done.stderr
    assert done.stdout.startswith(f"engine 'cpu' is not available: {reason}")
    assert "pip install" in done.stdout


def test_without_the_library_but_asked_for(copy):
    """LRN_ENGINE=torch silences the warning; LRN_ENGINE=cpu is an error."""
    _, setup = copy
    quiet = python(setup + "import lrn.recurrence", LRN_ENGINE="torch")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    wanted = python(setup + "import lrn.recurrence", LRN_ENGINE="cpu")
    assert wanted.returncode != 0
    assert "environment variable LRN_ENGINE: engine 'cpu' is not available" in wanted.stderr


@pytest.mark.parametrize("cell", NAMES)
def test_every_engine_runs_every_cell(cell):
    """No cell is missing from a library, in any type."""
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for engine in lrn.engines():
            assert run(Case(cell, dtype=dtype), engine)["output"].isfinite().all()
