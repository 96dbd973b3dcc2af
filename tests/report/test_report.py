"""Tables and page say what the results say, and the page needs nothing from anywhere."""

import json
import math
import re
from html.parser import HTMLParser

import pytest
from report.cases import realistic, results

from lrn.report import charts, page, tables


def test_rows():
    header, lstm, lrn = tables.rows(results())
    assert header == ["unit", "parameters", "test perplexity", "ms / batch", "time"]
    assert lstm == ["lstm", "1,234", "101.00 ± 1.41", "10.0", "2.00x"]
    assert lrn == ["lrn", "2,234", "102.00 ± 1.41", "5.0", "1.00x"]


def test_paper_figures_only_where_they_belong():
    assert tables.paper(results()) == {}
    ptb = {"source": "ptb", "tokens": {"train": 929_589}}
    own = results(config={"preset": "paper-ptb"}, data=ptb)
    assert tables.paper(own)["lrn"] == "61.26"
    assert tables.rows(own)[0][-1] == "paper"
    assert tables.paper(results(config={"preset": "paper-ptb"}, data={"tokens": {"train": 5}})) == {}
    assert tables.paper(results(config={"preset": "small"}, data=ptb)) == {}


@pytest.mark.parametrize(
    ("task", "data", "expected"),
    [
        ("ner", {"train": {"sentences": 14_041}}, "88.56"),
        ("ner", {"train": {"sentences": 2_000}}, None),
        ("doc", {"classes": ["1", "2"], "train": {"documents": 3_600_000}}, "4.98"),
        ("doc", {"classes": ["1", "2"], "train": {"documents": 560_000}}, "3.98"),
        ("doc", {"classes": ["1", "2"], "train": {"documents": 25_000}}, None),
    ],
)
def test_the_papers_data_is_known_by_its_size(task, data, expected):
    assert tables.paper(results(task=task, config={"preset": "paper"}, data=data)).get("lrn") == expected


def test_markdown_and_latex(tmp_path):
    tables.write(results(), tmp_path)
    assert "| lrn | 2,234 | 102.00 ± 1.41 | 5.0 | 1.00x |" in (tmp_path / "table.md").read_text()
    assert r"lrn & 2,234 & 102.00 $\pm$ 1.41 & 5.0 & 1.00x \\" in (tmp_path / "table.tex").read_text()


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
    assert json.loads(reader.data) == given
    assert all(link.startswith("data:") for link in reader.links)  # nothing from the network


def test_page_shows_text_as_text():
    shown = page.render(results(command="lrn compare lm --data '<script>alert(1)</script>'"))
    assert "<script>alert" not in shown
    assert "&lt;b&gt;&amp;" in shown


def test_page_shows_memory_where_there_is_one():
    memory = {"caption": "of <this>", "svg": '<svg viewBox="0 0 9 9"><text>word</text></svg>'}
    shown = page.render(results(memory=memory))
    before, after = shown.index(">Parameters<"), shown.index(">Settings<")
    assert before < shown.index(">What LRN remembers<") < shown.index(memory["svg"]) < after
    assert "<figcaption>of &lt;this&gt;</figcaption>" in shown
    reader = Reader()
    reader.feed(shown)
    assert reader.open == []
    assert json.loads(reader.data)["memory"] == memory
    assert "What LRN remembers" not in page.render(results())


def test_best_of_each_column():
    assert tables.best(results()) == {
        "parameters": ["lstm"],
        "test perplexity": ["lstm"],
        "ms / batch": ["lrn"],
    }
    assert tables.best(results(lower_is_better=False))["test perplexity"] == ["lrn"]
    assert tables.best(results(("lrn",))) == {}
    assert page.render(results()).count("class='best'") == 3


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_unit_that_diverged_is_left_out_of_the_charts_only(broken):
    given = results()
    given["units"]["lstm"] |= {"mean": broken, "deviation": math.nan, "curves": [[[1, broken]]] * 2}
    shown = page.render(given)
    assert f"<td>{broken:.2f} ± nan</td>" in shown
    assert tables.best(given)["test perplexity"] == ["lrn"]
    assert not re.findall(r'[a-z]="[^"]*\b(nan|inf)', shown)
    given["units"]["lrn"] |= given["units"]["lstm"]
    assert ">Learning<" not in page.render(given)


def test_spread_is_drawn():
    shown = page.render(realistic())
    assert shown.count("<polygon") == 6  # a band a unit
    assert shown.count('class="whisker"') == 6 + 2 * 6
    alone = page.render(realistic(seeds=(1,)))
    assert alone.count("<polygon") == 0
    assert alone.count('class="whisker"') == 6 + 6


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
    assert charts.Axis([105.0, 370.0], 0, 100, log=True).ticks() == [100, 150, 200, 300]
    assert charts.Axis([2.0, 40_000.0], 0, 100, log=True).ticks() == [1, 10, 100, 1000, 10_000]
    assert list(map(charts.number, (0, 1500, 500_000, 1.5e6, 0.25))) == ["0", "1,500", "500K", "1.5M", "0.25"]


def test_names_of_dots_lie_apart():
    dots = {unit: (200.0 + 2 * n, 120.0) for n, unit in enumerate(charts.COLOURS)}
    boxes = list(charts._labels(dots, []).values())
    assert not any(charts._meet(a, b) for n, a in enumerate(boxes) for b in boxes[:n])
