"""Files are whole or not there."""

import errno
import os
from pathlib import Path

import pytest
from runs import leftovers

from lrn.files import check_folder, check_place, read_json, write_json, write_text, write_whole


def test_round_trip(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"σ": [1, 2.5, None]})
    write_json(path, {"σ": [1, 2.5, True]})
    assert read_json(path) == {"σ": [1, 2.5, True]}
    assert [*tmp_path.iterdir()] == [path]


def half(file):
    file.write(b"half of")
    raise RuntimeError("something else went wrong")


def interrupt(file):
    file.write(b"half of")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("write", "error"), [(half, RuntimeError), (interrupt, KeyboardInterrupt)])
@pytest.mark.parametrize("exists", [True, False])
def test_an_exception_while_writing(write, error, exists, tmp_path):
    path = tmp_path / "a"
    if exists:
        path.write_text("before")
    with pytest.raises(error):
        write_whole(path, write)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"] * exists


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_full_disk(where, tmp_path, monkeypatch):
    path = tmp_path / "a"
    write_text(path, "before")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where != "write":
        monkeypatch.setattr(os, where, full)
    with pytest.raises(OSError, match=f"cannot write {path}: No space left on device") as error:
        write_whole(path, full if where == "write" else lambda file: file.write(b"after"))
    monkeypatch.undo()
    assert error.value.errno == errno.ENOSPC
    assert path.read_text() == "before"
    assert not [*leftovers(tmp_path)]


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write .*/none/a: No such file"):
        write_text(tmp_path / "none" / "a", "text")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1', b"\xff\xfe", b"[" * 100_000, b"PK\x03\x04"])
def test_damaged_json(content, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json is damaged"):
        read_json(path)


def test_missing_json(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.json is missing"):
        read_json(tmp_path / "a.json")


def test_a_folder_that_could_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for path in (Path("new"), Path("new/er"), tmp_path / "a" / "b", tmp_path, Path(".")):
        check_folder(path)
    for path in (Path("file"), Path("file/below"), tmp_path / "file" / "far" / "below"):
        with pytest.raises(ValueError, match=f"^cannot make the folder {path} .*; choose another: --out$"):
            check_folder(path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_could_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for path in (Path("new"), tmp_path / "new", Path("file")):
        check_place(path)
    for path, reason in ((Path("none/new"), "No such file"), (Path("file/new"), "Not a directory")):
        with pytest.raises(ValueError, match=f"^cannot write {path}: {reason}.*; choose another place$"):
            check_place(path)


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    with pytest.raises(ValueError, match=r"^cannot write .*: Permission denied; choose another place$"):
        check_place(tmp_path / "new")
    with pytest.raises(ValueError, match=r"^cannot make the folder .* \(Permission denied\); choose"):
        check_folder(tmp_path / "some" / "new")
