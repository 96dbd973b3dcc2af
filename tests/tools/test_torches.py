"""The proof that one wheel runs on several versions of torch: it sees what runs, and what does not."""

import sys
import zipfile
from pathlib import Path

import pytest
import torch
import torches
from torches import Row

import lrn

GOOD = Row("2.10.0", "3.11.7", 64, 0.25, 500, 0, 6, 0)


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "lrn_torch-0.2.0-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in torches.LIBRARIES:
            archive.writestr(name, b"a library")
    return path


@pytest.mark.slow
@pytest.mark.skipif("cpu" not in lrn.engines(), reason="the C++ engine is not here")
def test_all_checks_are_made_with_the_torch_of_the_environment(monkeypatch):
    """But for the tests of the second library, which this run of the tests has already."""
    run = torches.run
    monkeypatch.setattr(torches, "run", lambda *words: "6 passed" if "pytest" in words else run(*words))
    row = torches.examine(Path(sys.executable), 0, 20)
    assert (row.torch, row.problems, row.mismatches) == (torch.__version__, 20, 0)
    assert row.checked > 0
    assert (row.passed, row.failed) == (6, 0)
    assert row.good


def test_an_engine_that_does_not_load_is_told(monkeypatch):
    said = "lrn 0.2.0, Python 3.11.7, Linux\n  torch   2.10.0\nengines: torch (cpu: does not load)\n"
    monkeypatch.setattr(torches, "run", lambda *words: said)
    with pytest.raises(RuntimeError, match="does not load"):
        torches.examine(Path(sys.executable), 0, 1)


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"worst": 1.5}, False),
        ({"mismatches": 1}, False),
        ({"failed": 1}, False),
        ({"checked": 0}, False),
        ({"passed": 0}, False),
    ],
)
def test_exit_code(change, good, wheel, monkeypatch, tmp_path, capsys):
    """One row a version, from an environment that is gone afterwards; one that is wrong is enough."""
    made = []

    def install(folder, version, given):
        assert given == wheel.resolve()
        made.append((folder, version))
        return folder / "bin" / "python"

    bad = Row(**(vars(GOOD) | {"torch": "2.15.0"} | change))
    rows = {"2.10.0": GOOD, "2.15.0": bad}
    monkeypatch.setattr(torches, "install", install)
    monkeypatch.setattr(torches, "examine", lambda python, *more: rows[made[-1][1]])
    assert torches.main([str(wheel), *rows, "--folder", str(tmp_path)]) == (0 if good else 1)
    assert [version for _, version in made] == [*rows]
    assert not any(folder.exists() for folder, _ in made)
    assert all(folder.parent == tmp_path for folder, _ in made)
    said = capsys.readouterr().out
    assert torches.table([GOOD, bad]) in said
    assert wheel.name in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["WHEEL"], "the following arguments are required: VERSION"),
        (["WHEEL", "newest"], "expected versions of torch like 2.10.0, got 'newest'"),
        (["dist/no.whl", "2.10.0"], "expected a wheel, as make wheel writes it to dist; got dist/no.whl"),
        (["README.md", "2.10.0"], "expected a wheel, as make wheel writes it to dist; got README.md"),
    ],
)
def test_bad_arguments(words, says, wheel, capsys):
    with pytest.raises(SystemExit):
        torches.main([str(wheel) if word == "WHEEL" else word for word in words])
    assert says in capsys.readouterr().err
