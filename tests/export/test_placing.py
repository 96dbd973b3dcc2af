"""Files that belong together are all put into their places, or none."""

import os
import signal

import pytest

from lrn.export.placing import placed


def fill(folder):
    for name in ("model.json", "model.onnx"):
        (folder / name).write_text("new")


def test_all_are_there(tmp_path):
    (tmp_path / "model.json").write_text("mine")
    with placed(tmp_path / "model.onnx") as folder:
        fill(folder)
        assert (tmp_path / "model.json").read_text() == "mine"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "model.json": "new",
        "model.onnx": "new",
    }


def filled(path, error=None, told=False):
    with placed(path) as folder:
        fill(folder)
        if told:
            os.kill(os.getpid(), signal.SIGTERM)
        if error:
            raise error


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_none_is_there_if_something_fails(error, tmp_path):
    with pytest.raises(type(error)):
        filled(tmp_path / "model.onnx", error)
    assert list(tmp_path.iterdir()) == []


def test_none_is_there_if_the_program_is_told_to_end(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as end:
        filled(tmp_path / "model.onnx", told=True)
    assert end.value.code == 143
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_none_is_there_if_one_cannot_be_moved(tmp_path, monkeypatch):
    replace = os.replace

    def failing(source, goal):
        if source.name == "model.onnx":
            raise OSError(28, "No space left on device")
        replace(source, goal)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match=r"cannot write .*model\.onnx: No space left"):
        filled(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
