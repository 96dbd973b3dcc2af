"""The run folder: never lost by mistake, complete or not a run."""

import errno
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lrn.tasks.lm.config import LMConfig
from lrn.training.config import TrainConfig, from_dict
from lrn.training.run import Run


def make(folder, **settings):
    return Run.create("lm", LMConfig(out=str(folder), **settings), {"data": {"source": "none"}})


def test_what_it_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make(tmp_path / "a" / "b", unit="sru", data="text", overwrite=True)
    again = Run.open(tmp_path / "a" / "b")
    assert (again.task, again.config) == ("lm", run.config)
    config = from_dict(LMConfig, again.config)
    assert config.unit == "sru"
    assert config.data == str(tmp_path / "text"), "found from anywhere"
    assert config.out is None, "it may be moved"
    assert not config.overwrite
    about = again.about()
    assert about["data"] == {"source": "none"}
    assert {"python", "torch", "lightning", "lrn"} <= about["versions"].keys()
    assert about["command"]


def test_where_it_is_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run.create("lm", LMConfig(unit="gru", seed=3), {})
    assert run.folder.resolve() == tmp_path / "runs" / "lm-gru-quick-3"


def test_an_empty_folder_will_do(tmp_path):
    make(tmp_path)


def test_never_overwritten(tmp_path):
    make(tmp_path / "run", seed=1)
    (tmp_path / "run" / "best.ckpt").write_text("precious")
    with pytest.raises(ValueError, match=r"exists.*--resume .*run; .*--overwrite.*--out"):
        make(tmp_path / "run", seed=2)
    assert Run.open(tmp_path / "run").config["seed"] == 1
    assert Run.open(tmp_path / "run").best.read_text() == "precious"


def test_overwritten_when_told(tmp_path):
    make(tmp_path / "run", seed=1).release()
    (tmp_path / "run" / "best.ckpt").write_text("old")
    make(tmp_path / "run", seed=2, overwrite=True)
    assert Run.open(tmp_path / "run").config["seed"] == 2
    assert not Run.open(tmp_path / "run").best.exists()


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "years of work"},
        {
            "config.json": '{"architectures": ["BertModel"]}',
            "model.safetensors": "a model of another program",
        },
        {"config.json": '{"task": "lm"}', "model.safetensors": "another program with tasks"},
        {"config.json": "not JSON", "about.json": "{}"},
        {"about.json": "{}", "vocabulary.json": "{}"},
    ],
)
def test_overwrite_spares_what_is_not_a_run(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match="exists and is not a run folder"):
        make(tmp_path, overwrite=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_a_file_in_its_place(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ValueError, match="is a file; --out must name a folder"):
        make(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run").read_text() == "mine"


def test_whether_it_is_free(tmp_path, monkeypatch):
    """The same answers as when it is made, and nothing is made or removed."""
    monkeypatch.chdir(tmp_path)

    def check(out, **settings):
        Run.check_free("lm", LMConfig(out=str(out), **settings))

    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    make(tmp_path / "run")
    before = {*tmp_path.rglob("*")}
    for out in ("new", "new/er", "empty", tmp_path / "far" / "away"):
        check(out)
    check("run", overwrite=True)
    for out, says in [
        ("run", r"run exists. Go on with it: lrn train --resume run; start anew: --overwrite"),
        ("file", "file is a file; --out must name a folder"),
        ("file/run", r"cannot make the run folder file/run \(Not a directory\)"),
        (tmp_path, "exists and is not a run folder; choose another: --out"),
    ]:
        with pytest.raises(ValueError, match=says):
            check(out)
    with pytest.raises(ValueError, match="exists and is not a run folder"):
        check(tmp_path, overwrite=True)
    assert {*tmp_path.rglob("*")} == before


def test_it_is_a_run_only_when_it_is_complete(tmp_path):
    def begin(run):
        assert not (run.folder / "config.json").exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run.create("lm", LMConfig(out=str(tmp_path / "run")), {}, begin)
    with pytest.raises(FileNotFoundError, match="there is no run folder"):
        Run.open(tmp_path / "run")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_leaves_what_there_was(overwrite, tmp_path):
    def begin(run):
        raise OSError(errno.ENOSPC, "No space left on device")

    if overwrite:
        make(tmp_path / "run", seed=7).release()
    config = LMConfig(out=str(tmp_path / "run"), overwrite=overwrite)
    with pytest.raises(
        ValueError, match=r"run folder .*run \(No space left on device\); choose another: --out"
    ):
        Run.create("lm", config, {}, begin)
    assert [path.name for path in tmp_path.iterdir()] == ["run"] * overwrite
    assert not overwrite or Run.open(tmp_path / "run").config["seed"] == 7
    make(tmp_path / "run", overwrite=overwrite)


@pytest.mark.parametrize("what", ["exists", "iterdir", "mkdir"])
def test_no_permission(what, tmp_path, monkeypatch):
    """At whichever step the system refuses; tests may run as root, to whom it refuses nothing."""

    def refuse(path, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "run").mkdir()
    monkeypatch.setattr(Path, what, refuse)
    with pytest.raises(ValueError, match=r"run folder .*run \(Permission denied\); choose another: --out"):
        make(tmp_path / "run")


def test_no_permission_to_overwrite(tmp_path, monkeypatch):
    def refuse(path, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", "config.json")

    make(tmp_path / "run").release()
    monkeypatch.setattr("os.rename", refuse)
    with pytest.raises(ValueError, match=r"run folder .*run \(Permission denied\); choose another: --out"):
        make(tmp_path / "run", overwrite=True)


def test_below_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match=r"run folder .*file/run \(Not a directory\); choose another: --out"):
        make(tmp_path / "file" / "run", overwrite=True)


def test_a_file_that_is_missing(tmp_path):
    run = make(tmp_path / "run")
    (tmp_path / "run" / "about.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"run cannot be used: its about\.json is missing"):
        run.about()


def test_data_that_has_moved(tmp_path):
    (tmp_path / "text").mkdir()
    run = make(tmp_path / "run", data=str(tmp_path / "text"))
    assert run.data() == str(tmp_path / "text")
    (tmp_path / "text").rename(tmp_path / "moved")
    assert run.data(str(tmp_path / "moved")) == str(tmp_path / "moved")
    with pytest.raises(
        FileNotFoundError, match=r"the data of .*run is no longer at .*text; say where: --data"
    ):
        run.data()
    assert make(tmp_path / "other").data() is None
    assert make(tmp_path / "named", data="builtin:cues").data() == "builtin:cues"


def test_misspelt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "runs" / "lm-lrn-quick-1")
    for folder in ("runs/lm-lrn-quik-1", "lm-lrn-quick-1", str(tmp_path / "runs" / "lm-lrn-1")):
        with pytest.raises(FileNotFoundError, match=r"; did you mean '.*runs/lm-lrn-quick-1'\?"):
            Run.open(folder)


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no run folder"):
        Run.open(tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", r"config\.json is damaged"),
        ("[]", "does not name a task"),
        ("{}", "does not name a task"),
        ('{"task": 3}', "does not name a task"),
    ],
)
def test_damaged_settings(content, says, tmp_path):
    make(tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=says):
        Run.open(tmp_path)


def test_unknown_settings():
    with pytest.raises(ValueError, match="this version does not know: speed, width"):
        from_dict(TrainConfig, {"unit": "lrn", "width": 3, "speed": 4})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", "3"),
        ("epochs", 1.5),
        ("epochs", None),
        ("lr", "x"),
        ("unit", 3),
        ("overwrite", 1),
        ("data", 3),
    ],
)
def test_settings_of_another_kind(name, value):
    with pytest.raises(ValueError, match=rf"config\.json is damaged: {name} cannot be"):
        from_dict(TrainConfig, {name: value})


def test_lists_are_left_to_the_task():
    @dataclass
    class WithList(TrainConfig):
        parts: list[str] = field(default_factory=list)

    assert from_dict(WithList, {"parts": ["train"]}).parts == ["train"]


def test_whole_numbers_are_numbers():
    assert from_dict(TrainConfig, {"lr": 1}).lr == 1


def test_metrics_are_added_to(tmp_path):
    run = make(tmp_path)
    run.add_metrics(a=1, b=2)
    run.add_metrics(b=3)
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"a": 1, "b": 3}


def test_remains_of_a_killed_process(tmp_path):
    run = make(tmp_path)
    (tmp_path / f".last.ckpt.{os.getpid()}.part").write_text("half")
    before = {path for path in tmp_path.iterdir() if path.suffix != ".part"}
    run.clean()
    assert {*tmp_path.iterdir()} == before
