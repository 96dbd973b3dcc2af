"""The picture of attention in its forms."""

import json
import re

import pytest

from lrn.report import attention
from lrn.report.attention import Picture

WEIGHTS = [[[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.5, 0.5]]]
PICTURE = Picture(["<b>", "$x$"], ["a", "dog & cat", "z" * 40], WEIGHTS, "entailment (0.9) <i>")


def test_heads():
    assert PICTURE.heads == 2
    assert PICTURE.of_head(1) == [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    assert PICTURE.mean() == [[0.75, 0.125, 0.125], [0.0, 0.25, 0.75]]


def test_the_page_has_the_weights_and_no_markup_of_the_words(tmp_path):
    attention.write(PICTURE, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    data = re.search(r'id="data">(.*?)</script>', page)[1]
    assert json.loads(data) == WEIGHTS
    assert "<b>" not in page
    assert "<i>" not in page
    assert "dog &amp; cat" in page
    assert page.count('type="radio"') == 3


def test_the_same_picture_is_the_same_bytes():
    assert attention.svg(PICTURE) == attention.svg(PICTURE)
    assert attention.png(PICTURE).startswith(b"\x89PNG")


def test_one_word_and_one_head():
    assert attention.png(Picture(["a"], ["b"], [[[1.0]]], "x")).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.gif", "a picture of attention ends in .html, .png, .svg"),
        ("no/a.png", "there is no folder"),
        ("there.png", "exists; choose another name, or add --overwrite"),
    ],
)
def test_places_where_it_cannot_be_written(name, said, tmp_path):
    (tmp_path / "there.png").touch()
    with pytest.raises(ValueError, match=said):
        attention.check(tmp_path / name, overwrite=False)
    attention.check(tmp_path / "there.png", overwrite=True)
