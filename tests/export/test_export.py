"""`lrn export`: what is refused, in a line, before anything slow; the writers by ending."""

from pathlib import Path

import pytest

from lrn import cli, export
from lrn.export import to_onnx
from lrn.options import Export
from lrn.training.run import Run


@pytest.fixture
def run(tmp_path):
    """A folder that looks like a run, whose weights nobody has read yet."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text('{"task": "mt", "format": 2, "unit": "lrn"}')
    (folder / "best.ckpt").touch()
    return folder


@pytest.mark.parametrize("name", ["model", "model.bin", "model.onnx.zip", ".onnx", "model.ONNX"])
def test_other_endings(name, run, tmp_path, capsys):
    path = tmp_path / name
    assert cli.main(["export", str(run), str(path)]) == 2
    assert capsys.readouterr().err == f"lrn: {path}: the name must end in .safetensors, .onnx or .pt2\n"


@pytest.mark.parametrize("name", ["model.encoder.onnx", "model.json", "model.decoder.onnx.data"])
def test_files_that_are_there(name, run, tmp_path, capsys):
    """All that would be written."""
    (tmp_path / name).write_text("mine")
    assert cli.main(["export", str(run), str(tmp_path / "model.onnx")]) == 2
    said = f"lrn: {tmp_path / name} exists; choose another name, or add --overwrite\n"
    assert capsys.readouterr().err == said
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_in_the_way(run, tmp_path, capsys):
    (tmp_path / "model.json").mkdir()
    assert cli.main(["export", str(run), str(tmp_path / "model.onnx"), "--overwrite"]) == 2
    assert capsys.readouterr().err == f"lrn: {tmp_path / 'model.json'} is a folder; choose another name\n"


def test_no_weights(run, tmp_path, capsys):
    (run / "best.ckpt").unlink()
    assert cli.main(["export", str(run), str(tmp_path / "model.onnx")]) == 2
    assert f"{run} has no best.ckpt" in capsys.readouterr().err


@pytest.mark.parametrize("package", to_onnx.PACKAGES)
def test_a_missing_package(package, run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    assert cli.main(["export", str(run), str(tmp_path / "model.onnx")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"lrn: this command needs {package}: pip install '")
    assert said.endswith("[onnx]'\n")


@pytest.mark.parametrize(("task", "setting"), [("nli", "bert"), ("rc", "elmo")])
def test_a_run_that_cannot_leave(task, setting, run, tmp_path, capsys):
    (run / "config.json").write_text(f'{{"task": "{task}", "format": 2, "{setting}": "folder"}}')
    assert cli.main(["export", str(run), str(tmp_path / "model.onnx")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"lrn: {run} is a run of {task} with a")
    assert said.endswith(f"; runs without --{setting} can\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_every_writer_says_what_it_writes(run):
    for ending in export.WRITERS:
        path = Path(f"model{ending}")
        writer = export.writer(path)
        assert all(file.name.startswith("model.") for file in writer.files(Run.open(str(run)), path))
        assert callable(writer.write)
        assert ending in (Export.__doc__ or "")
