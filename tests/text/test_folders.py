"""Files under one set of names or another."""

import pytest

from lrn.text.folders import find_files

NAMINGS = [("eng.train", "eng.testa"), ("train.txt", "valid.txt")]
EXPECTED = "expected eng.train, eng.testa or train.txt, valid.txt; help"


def touch(folder, *names):
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("names", NAMINGS)
def test_every_naming(names, tmp_path):
    assert find_files(touch(tmp_path, *reversed(names)), NAMINGS, "help") == [tmp_path / n for n in names]


def test_the_first_of_two_that_are_there(tmp_path):
    found = find_files(touch(tmp_path, *NAMINGS[0], *NAMINGS[1]), NAMINGS, "help")
    assert [path.name for path in found] == ["eng.train", "eng.testa"]


def test_what_is_missing(tmp_path):
    def said(kind=FileNotFoundError, folder=tmp_path):
        with pytest.raises(kind) as error:
            find_files(folder, NAMINGS, "help")
        return str(error.value)

    assert said(folder=tmp_path / "absent") == f"there is no folder {tmp_path / 'absent'}; {EXPECTED}"
    assert said() == f"{tmp_path} lacks eng.train and eng.testa; {EXPECTED}"
    touch(tmp_path, "valid.txt")
    assert said() == f"{tmp_path} lacks train.txt; {EXPECTED}"
    assert said(ValueError, tmp_path / "valid.txt") == (
        f"{tmp_path / 'valid.txt'} is a file, not the folder that holds it; {EXPECTED}"
    )
    (tmp_path / "train.txt").mkdir()
    assert said(ValueError) == f"{tmp_path / 'train.txt'} is not a file"


ANY = [("train.json", "dev.json"), ("+*.json",)]


def test_all_files_of_a_name(tmp_path):
    touch(tmp_path, "b.json", "dev.json", "a.json", "c.txt")
    assert [path.name for path in find_files(tmp_path, ANY, "help")] == ["a.json", "b.json", "dev.json"]
    touch(tmp_path, "train.json")  # all of a naming that has more names is better
    assert [path.name for path in find_files(tmp_path, ANY, "help")] == ["train.json", "dev.json"]


def test_at_least_one_of_them(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        find_files(touch(tmp_path, "c.txt"), [("+*.json",)], "help")
    assert str(error.value) == f"{tmp_path} lacks .json; expected .json; help"
