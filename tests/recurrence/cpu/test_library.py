"""The C++ library: whose tensors it takes, and life without it."""

import shutil
from pathlib import Path

import pytest
import torch
from recurrence.processes import python

import lrn


def test_cpu_engine_takes_cpu_tensors_only():
    with (
        lrn.engine("cpu"),
        pytest.raises(ValueError, match=r"engine 'cpu' runs tensors on cpu only, got one on meta"),
    ):
        lrn.LRN(3, 4, device="meta")(torch.empty(5, 2, 3, device="meta"))


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
assert "cpu" not in lrn.engines(), lrn.engines()
assert lrn.recurrence.dispatch.choose(torch.device("cpu")) == "torch"
assert torch.ops.lrn.scan.default and torch.ops.lrn.walk.default  # for another engine to implement
for name in lrn.UNITS:
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
    for words in (reason, "plain torch engine", "source folder: pip install . ", "LRN_ENGINE=torch"):
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
