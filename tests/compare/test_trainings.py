"""What is said while units are trained."""

import io
import subprocess
import sys

import pytest
from compare.cases import Diverging, finished
from rich.console import Console

from lrn.compare import trainings
from lrn.compare.trainings import Training


def test_a_run_that_diverges_is_an_error(tmp_path, monkeypatch):
    """Only a trial may."""
    monkeypatch.setattr(trainings, "start", lambda task, one: Diverging())
    run = Training("lrn", "seed 1", tmp_path / "lrn-1", {}, tmp_path / "file")
    with pytest.raises(ValueError, match=r"^training lrn \(seed 1\) failed: .* diverged; try a smaller --lr"):
        trainings.train_all("ner", [run], "test_f1", Console(file=io.StringIO()))
    assert not run.diverged.exists()


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_training_is_ended_with_the_comparison(told, error, tmp_path, monkeypatch):
    """Also one that has more to say than the pipe between the two holds, and one that is not told to stop."""
    rest = "" if told else "; import time; time.sleep(600)"
    code = f"import sys; sys.stderr.write(('x' * 99 + chr(10)) * 3000); sys.stderr.flush(){rest}"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)

    def hear(*_):
        raise error

    monkeypatch.setattr(trainings, "GRACE", 60.0 if told else 0.5)
    monkeypatch.setattr(trainings, "start", lambda task, one: child)
    monkeypatch.setattr(trainings._Screen, "hear", hear)
    run = Training("lrn", "seed 1", tmp_path / "lrn-1", {}, tmp_path / "file")
    try:
        assert not trainings.train_all("ner", [run], "test_f1", Console(file=io.StringIO()))
        assert error is KeyboardInterrupt
    except OSError:
        assert error is OSError
    assert child.returncode == (0 if told else -15)


class Child:
    """A training that says some lines, each after so many seconds of the clock."""

    def __init__(self, folder, clock, seconds):
        self.folder, self.clock, self.seconds = folder, clock, seconds

    @property
    def stderr(self):
        yield "warning: test has a tag [B-X] that was never trained\n"
        for share in (10, 50, 90):
            self.clock[0] += self.seconds
            yield f"epoch 1/1  {share}%  loss 2.5\n"

    def wait(self):
        finished(self.folder)
        return 0


def said(tmp_path, monkeypatch, seconds, terminal=False):
    """What two trainings print, one of which was there before a third."""
    clock = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    monkeypatch.setattr(trainings, "start", lambda task, one: Child(one.folder, clock, seconds))
    finished(tmp_path / "lstm")
    three = [
        Training(unit, "seed 1", tmp_path / unit, {}, tmp_path / "file") for unit in ("lstm", "gru", "lrn")
    ]
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    assert trainings.train_all("ner", three, "test_f1", console)
    return console.file.getvalue()


def test_lines_where_there_is_no_terminal(tmp_path, monkeypatch):
    """One where a training begins and ends, one every 15 seconds, and every warning once."""
    assert said(tmp_path, monkeypatch, 8.0).splitlines() == [
        "1/3 lstm, seed 1: done: test f1 80.50",
        "2/3 gru, seed 1: starting",
        "warning: test has a tag [B-X] that was never trained",
        "2/3 gru, seed 1: epoch 1/1  50%  loss 2.5",
        "2/3 gru, seed 1: done: test f1 80.50, about 1 min left",
        "3/3 lrn, seed 1: starting, about 1 min left",
        "3/3 lrn, seed 1: epoch 1/1  50%  loss 2.5, about 1 min left",
        "3/3 lrn, seed 1: done: test f1 80.50",
    ]


def test_a_table_in_a_terminal(tmp_path, monkeypatch):
    shown = said(tmp_path, monkeypatch, 60.0, terminal=True)
    assert "3 of 3 trained" in shown
    assert shown.count("warning: test has a tag [B-X] that was never trained\n") == 1
    assert "done: test f1 80.50" in shown
