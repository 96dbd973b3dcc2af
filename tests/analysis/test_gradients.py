"""Products of one-step gradients against autograd, and their norms for every layer."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from analysis import device
from analysis.cases import FEATURES, HIDDEN, STEPS, UNITS, problem

import lrn
from lrn import analysis
from lrn.units import CLASSES


@pytest.mark.parametrize("name", [name for name in UNITS if name != "sru"])  # whose memory is not h
def test_products_over_time_against_autograd(name):
    unit, x = problem(name)
    found = analysis.gradients(unit, x)
    torch.testing.assert_close(found.norms(), analysis.distance_norms(unit, x), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found.back(STEPS - 1, 3), found.jacobian[-3:].prod(0))
    torch.testing.assert_close(found.back(4, 0), torch.ones(HIDDEN, dtype=torch.float64))


@pytest.mark.parametrize("make", [torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU, lrn.LSTM, lrn.ATR])
def test_norms_of_any_layer(make):
    torch.manual_seed(1)
    norms = analysis.distance_norms(make(FEATURES, HIDDEN), torch.randn(6, FEATURES))
    assert norms.shape == (7,)
    assert norms.isfinite().all()
    torch.testing.assert_close(norms[0], torch.tensor(1.0))


def test_no_step_beyond_the_sequence():
    with pytest.raises(ValueError, match="no step 5"):
        analysis.gradients(lrn.LRN(FEATURES, 4), torch.zeros(3, FEATURES)).back(2, 5)


def test_norms_by_unit():
    """Of all units as asked for, a plain RNN first; the same for the same seed, whatever was drawn before."""
    names = ["sru", "lrn", "gru"]
    found = analysis.norms_by_unit(names, steps=5, hidden=4, seed=3)
    assert list(found) == ["nn.RNN", *names]
    assert all(len(norms) == 6 and norms[0] == pytest.approx(1.0) for norms in found.values())
    torch.rand(7)
    before = torch.get_rng_state()
    assert analysis.norms_by_unit(names, steps=5, hidden=4, seed=3) == found
    assert torch.equal(torch.get_rng_state(), before)
    assert analysis.norms_by_unit(names, steps=5, hidden=4, seed=4) != found


def test_norms_by_unit_are_those_of_the_units():
    torch.manual_seed(2)
    x = torch.randn(5, 4, dtype=torch.float64)
    torch.nn.RNN(4, 4, dtype=x.dtype)
    unit = lrn.LRN(4, 4, dtype=x.dtype)
    found = analysis.norms_by_unit(["lrn"], steps=5, hidden=4, seed=2)["lrn"]
    assert found == pytest.approx(analysis.distance_norms(unit, x).tolist(), rel=1e-12)


def test_units_that_keep_at_first_reach_further():
    """All that have a bias for it; the others are as they were."""
    plain = analysis.norms_by_unit(lrn.UNITS, steps=20, hidden=8)
    keeping = analysis.norms_by_unit(lrn.UNITS, steps=20, hidden=8, keep=5.0)
    without = {"nn.RNN", *(name for name, cls in CLASSES.items() if cls.forget_gate is None)}
    assert {"atr", "elrn"} <= without
    assert {name for name in plain if keeping[name] == plain[name]} == without
    assert [n for n in plain if n not in without and keeping[n][-1] <= 10 * plain[n][-1]] == []


def test_no_device_is_named_and_nothing_is_read_back():
    """On a device that allows neither: every function of the analysis, for every unit."""
    program = Path(device.__file__)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines()]
    wanted = {(unit, name) for unit in device.UNITS for name in device.FUNCTIONS}
    assert wanted <= {(unit, name) for unit, name, _ in found}
    assert {place for *_, place in found} == {"accel:0"}
