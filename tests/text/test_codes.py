"""Vocabularies that are saved and loaded together."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from lrn.text.codes import Vocabularies
from lrn.text.store import Folder
from lrn.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Codes(Vocabularies):
    words: Vocabulary
    tags: Vocabulary


CODES = Codes(Vocabulary(["Anna", "ran", "é東"]), Vocabulary(["O", "B-PER"]))


@pytest.fixture
def folder(tmp_path):
    CODES.save(tmp_path)
    return tmp_path


def test_they_come_back(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["tags.json", "words.json"]
    found = Codes.load(Folder(folder))
    assert type(found) is Codes
    assert found == CODES
    assert found.words.words == ("Anna", "ran", "é東")


@pytest.mark.parametrize("name", ["words.json", "tags.json"])
def test_one_that_is_missing(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError) as error:
        Codes.load(Folder(folder))
    assert str(error.value) == f"{folder} cannot be used: its {name} is missing"


@pytest.mark.parametrize("name", ["words.json", "tags.json"])
@pytest.mark.parametrize(
    "harm", ["", "{}", "[]", '{"words": ["a", "a"]}', '{"words": [1]}', '{"words": ["a"']
)
def test_one_that_is_damaged(folder, name, harm):
    (folder / name).write_text(harm)
    with pytest.raises(ValueError, match=rf"{name} is no vocabulary"):
        Codes.load(Folder(folder))


def test_a_folder_that_there_is_not():
    with pytest.raises(FileNotFoundError, match=r"/absent cannot be used: its words\.json is missing"):
        Codes.load(Folder(Path("/absent")))
