"""The memory's figure in all its forms."""

import xml.etree.ElementTree as ET

import pytest

from lrn.report.memory import FORMS, Picture, inline, page, png, svg, table


def picture(steps, words=None, top=5):
    curves = [[0.9**k * 0.95 ** (t - k) if t >= k else 0.0 for t in range(steps)] for k in range(steps)]
    words = words or [f"word{k}" for k in range(steps)]
    return Picture(words, curves, [13.0] * (steps - 1) + [float("inf")], "predicted: good (0.9)", top)


@pytest.mark.parametrize("steps", [1, 2, 10, 60, 120])
def test_a_curve_a_word_whatever_the_length(steps):
    drawn = ET.fromstring(svg(picture(steps)))
    found = {e.get("id") for e in drawn.iter() if (e.get("id") or "").startswith("curve-")}
    assert found == {f"curve-{k}" for k in range(steps)}
    assert png(picture(steps)).startswith(b"\x89PNG")


def test_the_best_remembered_are_named():
    text = inline(picture(10, top=3))
    for k in (0, 1, 2):
        assert f"word{k} ({k + 1})" in text
    assert "word5 (6)" not in text


def test_words_that_mean_something_elsewhere():
    words = ["<b>", "&amp;", "$x^2$", '"', "w" * 40]
    text = page(picture(5, words)).decode()
    assert "<b>" not in text.replace("<body>", "")
    assert "&lt;b&gt;" in text
    assert table(picture(5, words)).decode().splitlines()[1].startswith("<b>,1,1,")


def test_the_same_picture_is_the_same_file():
    assert svg(picture(8)) == svg(picture(8))
    assert set(FORMS) == {".png", ".svg", ".html", ".csv", ".json"}


def test_nothing_is_left_of_anything():
    flat = Picture(["a", "b"], [[0.0, 0.0], [0.0, 0.0]], [1.0, float("inf")], "t")
    assert page(flat)
    assert png(flat)
