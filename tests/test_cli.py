"""The command line: what a newcomer types first, and what they mistype."""

import subprocess
import sys

import pytest

from lrn import cli


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


def test_help_does_not_wait_for_torch():
    code = "import sys; from lrn import cli; cli.main([]); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_unknown_command():
    done = lrn("dmeo")
    assert done.returncode == 2
    assert "dmeo" in done.stderr
    assert "Traceback" not in done.stderr


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
