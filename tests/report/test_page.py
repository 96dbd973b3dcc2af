"""The page says what the results say, and needs nothing from anywhere."""

import html
import json
import math
import re
from html.parser import HTMLParser

import pytest
from report.cases import realistic, results, with_unit

from lrn.report import page, tables, verdict
from lrn.report.results import Drawing, Trials


class Reader(HTMLParser):
    """Sees that what is opened is closed, and collects the table's cells and the data."""

    EMPTY = ("meta", "link", "path", "circle", "rect", "polyline", "polygon")

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.data, self.links = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)
        if self.open and self.open[-1] == "script":
            self.data += data


@pytest.mark.parametrize("units", [("lrn",), ("lstm", "lrn"), ("lstm", "gru", "atr", "sru", "lrn", "olrn")])
def test_page(units):
    given = results(units, seeds=(1,))
    reader = Reader()
    reader.feed(page.render(given))
    assert reader.open == []
    assert reader.cells == [cell for row in tables.rows(given) for cell in row]
    assert json.loads(reader.data) == given.to_json()
    assert all(link.startswith("data:") for link in reader.links)  # nothing from the network


def test_page_shows_text_as_text():
    shown = page.render(results(command="lrn compare lm --data '<script>alert(1)</script>'"))
    assert "<script>alert" not in shown
    assert "&lt;b&gt;&amp;" in shown


def test_page_shows_memory_where_there_is_one():
    memory = Drawing("of <this>", '<svg viewBox="0 0 9 9"><text>word</text></svg>')
    shown = page.render(results(memory=memory))
    before, after = shown.index(">Parameters<"), shown.index(">Settings<")
    assert before < shown.index(">What LRN remembers<") < shown.index(memory.svg) < after
    assert "<figcaption>of &lt;this&gt;</figcaption>" in shown
    reader = Reader()
    reader.feed(shown)
    assert reader.open == []
    assert json.loads(reader.data)["memory"] == {"caption": memory.caption, "svg": memory.svg}
    assert "What LRN remembers" not in page.render(results())


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_unit_that_diverged_is_left_out_of_the_charts_only(broken):
    nothing = {"scores": (broken, broken), "curves": (((1, broken),),) * 2}
    given = with_unit(results(), "lstm", **nothing)
    shown = page.render(given)
    assert f"<td>{broken:.2f}</td>" in shown
    assert not re.findall(r'[a-z]="[^"]*\b(nan|inf)', shown)
    assert ">Learning<" not in page.render(with_unit(given, "lrn", **nothing))


def test_the_best_are_marked():
    assert page.render(results()).count("class='best'") == 3


def test_the_page_says_what_came_out():
    given = realistic()
    shown = page.render(given)
    assert shown.count(f"<p class='verdict'>{html.escape(verdict.sentence(given))}</p>") == 1
    assert html.escape(verdict.RULE) in shown
    assert html.escape(verdict.RULE) not in page.render(realistic(seeds=(1,)))  # which has no spread
    assert shown.count("time relative to lrn, less is better") >= 2  # the column and the chart


def test_trials_have_a_table():
    trials = Trials("valid_loss", 1, (0.1, 0.2), {"lrn": (3.0, 2.0)}, {"lrn": 0.2})
    given = results(("lrn",), trials=trials)
    shown = page.render(given)
    assert "<tr><td>lrn</td><td>3.000</td><td class='best'>2.000†</td></tr>" in shown
    assert html.escape(tables.about_trials(trials)) in shown
    reader = Reader()
    reader.feed(shown)
    assert reader.open == []
    assert "Learning rates" not in page.render(results())


def test_spread_is_drawn():
    shown = page.render(realistic())
    assert shown.count("<polygon") == 6  # a band a unit
    assert shown.count('class="whisker"') == 6 + 2 * 6
    alone = page.render(realistic(seeds=(1,)))
    assert alone.count("<polygon") == 0
    assert alone.count('class="whisker"') == 6 + 6
