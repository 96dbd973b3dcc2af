"""What is kept of files, until they change; whole, or not there."""

import errno
import os
from types import SimpleNamespace

import numpy as np
import pytest

from lrn.text import cache
from lrn.text.cache import cached, created, mapped, writing

KINDS = {"letters": np.uint8, "numbers": np.int64}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LRN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path):
    return filled(tmp_path / "data")


def filled(folder):
    folder.mkdir()
    (folder / "a.txt").write_text("abc")
    return folder


def kept(tmp_path):
    """What lies in the cache."""
    return sorted(path.name for path in (tmp_path / "cache" / "letters").glob("*"))


def everything(tmp_path):
    return [path for path in (tmp_path / "cache" / "letters").iterdir() if path.name not in kept(tmp_path)]


def read(folder, calls=None, *, version=1, meanwhile=lambda: None):
    """The letters of a.txt and of b.txt, if there is one, and their numbers."""

    def build(place):
        if calls is not None:
            calls.append(folder)
        texts = [path.read_bytes() for name in ("a.txt", "b.txt") if (path := folder / name).is_file()]
        with created(place / "letters") as letters, created(place / "numbers") as numbers:
            letters.write(b"".join(texts))
            meanwhile()
            numbers.write(np.frombuffer(b"".join(texts), np.uint8).astype(np.int64).data)

    def load(place):
        arrays = mapped(place, KINDS)
        if len(arrays["letters"]) != len(arrays["numbers"]):
            raise ValueError("they do not fit each other")
        return SimpleNamespace(**arrays)

    return cached("letters", version, folder, ("a.txt", "b.txt"), build=build, load=load)


def test_nothing_is_built_twice(source, tmp_path):
    calls = []
    first = read(source, calls)
    assert first.letters.tobytes() == b"abc"
    assert first.numbers.tolist() == [97, 98, 99]
    assert not first.numbers.flags.writeable
    assert type(first.numbers) is np.ndarray
    again = read(source / ".." / source.name, calls)
    assert again.letters.tobytes() == b"abc"
    assert len(calls) == 1
    assert len(kept(tmp_path)) == 1
    assert everything(tmp_path) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda source: (source / "a.txt").write_text("abcd"),
        lambda source: os.utime(source / "a.txt", ns=(1, 1)),
        lambda source: (source / "b.txt").write_text(""),
    ],
)
def test_a_change_is_noticed(change, source, tmp_path):
    calls = []
    read(source, calls)
    before = kept(tmp_path)
    change(source)
    read(source, calls)
    assert len(calls) == 2
    assert len(kept(tmp_path)) == 1  # what was before is gone
    assert kept(tmp_path) != before


def test_another_version_is_something_else(source, tmp_path):
    calls = []
    read(source, calls)
    read(source, calls, version=2)
    assert len(calls) == 2
    assert len(kept(tmp_path)) == 1


def test_other_folders_stay(source, tmp_path):
    other, calls = filled(tmp_path / "other"), []
    read(source, calls)
    read(other, calls)
    os.utime(source / "a.txt", ns=(1, 1))
    read(source, calls)
    read(other, calls)
    assert calls == [source, other, source]
    assert len(kept(tmp_path)) == 2


def test_a_file_that_changes_while_it_is_read(source, tmp_path):
    with pytest.raises(ValueError, match=f"the files in {source} changed while they were read"):
        read(source, meanwhile=lambda: os.utime(source / "a.txt", ns=(1, 1)))
    assert not [*(tmp_path / "cache" / "letters").iterdir()]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("left", [None, b"", b"x" * 8])
def test_what_is_damaged_is_built_anew(name, left, source, tmp_path):
    calls = []
    read(source, calls)
    (place,) = (tmp_path / "cache" / "letters").iterdir()
    if left is None:
        (place / name).unlink()
    else:
        (place / name).write_bytes(left)
    assert read(source, calls).numbers.tolist() == [97, 98, 99]
    assert len(calls) == 2
    assert [*(tmp_path / "cache" / "letters").iterdir()] == [place]
    read(source, calls)
    assert len(calls) == 2


def test_another_process_was_quicker(source, tmp_path):
    calls, nested = [], []

    def meanwhile():
        if not nested:
            nested.append(None)
            nested[0] = read(source, calls)

    found = read(source, calls, meanwhile=meanwhile)
    assert found.numbers.tolist() == nested[0].numbers.tolist()
    assert len(calls) == 2
    assert len([*(tmp_path / "cache" / "letters").iterdir()]) == 1


def test_what_a_killed_process_left_goes_after_a_day(source, tmp_path):
    read(source)
    (place,) = (tmp_path / "cache" / "letters").iterdir()
    old, young = (place.with_name(f".{place.name}.{end}") for end in ("old", "young"))
    for left in (old, young):
        left.mkdir()
        (left / "letters").touch()
    os.utime(old, (1, 1))
    os.utime(source / "a.txt", ns=(1, 1))
    read(source)
    assert not old.exists()
    assert young.exists()


def test_an_error_while_building_leaves_nothing(source, tmp_path):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(source, meanwhile=fail)
    assert not [*(tmp_path / "cache" / "letters").iterdir()]


SAID = "cannot write to the cache folder .*cache: {}; LRN_CACHE sets another$"


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_is_full_at_the_end(call, source, monkeypatch, tmp_path):
    monkeypatch.setattr(os, call, full)
    with pytest.raises(ValueError, match=SAID.format(os.strerror(errno.ENOSPC))):
        read(source)
    assert not [*(tmp_path / "cache" / "letters").iterdir()]


def test_a_file_that_cannot_be_made(tmp_path):
    with (
        pytest.raises(ValueError, match=SAID.format(os.strerror(errno.ENOENT))),
        created(tmp_path / "x" / "y"),
    ):
        pass


def test_only_the_system_s_errors_are_the_cache_s():
    with pytest.raises(KeyError), writing():
        raise KeyError


def test_a_cache_that_cannot_be_written(source, monkeypatch, tmp_path):
    (tmp_path / "cache").touch()
    with pytest.raises(ValueError, match=SAID.format(os.strerror(errno.ENOTDIR))):
        read(source)


def test_where_it_is(source, monkeypatch, tmp_path):
    monkeypatch.setenv("LRN_CACHE", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "lrn"
    read(source)
    assert [*(tmp_path / "xdg" / "lrn" / "letters").iterdir()]
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == tmp_path / "home" / ".cache" / "lrn"
    monkeypatch.setenv("LRN_CACHE", "~/mine")
    assert cache.cache_folder() == tmp_path / "home" / "mine"
