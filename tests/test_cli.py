"""The command line: what a newcomer types first, and what they mistype."""

import contextlib
import dataclasses
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs

from lrn import cli, names, tasks


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


HEAVY = ("torch", "lightning", "jsonargparse", "rich", "numpy")


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


def test_help_without_dashes(capsys):
    assert cli.main(["help"]) == 0
    assert capsys.readouterr().out.startswith("lrn: lightweight")
    with pytest.raises(SystemExit):
        cli.main(["help", "train", "lm"])
    assert capsys.readouterr().out.startswith("usage: lrn train lm")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_every_command(command, capsys):
    with contextlib.suppress(SystemExit):
        assert cli.main([command, "--help"]) == 0
    said = capsys.readouterr()
    assert "usage: lrn " in said.out
    assert said.err == ""


def help_of(capsys, *words):
    with pytest.raises(SystemExit) as left:
        cli.main([*words, "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_switches_in_the_help(capsys):
    """As they are typed; one that is on has to be turned off with a word."""
    said = help_of(capsys, "train", "lm")
    assert "[--overwrite]" in said
    assert re.search(r"^  --overwrite  +throw away", said, re.M)
    assert "--test {true,false}" in said
    assert "{true,false}" not in help_of(capsys, "train", "ner") + help_of(capsys, "import")


@pytest.mark.parametrize("words", [["--overwrite"], ["--overwrite", "true"], ["--overwrite=true"]])
def test_switches_of_a_command_without_a_task(words, monkeypatch):
    seen = []
    monkeypatch.setattr("lrn.commands.import_", lambda *given: seen.append(given) or 0)
    assert cli.main(["import", "run", "file", *words]) == 0
    assert cli.main(["import", "run", "file", "--overwrite", "false"]) == 0
    assert seen == [("run", "file", True), ("run", "file", False)]


def test_help_explains_every_setting(capsys):
    said = help_of(capsys, "train", "lm")
    for field in dataclasses.fields(tasks.settings("lm").train):
        line = re.search(rf"^ +--{field.name}\b[^\n]*\n?[^\n]*", said, re.M)
        assert line, field.name
        assert re.search(r"[a-z]+ [a-z]+", line.group().split(field.name, 1)[1]), field.name


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["dmeo"], "demo"),
        (["tran", "lm"], "train"),
        (["train", "lmm"], "lm"),
        (["train", "lm", "--unit", "lsmt"], "lstm"),
        (["train", "lm", "--preset", "qiuck"], "quick"),
        (["compare", "lmm"], "lm"),
        (["compare", "lm", "--units", "lrn,lsmt"], "lstm"),
        (["compare", "lm", "--preset", "qiuck"], "quick"),
        (["compare", "lm", "--unit", "lstm"], "--units"),
        (["params", "ml"], "lm"),
    ],
)
def test_misspelt(words, nearest, capsys):
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert f"did you mean '{nearest}'?" in said
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
    ["train", "ner", "--data", "no/such/folder"],
    ["train", "ner", "--data", __file__],
    ["train", "ner", "--vectors", "no/such/file"],
    ["train", "ner", "--vectors", "."],
    ["train", "lm", "--data", __file__],
    ["train", "lm", "--stage", "finetune"],
    ["train", "lm", "--start", "no/such/run"],
    ["train", "lm", "help"],
    ["train", "--resume", "."],
    ["evaluate", "."],
    ["evaluate", __file__],
    ["compare", "lm", "--seeds", "1,x"],
    ["compare", "lm", "--units", ","],
    ["compare", "lm", "--out", __file__ + "/folder"],
    ["train", "lm", "--epochs", "1e2"],
    ["bench", "--out", __file__ + "/folder"],
    ["bench", "--seconds", "-1"],
    ["--verison"],
    ["train lm"],
]


@pytest.mark.parametrize("words", USER_ERRORS, ids=" ".join)
def test_errors_are_one_line(words, capsys):
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("lrn: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["compare lm", "bench"])
def test_a_place_for_results_that_cannot_be(command, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert cli.main([*command.split(), "--out", str(tmp_path / "file" / "folder")]) == 2
    said = capsys.readouterr().err
    expected = f"cannot make the folder {tmp_path}/file/folder (Not a directory); choose another: --out"
    assert said == f"lrn: {expected}\n"


def test_a_file_of_a_run_is_not_the_run(capsys):
    assert cli.main(["evaluate", __file__]) == 2
    assert f"is a file; name the run folder that it is in: {Path(__file__).parent}" in capsys.readouterr().err


@pytest.mark.parametrize("task", names.TASKS)
def test_where_data_is_expected(task, tmp_path, capsys):
    """Which files, and how to do without."""
    for folder in (tmp_path / "none", tmp_path):
        assert cli.main(["train", task, "--data", str(folder)]) == 2
        said = capsys.readouterr().err
        assert str(folder) in said
        assert "expected" in said
        assert "without --data" in said


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


@pytest.fixture
def ends_of_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("LRN_TEST_ROOM", str(tmp_path / "room"))


NEEDS = {
    "demo --steps 1": ("rich", "jsonargparse"),
    "bench --shape 2,1,4": ("rich", "jsonargparse"),
    "train lm --max_steps 1": ("rich", "jsonargparse", "lightning", "numpy"),
    "train ner --max_steps 1": ("rich", "jsonargparse", "lightning", "numpy"),
    "train --resume RUN": ("rich", "jsonargparse", "lightning", "numpy"),
    "compare lm": ("rich", "jsonargparse", "lightning", "numpy"),
    "evaluate RUN": ("rich", "jsonargparse", "lightning", "numpy"),
    "predict RUN --prompt a": ("rich", "jsonargparse", "lightning", "numpy"),
    "params": ("rich", "jsonargparse", "lightning", "numpy"),
    "doctor": ("jsonargparse",),
    "export RUN file": ("jsonargparse", "safetensors"),
    "import RUN file": ("jsonargparse", "safetensors"),
}


@pytest.mark.parametrize("command", NEEDS)
def test_a_missing_extra_names_the_command(command, ends_of_processes, tmp_path):
    """Without a package that it needs, the answer is the pip command that brings it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"task": "lm"}')
    words = ["run" if word == "RUN" else word for word in command.split()]
    for package in NEEDS[command]:
        done = runs.lrn(*words, hidden=package, cwd=tmp_path)
        expected = f"lrn: this command needs {package}: pip install 'lrn[train]'\n"
        assert (done.code, done.err) == (2, expected), package
    assert [path.name for path in tmp_path.iterdir() if path.name != "room"] == ["run"]


def test_without_matplotlib_there_is_no_picture(ends_of_processes, tmp_path):
    done = runs.lrn("bench", "--shape", "2,1,4", "--seconds", "0.1", hidden="matplotlib", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "pip install 'lrn[plot]'" in done.out
    assert (tmp_path / "bench" / "bench.json").exists()


def test_gradients_are_drawn_and_nothing_is_overwritten(tmp_path, capsys):
    words = ["gradients", "--units", "lstm,lrn", "--steps", "4", "--hidden", "3", "--out"]
    path = tmp_path / "g.png"
    assert cli.main([*words, str(path), "--keep", "5"]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "nn.RNN" in capsys.readouterr().out
    assert cli.main([*words, str(path)]) == 2
    assert "there already" in capsys.readouterr().err
    assert cli.main([*words, str(path), "--overwrite"]) == 0
    assert cli.main([*words, str(tmp_path / "g.gif")]) == 2
    assert "must end in .png or .svg" in capsys.readouterr().err
    assert cli.main([*words, str(tmp_path / "h.svg"), "--steps", "0"]) == 2
    assert not (tmp_path / "h.svg").exists()
