"""The command line: what a newcomer types first, and what they mistype."""

import contextlib
import dataclasses
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lrn import cli, tasks


def lrn(*words):
    return subprocess.run([sys.executable, "-m", "lrn", *words], capture_output=True, text=True)


def test_alone_it_says_what_there_is(capsys):
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert "lrn demo" in said
    assert "lrn bench" in said


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == "lrn 0.1.0\n"


HEAVY = ("torch", "lightning", "jsonargparse", "rich", "numpy", "yaml")


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["--version"]])
def test_help_does_not_wait_for_torch(words):
    code = (
        f"import sys; from lrn import cli; cli.main({words}); print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_help_is_quick():
    """Under half a second more than Python itself; the best of several, for a machine that is busy."""
    script = Path(sys.executable).with_name("lrn")

    def seconds(*command):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - start

    python = min(seconds(sys.executable, "-c", "pass") for _ in range(5))
    ours = min(seconds(script, "--help") for _ in range(5))
    assert ours - python < 0.5


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_every_command(command, capsys):
    with contextlib.suppress(SystemExit):
        assert cli.main([command, "--help"]) == 0
    said = capsys.readouterr()
    assert "usage: lrn " in said.out
    assert said.err == ""


def test_help_explains_every_setting(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["train", "lm", "--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    for field in dataclasses.fields(tasks.settings("lm").Config):
        line = re.search(rf"^ +--{field.name}\b[^\n]*\n?[^\n]*", said, re.M)
        assert line, field.name
        assert re.search(r"[a-z]+ [a-z]+", line.group().split(field.name, 1)[1]), field.name


@pytest.mark.parametrize(
    ("words", "nearest"),
    [(["dmeo"], "demo"), (["tran", "lm"], "train"), (["train", "lmm"], "lm"), (["params", "ml"], "lm")],
)
def test_misspelt(words, nearest, capsys):
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert f"(did you mean '{nearest}'?)" in said
    assert said.count("\n") == 1


USER_ERRORS = [
    ["dmeo"],
    ["train", "lm", "--data", "no/such/folder"],
    ["train", "lm", "--unit", "lrm"],
    ["train", "--resume", "no/such/run"],
    ["train", "--resume"],
    ["evaluate"],
    ["evaluate", "no/such/run"],
    ["predict", "no/such/run"],
    ["export", "no/such/run"],
    ["params", "lm", "more"],
]


@pytest.mark.parametrize("words", USER_ERRORS, ids=" ".join)
def test_errors_are_one_line(words, capsys):
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("lrn: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("place", [0, 2])
def test_debug_shows_where(place):
    words = ["evaluate", "no/such/run"]
    with pytest.raises(FileNotFoundError, match="no run folder"):
        cli.main([*words[:place], "--debug", *words[place:]])


def test_traceback_only_with_debug():
    done, debugged = lrn("dmeo"), lrn("dmeo", "--debug")
    assert (done.returncode, debugged.returncode) == (2, 1)
    assert "dmeo" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in debugged.stderr


def test_a_task_is_needed(capsys):
    assert cli.main(["train"]) == 0
    assert "tasks: lm" in capsys.readouterr().out
    assert cli.main(["train", "--unit", "lrn"]) == 2


def test_stopped_before_it_began(monkeypatch, capsys):
    def stop(words):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "params", stop)
    assert cli.main(["params"]) == 130
    assert capsys.readouterr().err == "lrn: stopped\n"


@pytest.mark.parametrize("shape", ["20,4", "20,4,x", "0,4,8", "20,4,8,1", ""])
def test_wrong_shape(shape, capsys):
    assert cli.main(["bench", "--shape", shape]) == 2
    said = capsys.readouterr().err
    assert "T,B,H" in said
    assert repr(shape) in said


def test_output_folder_that_is_a_file(tmp_path, capsys):
    """The error comes before anything is measured, and the file is left alone."""
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert cli.main(["bench", "--shape", "2,1,4", "--out", str(taken)]) == 2
    assert "taken" in capsys.readouterr().err
    assert taken.read_text() == "mine"


@pytest.mark.parametrize(
    "words", [["--steps", "0"], ["--width", "-3"], ["--layers", "0"], ["--seconds", "nan"]]
)
def test_wrong_settings_of_the_demonstration(words, capsys):
    assert cli.main(["demo", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lrn: ")
    assert words[0].strip("-") in said


def test_a_missing_extra_names_the_command(monkeypatch, capsys):
    """Without rich, the error is the pip command."""
    for name in [module for module in sys.modules if module.startswith(("rich", "lrn.demo"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main(["demo"]) == 2
    assert "pip install 'lrn[train]'" in capsys.readouterr().err
