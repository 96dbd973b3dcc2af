"""Pairs of files by their names."""

import subprocess
import sys

import pytest

from lrn.tasks.mt.files import find_parts, need


def touch(folder, *names):
    for name in names:
        (folder / name).touch()
    return folder


def named(folder, source="en", target="de"):
    return {
        name: tuple(path.name for path in pair) for name, pair in find_parts(folder, source, target).items()
    }


def test_the_usual_names(tmp_path):
    touch(tmp_path, "train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de")
    assert named(tmp_path) == {part: (f"{part}.en", f"{part}.de") for part in ("train", "valid", "test")}


@pytest.mark.parametrize("name", ["valid", "val", "dev", "validation"])
def test_names_of_the_validation_part(name, tmp_path):
    assert named(touch(tmp_path, f"{name}.en", f"{name}.de"))["valid"] == (f"{name}.en", f"{name}.de")


def test_further_parts(tmp_path):
    """All by their names; the first serves as the test part."""
    touch(tmp_path, *(f"test_{year}_flickr.{end}" for year in (2017, 2016) for end in ("en", "de")))
    assert named(tmp_path) == {
        "test_2016_flickr": ("test_2016_flickr.en", "test_2016_flickr.de"),
        "test_2017_flickr": ("test_2017_flickr.en", "test_2017_flickr.de"),
        "test": ("test_2016_flickr.en", "test_2016_flickr.de"),
    }


def test_names_with_more_in_them_and_three_letters(tmp_path):
    touch(tmp_path, "train.10k.en", "train.10k.de", "newstest2013.eng", "newstest2013.deu")
    found = named(tmp_path)
    assert found["train"] == ("train.10k.en", "train.10k.de")
    assert found["test"] == found["newstest2013"] == ("newstest2013.eng", "newstest2013.deu")


def test_the_other_way_and_other_languages(tmp_path):
    touch(tmp_path, "train.en", "train.de", "train.fr", "train.xx-Latn")
    assert named(tmp_path, "de", "en")["train"] == ("train.de", "train.en")
    assert named(tmp_path, "fr", "xx-Latn")["train"] == ("train.fr", "train.xx-Latn")
    assert named(tmp_path, "en", "it") == {}


def test_half_a_pair_is_none(tmp_path):
    touch(tmp_path, "train.en", "test.de")
    (tmp_path / "train.de").mkdir()
    assert named(tmp_path) == {}


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*/none"):
        find_parts(tmp_path / "none", "en", "de")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file, not the folder that holds it"):
        find_parts(tmp_path / "file", "en", "de")


def test_what_is_missing(tmp_path):
    parts = find_parts(touch(tmp_path, "train.en", "train.de", "more.en", "more.de"), "en", "de")
    need(parts, tmp_path, "en", "de", ["train"])
    said = (
        r"lacks valid.en and valid.de and test.en and test.de; expected pairs of files like train.en and "
        r"train.de; other pairs there: more; the languages are --source en and --target de$"
    )
    with pytest.raises(FileNotFoundError, match=said):
        need(parts, tmp_path, "en", "de", ["train", "valid", "test"])
    with pytest.raises(FileNotFoundError, match=r"; do without$"):
        need({"train", "valid"}, tmp_path, "en", "de", ["train", "valid", "test"], "; do without")


def test_it_needs_no_torch():
    code = "import lrn.tasks.mt.config, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
