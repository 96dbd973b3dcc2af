"""The page of answers: every word once and unharmed, the answer marked, the numbers that its script reads."""

import json
import re
from html.parser import HTMLParser

from lrn.report.answers import Picture, Shown, page, write

TEXT = "Anna <sleeps> & dreams.\n\nNot  here."
WORDS = ["Anna", "<sleeps>", "&", "dreams", ".", "Not", "here", "."]


def places():
    found, done = [], 0
    for word in WORDS:
        start = TEXT.index(word, done)
        done = start + len(word)
        found.append((start, done))
    return found


def picture():
    looked = [[0.9, 0.1]] * 3 + [[0.25, 0.75]] * 5
    at = TEXT.index("dreams")
    return Picture(
        TEXT,
        places(),
        [
            Shown(["Who", "</script><b>?"], [(0, 4, 0.7), (at, at + 8, 0.1)], looked),
            Shown(["What", "?"], [(at, at + 7, 0.5)], looked),
        ],
    )


class Reader(HTMLParser):
    """The text inside an element, the open elements, and whatever does not close."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.answers, self.sections = [], "", [], 0

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag not in ("meta", "link"):
            self.open.append((tag, given))
        self.sections += tag == "section"

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if any(given.get("id") == "text" for _, given in self.open):
            self.text += data
            if self.open[-1][1].get("class") == "answer":
                self.answers.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader


def test_the_text_is_unharmed_and_the_answer_marked():
    reader = read(page(picture()))
    assert reader.text == TEXT
    assert reader.answers == ["Anna"]
    assert reader.sections == 2


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])


def test_what_the_script_reads():
    html = page(picture())
    first, second = data_of(html)
    assert first["answer"] == [0, 0]
    assert second["answer"] == [3, 4]
    assert (first["word"], second["word"]) == (0, 1)  # what the answer looked at most
    assert len(first["looked"]) == len(WORDS) == html.count("<span>", 0, html.index("<h2>")) + 1
    assert all(len(row) == 2 for row in first["looked"])


def test_nothing_in_it_comes_from_elsewhere():
    html = page(picture())
    assert "http" not in html
    assert "</script><b>" not in html
    assert html.count("<script") == 2


def test_it_is_written(tmp_path):
    write(picture(), tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page(picture())
