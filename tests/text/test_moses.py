"""Words as Moses has them, and back to text."""

import pytest

from lrn.text.moses import Moses

pytest.importorskip("sacremoses")

TEXTS = [
    ("en", "The bank's open, isn't it?", ["The", "bank", "'s", "open", ",", "isn", "'t", "it", "?"]),
    (
        "de",
        "Das kostet 1.234,50 Dollar (etwa).",
        ["Das", "kostet", "1.234,50", "Dollar", "(", "etwa", ")", "."],
    ),
    ("en", "a < b & c", ["a", "<", "b", "&", "c"]),  # nothing is written as &lt;
]


@pytest.mark.parametrize(("language", "text", "words"), TEXTS)
def test_there_and_back(language, text, words):
    moses = Moses(language)
    assert moses.words(text) == words
    assert moses.text(words) == text


def test_what_was_written_otherwise():
    """By Moses itself, and in the data of Stanford."""
    assert Moses("en").text(["a", "&amp;", "b"]) == "a &amp; b"
    assert Moses("en").text(["a", "&amp;", "b"], escaped=True) == "a & b"
    assert Moses("en").text("a well ##AT##-##AT## known man".split()) == "a well-known man"


@pytest.mark.parametrize("text", ["", "   ", "\u3000\t"])
def test_nothing(text):
    assert Moses("en").words(text) == []
    assert Moses("en").text([]) == ""


def test_languages_by_three_letters_and_unknown_ones():
    assert Moses("deu").language == "de"
    assert Moses("xx").words("Hm, ja.") == ["Hm", ",", "ja", "."]
