"""A training from its first step to its last: what stops it, and when."""

import os
import signal

import pytest
from runs import TINY, state

from lrn import cli
from lrn.training.device import Host


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_processes_ask_each_other(number, text, tmp_path, monkeypatch, capsys):
    """It comes after this process has said that nobody told it to stop: it must not be forgotten."""
    calls = iter(range(1, 10**9))
    ask = Host.any

    def disturbed(self, value):
        answer = ask(self, value)
        if next(calls) == 7:
            os.kill(os.getpid(), number)
        return answer

    monkeypatch.setattr(Host, "any", disturbed)
    run = tmp_path / "run"
    assert cli.main(["train", "lm", "--data", str(text), "--out", str(run), *TINY]) == 130
    assert "stopped after step 7; to go on: lrn train --resume" in capsys.readouterr().err
    assert state(run)["progress"]["step"] == 7


def test_the_handlers_are_those_of_before(text, tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    words = ["train", "lm", "--data", str(text), "--out", str(tmp_path / "run"), *TINY, "--max_steps", "2"]
    assert cli.main(words) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
