"""The built-in text is there, long enough, and always in the same order."""

from lrn.text.builtin import python_topics


def test_topics():
    text = python_topics()
    assert len(text.split()) > 40_000
    assert text == python_topics()
