"""A line about progress: repeated now and then, written over in a terminal."""

import io
import sys

import pytest

from lrn import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def now(monkeypatch):
    time = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: time[0])
    return time


def test_without_a_terminal(now, capsys):
    line = progress.Line(True)
    assert not line.due()
    now[0] += progress.QUIET_SECONDS
    assert line.due()
    line.say("a third")
    assert not line.due()
    line.end()
    assert capsys.readouterr() == ("", "a third\n")


def test_the_share_of_work_that_takes_its_time(now, capsys):
    tell = progress.lines("reading")
    for share in (0.1, 0.2, 0.3):
        tell(share)
        now[0] += 0.6 * progress.QUIET_SECONDS
    assert capsys.readouterr() == ("", "reading  30%\n")


def test_in_a_terminal(now, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    line = progress.Line(True)
    assert line.due()
    line.say("a third")
    assert not line.due()
    now[0] += 0.3
    assert line.due()
    line.end()
    assert sys.stderr.getvalue() == "\r\x1b[Ka third\r\x1b[K"


def test_silence(now, capsys):
    now[0] += 1e6
    assert not progress.Line(False).due()
