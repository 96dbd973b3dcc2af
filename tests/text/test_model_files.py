"""The files of a model: their fingerprint, and copies that are whole or not there."""

import pytest

from lrn.text import model_files
from lrn.text.model_files import copy_files, fingerprint_files


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "given" / name for name in ("config.json", "weights")]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def test_a_fingerprint_is_of_names_and_contents(files, tmp_path):
    before = fingerprint_files(files)
    assert fingerprint_files(reversed(files)) == before
    copy_files(files, tmp_path / "a" / "b")
    assert fingerprint_files(tmp_path / "a" / "b" / path.name for path in files) == before
    assert fingerprint_files(files[:1]) != before
    renamed = files[1].rename(files[1].with_name("other"))
    assert fingerprint_files([files[0], renamed]) != before
    renamed.rename(files[1]).write_bytes(b"something else")
    assert fingerprint_files(files) != before


def test_the_first_file_is_copied_last(files, tmp_path, monkeypatch):
    """So that what was interrupted is not taken for a model."""
    real, written = model_files.write_whole, []
    monkeypatch.setattr(
        model_files, "write_whole", lambda path, write: written.append(path.name) or real(path, write)
    )
    copy_files(files, tmp_path / "copy")
    assert written == ["weights", "config.json"]
    assert [(tmp_path / "copy" / path.name).read_bytes() for path in files] == [b"config.json", b"weights"]
