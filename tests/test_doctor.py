"""The self-check finds a healthy engine healthy, and a sick one sick."""

import pytest
import torch

import lrn
from lrn import cli, doctor


def test_healthy(capsys):
    assert cli.main(["doctor", "--seconds", "0.1"]) == 0
    said = capsys.readouterr().out
    assert "torch" in said
    assert "engines: " in said
    assert "threads: " in said


@pytest.mark.skipif("cpu" not in lrn.engines(), reason="the C++ engine is not here")
def test_sick(monkeypatch, capsys):
    results = doctor._results

    def off(unit, x, engine):
        return [r + 1e-4 * torch.ones_like(r) * (engine == "cpu") for r in results(unit, x, engine)]

    monkeypatch.setattr(doctor, "_results", off)
    assert cli.main(["doctor", "--seconds", "0"]) == 1
    assert "DISAGREES" in capsys.readouterr().out


def test_without_the_engine(monkeypatch, capsys):
    monkeypatch.setattr(lrn, "engines", lambda: ("torch",))
    assert cli.main(["doctor"]) == 0
    assert "nothing to check" in capsys.readouterr().out


@pytest.mark.parametrize(("gains", "said"), [(True, "products: oneDNN's"), (False, "products: torch's own")])
def test_which_library_multiplies(gains, said, monkeypatch):
    monkeypatch.setattr(doctor.products, "GAINS", gains)
    assert any(said in line for line in doctor.report())
