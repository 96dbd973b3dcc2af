"""Texts cut by spaCy's rules: every token stands where it is said to, and nothing but blanks is lost."""

import sys

import pytest

from lrn.text import english
from lrn.text.english import english_tokens

TEXTS = [
    "Dr. O'Neill didn't pay $9.50 (or 8€) in the U.S.A., did she?",
    "  two  blanks\tand\na line ",
    "naïve café – «quoted» 東京 🙂",
    "word",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_token_stands_where_it_is_said_to(text):
    done = 0
    for word, start in english_tokens(text):
        assert text[start : start + len(word)] == word != ""
        assert not text[done:start].strip()
        done = start + len(word)
    assert not text[done:].strip()


def test_known_cuts():
    assert [word for word, _ in english_tokens("It's Anna's, isn't it?")] == (
        ["It", "'s", "Anna", "'s", ",", "is", "n't", "it", "?"]
    )
    assert english_tokens("") == []


def test_without_spacy_it_says_what_to_install(monkeypatch):
    english._tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy.lang.en", None)
    try:
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'lrn-torch\[rc\]'") as error:
            english_tokens("a")
        assert error.value.name == "spacy"
    finally:
        english._tokenizer.cache_clear()
