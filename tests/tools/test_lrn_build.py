"""The build backend finds the torch to build against, in the build's environment and around it."""

import os
import re
import tomllib
from pathlib import Path

import lrn_build
import pytest
import torch
from fresh import ROOT, Environment

TORCH = str(Path(torch.__file__).parent)


def write_torch(folder, version="2.13.0+cpu", *, header=lrn_build.HEADER, library="lib/libtorch_cpu.so"):
    """What the backend looks at of an installed torch; importing it would fail."""
    for name in filter(None, (header, library)):
        (folder / "torch" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "torch" / name).touch()
    (folder / "torch" / "__init__.py").write_text("raise ImportError('the headers do not need it')\n")
    (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\n")
    return folder / "torch"


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A Python without torch that runs the build."""
    environment = Environment(tmp_path / "env")
    monkeypatch.setattr("sys.executable", str(environment.python))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(ROOT)  # where a build runs
    return environment


@pytest.fixture
def isolated(tmp_path, monkeypatch):
    """The variables and the module by which pip hides from a build what is installed."""
    (tmp_path / "site").mkdir()
    hide = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]"
    (tmp_path / "site" / "sitecustomize.py").write_text(hide)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    return tmp_path / "site"


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("2.10.0", True),
        ("2.13.0+cpu", True),
        ("2.15.0a0+git1234567", True),
        ("3.0.0.dev20270101", True),
        ("2.9.1", False),
        ("1.13.1", False),
        ("unknown", False),
    ],
)
def test_versions(tmp_path, version, good):
    assert lrn_build.will_do(write_torch(tmp_path, version)) is good


@pytest.mark.parametrize("missing", ["header", "library"])
def test_torch_without_what_is_needed_to_build(tmp_path, missing):
    """Some systems keep the headers in a package of their own."""
    assert not lrn_build.will_do(write_torch(tmp_path, **{missing: None}))


def test_the_installed_torch_will_do():
    assert lrn_build.find_torch() == TORCH


def test_the_same_version_everywhere():
    """The oldest torch is said in three places."""
    oldest = ".".join(map(str, lrn_build.OLDEST))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"torch>={oldest}" in project["dependencies"]
    (abi,) = re.findall(r"TORCH_TARGET_VERSION=0x(..)(..)0{12}", (ROOT / "CMakeLists.txt").read_text())
    assert tuple(int(part, 16) for part in abi) == lrn_build.OLDEST


def test_no_torch(empty):
    assert lrn_build.find_torch() is None
    for hook in (lrn_build.get_requires_for_build_wheel, lrn_build.get_requires_for_build_editable):
        assert "torch>=2.10" in hook()
    assert "torch>=2.10" not in lrn_build.get_requires_for_build_sdist()


def test_torch_outside_of_the_isolated_build(empty, isolated):
    folder = write_torch(empty.packages)
    assert lrn_build.find_torch() == str(folder)
    for hook in (lrn_build.get_requires_for_build_wheel, lrn_build.get_requires_for_build_editable):
        assert not [need for need in hook() if need.startswith("torch")]
    assert os.environ["PYTHONPATH"] == str(isolated), "the build goes on in its own environment"


def test_torch_outside_by_way_of_a_pth_file(empty, isolated, tmp_path):
    other = tmp_path / "other" / "site-packages"
    other.mkdir(parents=True)
    (empty.packages / "other.pth").write_text(f"{other}\n")
    assert lrn_build.find_torch() is None
    folder = write_torch(other)
    assert lrn_build.find_torch() == str(folder)


def test_the_torch_that_the_build_asked_for_comes_first(empty, isolated):
    write_torch(empty.packages)
    folder = write_torch(isolated)
    assert lrn_build.find_torch() == str(folder)


def test_an_old_torch_outside_is_not_used(empty, isolated):
    write_torch(empty.packages, "2.9.1")
    assert lrn_build.find_torch() is None
    folder = write_torch(isolated)
    assert lrn_build.find_torch() == str(folder)


def test_a_noisy_environment(empty):
    """What an environment prints when Python starts is not the answer."""
    (empty.packages / "noisy.pth").write_text("import sys; print('hello from noisy')\n")
    assert lrn_build.find_torch() is None
    folder = write_torch(empty.packages)
    assert lrn_build.find_torch() == str(folder)


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"cmake.define.TORCH_DIR": TORCH}),
        ({"build-dir": "x"}, {"cmake.define.TORCH_DIR": TORCH, "build-dir": "x"}),
        ({"cmake.define.TORCH_DIR": "/mine"}, {"cmake.define.TORCH_DIR": "/mine"}),
    ],
)
def test_cmake_is_told(monkeypatch, hook, given, expected):
    monkeypatch.setattr(lrn_build.build, hook, lambda *args: args)
    assert getattr(lrn_build, hook)("dist", given, "metadata") == ("dist", expected, "metadata")
