"""Tables and page say what the results say, and the page needs nothing from anywhere."""

import json
import re
from html.parser import HTMLParser

import pytest
from report.cases import results

from lrn.report import charts, page, tables


def test_rows():
    header, lstm, lrn = tables.rows(results())
    assert header == ["unit", "parameters", "test perplexity", "ms / batch", "time"]
    assert lstm == ["lstm", "1,234", "101.00 ± 1.41", "10.0", "2.00x"]
    assert lrn == ["lrn", "2,234", "102.00 ± 1.41", "5.0", "1.00x"]


def test_paper_figures_only_where_they_belong():
    assert tables.paper(results()) == {}
    own = results(config={"preset": "paper-ptb"}, data={"source": "ptb"})
    assert tables.paper(own)["lrn"] == "61.26"
    assert tables.rows(own)[0][-1] == "paper"
    assert tables.paper(results(config={"preset": "paper-ptb"})) == {}  # on the built-in text


def test_markdown_and_latex(tmp_path):
    tables.write(results(), tmp_path)
    assert "| lrn | 2,234 | 102.00 ± 1.41 | 5.0 | 1.00x |" in (tmp_path / "table.md").read_text()
    assert r"lrn & 2,234 & 102.00 $\pm$ 1.41 & 5.0 & 1.00x \\" in (tmp_path / "table.tex").read_text()


class Reader(HTMLParser):
    """Sees that what is opened is closed, and collects the table's cells and the data."""

    EMPTY = ("meta", "link", "path", "circle", "rect", "polyline")

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
    assert json.loads(reader.data) == given
    assert all(link.startswith("data:") for link in reader.links)  # nothing from the network


def test_page_shows_text_as_text():
    shown = page.render(results(command="lrn compare lm --data '<script>alert(1)</script>'"))
    assert "<script>alert" not in shown
    assert "&lt;b&gt;&amp;" in shown


def test_charts_stay_inside_their_frame():
    curves = {"lstm": [(1.0, 5e6), (2.0, 4e6)], "lrn": [(1.0, 1e-3), (2.0, 1e-3)]}
    for drawing in (
        charts.lines(curves, "epoch", "x"),
        charts.bars({"lstm": 3.0, "lrn": 0.0001}, "x", {"lstm": "3", "lrn": "0"}),
        charts.scatter({"lstm": (1.0, 1.0), "lrn": (1.0, 1.0)}, "a", "b"),
    ):
        for axis, most in (("x", charts.WIDTH), ("y", charts.HEIGHT)):
            places = [float(v) for v in re.findall(rf'<(?:circle|rect)[^>]* c?{axis}="([-0-9.]+)"', drawing)]
            assert all(0 <= place <= most for place in places)


def test_ticks_are_round():
    axis = charts.Axis([3.1, 97.0], 0, 100)
    assert axis.ticks() == [0, 20, 40, 60, 80, 100]
