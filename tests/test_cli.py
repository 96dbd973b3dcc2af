"""The command line: what a newcomer types first, and what they mistype."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs
import torch
import yaml

from lrn import cli, commands, names, tasks
from lrn.tasks.lm.config import PRESETS, LMConfig


def lrn(*words):
    return subprocess.run([sys.executable, "-m", "lrn", *words], capture_output=True, text=True)


def test_alone_it_says_what_there_is(capsys):
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"lrn {command}" in said


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == "lrn 0.2.0\n"


HEAVY = ("torch", "lightning", "rich", "numpy", "yaml", "argparse", "dataclasses")


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
    """In more than Python itself takes; the best of several, for a machine that is busy."""
    script = Path(sys.executable).with_name("lrn")

    def seconds(*command):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - start

    def best(*command):
        return min(seconds(*command) for _ in range(7))

    python = best(sys.executable, "-c", "pass")
    assert best(script, "--help") - python < 0.1
    assert best(script, "train", "lm", "--help") - python < 0.3


def test_help_without_dashes(capsys):
    assert cli.main(["help"]) == 0
    assert capsys.readouterr().out.startswith("lrn: lightweight")
    assert cli.main(["help", "train", "lm"]) == 0
    assert capsys.readouterr().out.startswith("usage: lrn train lm")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_every_command(command, capsys):
    assert cli.main([command, "--help"]) == 0
    said = capsys.readouterr()
    assert "usage: lrn " in said.out
    assert said.err == ""


def help_of(capsys, *words):
    assert cli.main([*words, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["params [TASK]", "paper [TABLE]", "results RUN…", "import RUN FILE"])
def test_words_that_can_be_left_out(command, capsys):
    """As the overview has them."""
    assert f"\n  lrn {command} " in cli.OVERVIEW
    assert help_of(capsys, command.split()[0]).startswith(f"usage: lrn {command} [--flags]\n")


def test_help_of_all_tasks_says_how_to_see_one(settings_of_a_run, capsys):
    for command in ("predict", "evaluate"):
        second = help_of(capsys, command).splitlines()[2]
        assert second.startswith(f"`lrn {command} RUN --help` shows what is for that run alone")
    assert "`lrn" not in help_of(capsys, "memory")
    assert "for a run of" not in help_of(capsys, "predict", settings_of_a_run("doc"))


def test_help_of_a_training(capsys):
    """The task's own settings first; defaults are those of the preset that is chosen."""
    said = help_of(capsys, "train", "lm")
    assert said.index("\nsettings:\n") < said.index("--bptt") < said.index("\nsettings of every training:\n")
    assert said.index("\nsettings of every training:\n") < said.index("--seed") < said.index("--print_config")
    assert re.search(r"^  --overwrite \[BOOL\] +throw away what is in that folder$", said, re.M)
    assert "--no-test turns it off" in " ".join(said.split())
    assert re.search(r"^  --layers INT +recurrent layers \(default 2\)$", said, re.M)
    said = help_of(capsys, "train", "lm", "--preset", "paper-ptb")
    assert re.search(r"^  --layers INT +recurrent layers \(default 3\)$", said, re.M)


@pytest.mark.parametrize("words", [["--overwrite"], ["--overwrite", "true"], ["--overwrite=true"]])
def test_switches_of_a_command_without_a_task(words, monkeypatch):
    seen = []
    monkeypatch.setattr("lrn.commands.import_", lambda *given: seen.append(given) or 0)
    assert cli.main(["import", "run", "file", *words]) == 0
    for off in (["--overwrite", "false"], ["--no-overwrite"], []):
        assert cli.main(["import", "run", "file", *off]) == 0
    assert seen == [("run", "file", True), *[("run", "file", False)] * 3]


def test_help_explains_every_setting(capsys):
    said = help_of(capsys, "train", "lm")
    for field in dataclasses.fields(tasks.settings("lm").train):
        line = re.search(rf"^ +--{field.name}\b[^\n]*\n?[^\n]*", said, re.M)
        assert line, field.name
        assert re.search(r"[a-z]+ [a-z]+", line.group().split(field.name, 1)[1]), field.name


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["bnech"], "bench"),
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


ROOT = Path(__file__).parent.parent
USER_ERRORS = [
    ["demo"],
    [""],
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
    ["train", "lm", "--lr"],
    ["train", "lm", "--data", ""],
    ["train", "ner", "--out="],
    ["train", "ner", "--vectors", ""],
    ["train", "--resume", ""],
    ["compare", "doc", "--out", ""],
    ["bench", "--out", ""],
    ["gradients", "--out", ""],
    ["train", "lm", "--threads", "1000"],
    ["train", "lm", "--threads", "1000000"],
    ["train", "lm", "--hidden", "1000000000"],
    ["train", "lm", "--seed", str(2**80)],
    ["train", "ner", "--sentences", "1000000000000"],
    ["train", "lm", "--accelerator", "gpu"],
    ["train", "lm", "--out", __file__],
    ["train", "lm", "--out", str(Path(__file__).parent)],
    ["compare", "lm", "--seeds", f"1,{2**80}"],
    ["compare", "lm", "--threads", "1000"],
    ["compare", "lm", "--out", str(Path(__file__).parent)],
    ["bench", "--threads", "1000"],
    ["gradients", "--threads", "-1"],
    ["gradients", "--hidden", "1000000000"],
    ["doctor", "--threads", "1000"],
    ["predict", __file__, "--files", __file__],
    ["params", "nothing"],
    ["export", "no/such/run", "file.safetensors"],
    ["serve"],
    ["serve", "no/such/run"],
    ["serve", "no/such/file.safetensors"],
    ["serve", __file__],
    ["serve", ".", "--port", "70000"],
    ["import", "no/such/run", "file"],
    ["results"],
    ["paper", "8"],
    ["paper", "table", "7"],
    ["results", "no/such/run"],
    ["results", "."],
    ["results", __file__],
    ["results", ".", "--format", "html"],
    ["gradients", "--out", "picture.gif"],
    ["gradients", "--units", "lrn,lsmt"],
    ["gradients", "--out", str(ROOT / "docs" / "gradients.png")],
    ["bench", "--out", __file__ + "/folder"],
    ["gradients", "--out", "no/such/folder/picture.png"],
    ["gradients", "--out", __file__ + "/picture.png"],
    ["bench", "--seconds", "-1"],
    ["--verison"],
    ["train lm"],
]


@pytest.mark.parametrize("words", USER_ERRORS, ids=lambda words: " ".join(words)[:60])
def test_errors_are_one_line(words, capsys):
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("lrn: ")
    assert said.count("\n") == 1


def test_errors_wait_for_nothing_slow():
    """All of the above, in one process that has not imported torch when it is through."""
    code = (
        f"import sys; from lrn import cli; codes = [cli.main(words) for words in {USER_ERRORS!r}];"
        "print(set(codes), [name for name in ('torch', 'lightning') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "{2} []", done.stderr
    assert done.stderr.count("\n") == len(USER_ERRORS)


@pytest.mark.parametrize("command", ["compare lm", "bench"])
def test_a_place_for_results_that_cannot_be(command, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert cli.main([*command.split(), "--out", str(tmp_path / "file" / "folder")]) == 2
    said = capsys.readouterr().err
    expected = f"cannot make the folder {tmp_path}/file/folder (Not a directory); choose another: --out"
    assert said == f"lrn: {expected}\n"


@pytest.mark.parametrize("words", [["evaluate", "RUN"], ["predict", "RUN", "--prompt", "a"]])
def test_a_run_with_settings_that_cannot_be(words, tmp_path, capsys):
    (tmp_path / "best.ckpt").touch()
    words = [word.replace("RUN", str(tmp_path)) for word in words]
    for config, says in [
        ('"hidden": 1000000000', "config.json: hidden must be at most 65,536, got 1,000,000,000"),
        ('"hidden": "3"', "config.json is damaged: hidden cannot be '3'"),
        ('"speed": 3', "config.json has settings that this version does not know: speed"),
    ]:
        (tmp_path / "config.json").write_text(f'{{"task": "lm", "format": 2, {config}}}')
        assert cli.main(words) == 2
        assert capsys.readouterr().err == f"lrn: {says}\n"


@pytest.fixture
def settings_of_a_run(tmp_path):
    """A run folder as far as its settings go, which is far enough for what is wrong with the words."""

    def make(task, name="run"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps({"task": task, "format": 2}))
        return str(tmp_path / name)

    return make


@pytest.mark.parametrize("command", ["evaluate", "predict", "results", "train --resume"])
def test_a_file_is_not_a_run(command, settings_of_a_run, tmp_path, capsys):
    """One in a run folder, an exported model, any other."""
    run = Path(settings_of_a_run("lm"))
    for file, says in (
        (run / "best.ckpt", f"is a file; name the run folder that it is in: {run}"),
        (
            tmp_path / "m.safetensors",
            "is an exported model, which lrn serve and lrn.load take; expected a run folder",
        ),
        (tmp_path / "notes", "is a file; expected a run folder"),
    ):
        file.touch()
        assert cli.main([*command.split(), str(file)]) == 2
        assert capsys.readouterr().err == f"lrn: {file} {says}\n"


@pytest.mark.parametrize("command", ["results", "predict"])
def test_a_folder_of_runs_is_not_a_run(command, settings_of_a_run, tmp_path, capsys):
    """Those that are meant may be among the first five, and tell where the others are."""
    for number, more in ((1, ""), (5, ""), (7, " and 2 more")):
        made = [settings_of_a_run("lm", f"{number}/run-{place}") for place in range(number)]
        assert cli.main([command, str(tmp_path / str(number))]) == 2
        says = (
            f"is not a run folder: it has no config.json; the run folders in it: {', '.join(made[:5])}{more}"
        )
        assert capsys.readouterr().err == f"lrn: {tmp_path / str(number)} {says}\n"


@pytest.mark.parametrize(
    ("task", "command", "says"),
    [
        ("doc", "predict", 'a text comes from standard input, echo "…" | lrn predict RUN, or from --files'),
        ("lm", "predict", "the text to go on with follows --prompt, files to score follow --files"),
        ("doc", "memory", "the document itself follows --text, a file that holds it --file"),
        ("doc", "evaluate", None),
    ],
)
def test_a_text_among_the_words(task, command, says, settings_of_a_run, capsys):
    """A newcomer types it behind the run."""
    assert cli.main([command, settings_of_a_run(task), "It was dull."]) == 2
    explains = f"(lrn {command} RUN --help explains)"
    expected = f"unexpected word 'It was dull.'{f'; {says}' if says else ''} {explains}"
    assert capsys.readouterr().err == f"lrn: {expected}\n"


@pytest.mark.parametrize(
    ("task", "words", "says"),
    [
        ("doc", "predict RUN --prompt hi", "unknown flag '--prompt'; it belongs to lm"),
        ("lm", "predict RUN --html a.html", "unknown flag '--html'; it belongs to rc"),
        ("ner", "evaluate RUN --length-penalty 1", "unknown flag '--length-penalty'; it belongs to mt"),
        ("ner", "predict RUN --formt json", "unknown flag '--formt'; did you mean '--format'?"),
        ("doc", "train doc --bptt 70", "unknown flag '--bptt'; it belongs to lm"),
        ("doc", "compare doc --bptt 70", "unknown flag '--bptt'; it belongs to lm"),
    ],
)
def test_a_flag_of_another_task(task, words, says, settings_of_a_run, capsys):
    folder = settings_of_a_run(task)
    assert cli.main([folder if word == "RUN" else word for word in words.split()]) == 2
    assert capsys.readouterr().err.startswith(f"lrn: {says} (lrn ")


@pytest.mark.parametrize("text", ["Anna sleeps.", "Anna sleeps. " * 1000])
def test_a_text_where_a_file_is_expected(text, settings_of_a_run, capsys):
    assert cli.main(["predict", settings_of_a_run("rc"), "--text", text]) == 2
    said = capsys.readouterr().err
    hint = "; without --text the text is asked for in a terminal, or comes from standard input if --files has"
    assert said.startswith(f"lrn: --text: there is no file {text}{hint}")
    assert said.count("\n") == 1


def test_a_file_to_import_that_is_not_there(settings_of_a_run, capsys):
    """It is said before anything is asked to be overwritten for it."""
    run = settings_of_a_run("lm")
    Path(run, "best.ckpt").touch()
    assert cli.main(["import", run, "no.safetensors"]) == 2
    assert capsys.readouterr().err == "lrn: there is no file no.safetensors\n"


@pytest.mark.parametrize("task", names.TASKS)
def test_where_data_is_expected(task, tmp_path, capsys):
    """Which files, and how to do without."""
    for folder in (tmp_path / "none", tmp_path):
        assert cli.main(["train", task, "--data", str(folder)]) == 2
        said = capsys.readouterr().err
        assert str(folder) in said
        assert "expected" in said
        assert "without --data" in said


def test_a_file_that_is_not_there(tmp_path, capsys):
    for task in ("ner", "doc"):
        assert cli.main(["train", task, "--vectors", "no/such/file"]) == 2
        assert capsys.readouterr().err == "lrn: --vectors: there is no file no/such/file\n"
    (tmp_path / "config.json").write_text('{"task": "ner", "format": 2}')
    assert cli.main(["predict", str(tmp_path), "--files", __file__, "no/such/file"]) == 2
    assert capsys.readouterr().err == "lrn: --files: there is no file no/such/file\n"


@pytest.mark.parametrize("place", [0, 2])
def test_debug_shows_where(place):
    words = ["evaluate", "no/such/run"]
    with pytest.raises(FileNotFoundError, match="no run folder"):
        cli.main([*words[:place], "--debug", *words[place:]])


def test_traceback_only_with_debug():
    done, debugged = lrn("bnech"), lrn("bnech", "--debug")
    assert (done.returncode, debugged.returncode) == (2, 1)
    assert "bnech" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in debugged.stderr


def test_a_task_is_needed(capsys):
    assert cli.main(["train"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: lrn train TASK [--flags]\n       lrn train --resume RUN [--flags]\n\n")
    said = " ".join(said.split())
    assert f"name a task ({', '.join(names.TASKS)}): `lrn train TASK --help` explains" in said
    assert cli.main(["train", "--threads", "1"]) == 2
    expected = f"lrn: name a task, {', '.join(names.TASKS)}, or a run to go on with: --resume RUN\n"
    assert capsys.readouterr().err == expected


def test_several_units_are_a_comparison(capsys):
    assert cli.main(["train", "lm", "--unit", "lrn,gru"]) == 2
    expected = "unit 'lrn,gru': a training has one; to compare several: lrn compare TASK --units lrn,gru"
    assert capsys.readouterr().err == f"lrn: {expected}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("train --preset quick lm", "unknown flag '--preset'; name the task first: lrn train lm …"),
        ("train --config my.yaml", "unknown flag '--config'; name the task first: lrn train TASK …"),
        ("train --task lm", "unknown flag '--task'; name the task first: lrn train lm …"),
        ("train --threads 1 lm", "unexpected word 'lm'; name the task first: lrn train lm …"),
        ("train --rseume lm", "unknown flag '--rseume'; did you mean '--resume'?"),
        (
            "compare --task ner",
            "unknown flag '--task'; name the task first: lrn compare ner …, or several: --tasks",
        ),
        (
            "compare --task=x",
            "unknown flag '--task'; name the task first: lrn compare TASK …, or several: --tasks",
        ),
        ("compare --units lrn,gru ner", "unexpected word 'ner'; name the task first: lrn compare ner …"),
        ("compare ner doc", "unexpected word 'doc'"),
    ],
)
def test_a_task_comes_first(words, says, capsys):
    assert cli.main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"lrn: {says} (lrn ")


def test_stopped_before_it_began(monkeypatch, capsys):
    def stop(words):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "params", stop)
    assert cli.main(["params"]) == 130
    assert capsys.readouterr().err == "lrn: stopped\n"


@pytest.mark.parametrize(
    ("where", "says"),
    [("__import__('slow')", "lrn: stopped\n"), ("interrupt()", "lrn: saved\nlrn: stopped\n")],
)
def test_stopped_while_it_imports(where, says, tmp_path):
    """Where an exception may be lost, as in ``__del__``, the program ends at once; elsewhere it is raised."""
    (tmp_path / "slow.py").write_text(
        "import os, signal\n"
        "class Lossy:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGINT)\n"
        "Lossy()\n"
    )
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whatever the tests were started with
        "from lrn import cli\n"
        "def interrupt(): os.kill(os.getpid(), signal.SIGINT)\n"
        "def command(words):\n"
        f"    try: {where}\n"
        "    except KeyboardInterrupt: print('lrn: saved', file=sys.stderr); raise\n"
        "    return 0\n"
        "cli.COMMANDS['params'] = command\n"
        "code = cli.main(['params'])\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, says)


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


@pytest.fixture
def ends_of_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("LRN_TEST_ROOM", str(tmp_path / "room"))


NEEDS = {
    "bench --shape 2,1,4": ("rich",),
    "train lm --max_steps 1": ("rich", "lightning", "numpy"),
    "train ner --max_steps 1": ("rich", "lightning", "numpy"),
    "train lm --print_config": ("yaml",),
    "train lm --config run/config.json": ("yaml",),
    "train --resume RUN": ("rich", "lightning", "numpy"),
    "compare lm": ("rich", "lightning", "numpy"),
    "evaluate RUN": ("numpy",),
    "predict RUN --prompt a": ("numpy",),
    "export RUN file.safetensors": ("safetensors",),
    "import RUN run/config.json --overwrite": ("safetensors",),
}


@pytest.mark.parametrize("command", NEEDS)
def test_a_missing_extra_names_the_command(command, ends_of_processes, tmp_path):
    """Without a package that it needs, the answer is the pip command that brings it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"task": "lm", "format": 2}')
    (tmp_path / "run" / "best.ckpt").touch()
    words = ["run" if word == "RUN" else word for word in command.split()]
    for package in NEEDS[command]:
        done = runs.lrn(*words, hidden=package, cwd=tmp_path)
        expected = f"lrn: this command needs {package}: pip install 'lrn-torch[train]'\n"
        assert (done.code, done.err) == (2, expected), package
    assert [path.name for path in tmp_path.iterdir() if path.name != "room"] == ["run"]


@pytest.mark.parametrize("command", ["params", "doctor --seconds 0.1"])
@pytest.mark.parametrize("package", ["rich", "lightning", "numpy", "yaml", "safetensors", "matplotlib"])
def test_torch_alone_will_do(command, package, ends_of_processes, tmp_path):
    done = runs.lrn(*command.split(), hidden=package, cwd=tmp_path)
    assert done.code == 0, done.err


def test_without_matplotlib_there_is_no_picture(ends_of_processes, tmp_path):
    done = runs.lrn("bench", "--shape", "2,1,4", "--seconds", "0.1", hidden="matplotlib", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "pip install 'lrn-torch[plot]'" in done.out
    assert (tmp_path / "bench" / "bench.json").exists()


def test_gradients_are_drawn_and_nothing_is_overwritten(tmp_path, capsys):
    words = ["gradients", "--units", "lstm,lrn", "--steps", "4", "--hidden", "3", "--out"]
    path = tmp_path / "g.png"
    assert cli.main([*words, str(path), "--keep", "5"]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr()
    assert "nn.RNN" in said.out
    assert re.fullmatch("each curve is .* one that falls .* one that rises .*\n", said.err)
    assert cli.main([*words, str(path)]) == 2
    assert "there already" in capsys.readouterr().err
    assert cli.main([*words, str(path), "--overwrite"]) == 0
    assert cli.main([*words, str(tmp_path / "g.gif")]) == 2
    assert "must end in .png or .svg" in capsys.readouterr().err
    assert cli.main([*words, str(tmp_path / "h.svg"), "--steps", "0"]) == 2
    assert not (tmp_path / "h.svg").exists()


# The settings of a training -------------------------------------------------------------------------


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """The settings that words, and a YAML file in place of ``FILE``, come to."""
    seen = []
    monkeypatch.setattr(commands, "train", lambda name, config: seen.append(config) or 0)
    monkeypatch.chdir(tmp_path)

    def read(*words, file=None, task="lm"):
        path = tmp_path / "my.yaml"
        if file is not None:
            path.write_text(file)
        assert cli.main(["train", task, *(word.replace("FILE", str(path)) for word in words)]) == 0
        return seen.pop()

    return read


def test_default_and_preset(settings):
    assert settings() == LMConfig(**PRESETS["quick"], preset="quick")
    assert settings("--preset", "small") == LMConfig(**PRESETS["small"], preset="small")
    assert settings("--preset=paper-ptb").hidden == 960
    assert settings("--preset=paper-ptb", "--preset", "small").hidden == settings("--preset=small").hidden


def test_flag_before_file_before_preset_before_default(settings):
    file = "preset: paper-ptb\nhidden: 500\nlast: 400\n"
    for words in (["--config", "FILE", "--last", "300"], ["--last", "300", "--config", "FILE"]):
        config = settings(*words, file=file)
        assert (config.preset, config.embedding, config.hidden, config.last) == ("paper-ptb", 280, 500, 300)
        assert config.nonmono == LMConfig.nonmono
    config = settings("--preset", "paper-wt2", "--config=FILE", file=file)
    assert (config.preset, config.embedding, config.hidden) == ("paper-wt2", 300, 500)


def test_where_and_how_to_compute(settings):
    words = (
        "--accelerator cuda --devices 4 --nodes 2 --precision 16 --accumulate 3 --threads 1 --batch-size 24"
    )
    config = settings(*words.split())
    assert (config.accelerator, config.devices, config.nodes, config.precision) == ("cuda", 4, 2, "16")
    assert (config.accumulate, config.threads, config.batch_size) == (3, 1, 24)
    assert settings("--config", "FILE", file="precision: 16\n").precision == "16"


def test_printed_settings_can_be_read_back(settings, capsys, tmp_path):
    runs.write_text(tmp_path / "text")
    words = ["--unit", "sru", "--lr", "0.5", "--preset", "small", "--precision", "bf16", "--data", "text"]
    assert cli.main(["train", "lm", *words, "--print_config"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["lr"] == 0.5
    assert settings("--config", "FILE", file=printed) == settings(*words)


@pytest.mark.parametrize(("task", "setting"), [("lm", "min_count"), ("ner", "sentences")])
def test_settings_of_the_built_in_data_alone(task, setting, capsys):
    assert cli.main(["train", task, "--data", "folder", f"--{setting}", "7"]) == 2
    assert capsys.readouterr().err.startswith(f"lrn: {setting} is for the built-in data only: with --data ")


def test_a_file_for_a_comparison(tmp_path, capsys):
    path = tmp_path / "my.yaml"
    path.write_text("units: lrn,lstm\nseeds: 1\nunit: lrn\n")
    assert cli.main(["compare", "lm", "--config", str(path)]) == 2
    assert "my.yaml: unknown setting 'unit'; did you mean 'units'?" in capsys.readouterr().err


def test_the_settings_of_a_comparison(monkeypatch, tmp_path, capsys):
    """A seed in the preset is not the comparison's; one seed in a file need not be in quotes."""
    seen = []
    monkeypatch.setattr(commands, "compare", lambda *given: seen.append(given) or 0)
    (tmp_path / "my.yaml").write_text("units: lrn,sru\nseeds: 3\n")
    words = [
        "compare",
        "lm",
        "--preset",
        "paper-ptb",
        "--config",
        str(tmp_path / "my.yaml"),
        "--out",
        "there",
    ]
    assert cli.main(words) == 0
    ((plan,),) = seen
    config = plan.config
    assert (plan.task, plan.units, plan.seeds) == ("lm", ("lrn", "sru"), (3,))
    assert (config.unit, config.seed, config.preset, config.out) == ("lrn", 3, "paper-ptb", "there")
    assert "comparisons/TASK-PRESET" in help_of(capsys, "compare", "lm")


# Resuming -------------------------------------------------------------------------------------------


@pytest.fixture
def resumed(monkeypatch, tmp_path):
    """What a resumed run is told, or what is said instead."""
    seen = []
    monkeypatch.setattr(commands, "resume", lambda run, changes: seen.append((run.task, changes)) or 0)
    (tmp_path / "run").mkdir()

    def resume(*words, **config):
        settings = {"task": "lm", "format": 2, "epochs": 3} | config
        (tmp_path / "run" / "config.json").write_text(json.dumps(settings))
        code = cli.main(["train", "--resume", str(tmp_path / "run"), *map(str, words)])
        return seen.pop() if code == 0 else None

    return resume


def test_resuming(resumed, tmp_path):
    runs.write_text(tmp_path / "text")
    assert resumed() == ("lm", {})
    assert resumed("--epochs", 5) == ("lm", {"epochs": 5})
    assert resumed("--epochs", 3, "--devices", 2, batch_size=8) == ("lm", {"epochs": 3, "devices": 2})
    assert resumed("--threads=1", "--accelerator", "cpu") == ("lm", {"threads": 1, "accelerator": "cpu"})
    assert resumed("--data", tmp_path / "text") == ("lm", {"data": str(tmp_path / "text")})


@pytest.mark.parametrize("words", [["lm", "--resume", "RUN"], ["--resume", "RUN", "--hidden", "5"]])
def test_what_a_resumed_run_keeps(words, capsys):
    assert cli.main(["train", *words]) == 2
    said = capsys.readouterr().err
    assert "a run that is resumed keeps its task and its settings" in said
    assert "did you mean" not in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "config", "says"),
    [
        (["--epochs", 2], {}, "was told 3, and can only go further"),
        (["--epochs", 10**10], {}, "epochs must be at most 1,000,000,000"),
        (["--devices", 3], {"batch_size": 20}, "cannot be shared equally by 3 processes"),
        (["--threads", 10_000], {}, "threads must be at most 4,096"),
        (["--threads", 4_000], {}, "the cores of this machine, got 4,000"),
        ([], {"threads": 4_000}, "the cores of this machine, got 4,000"),
        (["--accelerator", "gpu"], {}, "unknown accelerator 'gpu'"),
        (["--data", "no/such/folder"], {}, "there is no folder no/such/folder; expected"),
        ([], {"data": "no/such/folder"}, "is no longer at no/such/folder; say where: --data"),
        (["stray"], {}, "unexpected word 'stray'"),
        (["--epcohs", 5], {}, "did you mean '--epochs'?"),
        ([], {"hidden": 10**9}, "config.json: hidden must be at most 65,536"),
        ([], {"speed": 9}, "config.json has settings that this version does not know: speed"),
    ],
)
def test_what_a_resumed_run_cannot_be_told(words, config, says, resumed, capsys):
    assert resumed(*words, **config) is None
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


# How a command ends ---------------------------------------------------------------------------------


def raising(error, monkeypatch):
    def fail(words):
        raise error

    monkeypatch.setitem(cli.COMMANDS, "params", fail)
    return ["params"]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried"
        ),
        RuntimeError("not enough memory: you tried to allocate 4096 bytes"),
        OSError(12, "Cannot allocate memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory(error, monkeypatch, capsys):
    assert cli.main(raising(error, monkeypatch)) == 2
    said = capsys.readouterr().err
    assert said.startswith("lrn: there is not enough memory for this; lower --batch_size")
    assert said.count("\n") == 1


def test_torch_that_runs_out_of_memory(monkeypatch, capsys):
    """Not as we think it says it, but as it does."""

    def fill(words):
        torch.empty(1 << 60)

    monkeypatch.setitem(cli.COMMANDS, "params", fill)
    assert cli.main(["params"]) == 2
    assert "not enough memory" in capsys.readouterr().err


def test_our_own_mistakes_are_not_hidden(monkeypatch):
    with pytest.raises(RuntimeError, match="ours"):
        cli.main(raising(RuntimeError("ours"), monkeypatch))
    with pytest.raises(ModuleNotFoundError):
        cli.main(raising(ModuleNotFoundError("no module", name="something"), monkeypatch))
    with pytest.raises(ValueError, match="theirs"):
        cli.main([*raising(ValueError("theirs"), monkeypatch), "--debug"])
    with pytest.raises(KeyboardInterrupt):
        cli.main([*raising(KeyboardInterrupt(), monkeypatch), "--debug"])


def test_an_error_of_several_lines_becomes_one(monkeypatch, capsys):
    assert cli.main(raising(ValueError("one\ntwo  three"), monkeypatch)) == 2
    assert capsys.readouterr().err == "lrn: one two  three\n"


def test_a_reader_that_has_seen_enough():
    command = f"{sys.executable} -m lrn train lm --print_config | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stage: train\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed):
    """What would be printed there is lost, and no file that is opened takes their numbers."""
    code = (
        "import os, sys; from lrn import cli\n"
        "code = cli.main(['paper'])\n"
        "sys.exit(code or os.open(os.devnull, os.O_RDONLY) < 3 or sys.stdin.read() != '')"
    )
    done = subprocess.run(
        f'{sys.executable} -c "{code}" {closed}', shell=True, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


PRINTS = {
    "help": "words = ['--help']",
    "help of a command": "words = ['train', 'lm', '--help']",
    "settings": "words = ['train', 'lm', '--print_config']",
    "without flushing": "cli.COMMANDS['params'] = lambda words: print('much') or 0",
    "line by line": "cli.COMMANDS['params'] = lambda words: print('much', flush=True) or 0",
    "rich": "import rich; cli.COMMANDS['params'] = lambda words: rich.print('much') or 0",
}


@pytest.mark.parametrize("how", PRINTS)
def test_nobody_reads_at_all(how):
    """A pipe whose other end is closed: a quiet end, with the code of programs that SIGPIPE ends."""
    code = f"import sys; from lrn import cli; words = ['params']\n{PRINTS[how]}\nsys.exit(cli.main(words))"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run([sys.executable, "-c", code], stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_first_line_for_who_waits(terminal, settings, monkeypatch, capsys):
    """Of a training also in a log; commands that are over soon leave a log alone."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    settings("--out", "there")
    assert capsys.readouterr().err == "there: reading the data …\n"
    cli._say("there: reading the model …")
    assert capsys.readouterr().err == ("there: reading the model …\n" if terminal else "")


def test_the_first_line_comes_before_anything_slow(tmp_path):
    code = (
        "import sys; from lrn import cli, commands;"
        "commands.train = lambda *given: print('torch' in sys.modules) or 0;"
        "sys.exit(cli.main(['train', 'ner']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("False\n", "runs/ner-lrn-quick-1: reading the data …\n")
