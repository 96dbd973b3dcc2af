"""The page in a real browser: drawn, silent, asking for nothing; on screens, in the dark, on paper."""

import json
import re
import zlib

import pytest
from report import browser
from report.browser import Browser
from report.cases import MEMORY, realistic

from lrn.report import page, tables

pytestmark = pytest.mark.skipif(
    not (browser.PROGRAM and browser.DRIVER), reason="needs Chromium and its chromedriver"
)
LAPTOP, PHONE = (1280, 800), (390, 844)
SIZES = """[...document.querySelectorAll("figure svg")].map((e) => e.getBoundingClientRect())
    .map((box) => [box.width, box.height])"""
TEXTS = """[...document.querySelectorAll(".charts svg")].map((e) => [e, ...e.querySelectorAll("text")]
    .map((part) => part.getBoundingClientRect()).map((b) => [b.left, b.top, b.right, b.bottom]))"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(params=["plain", "with memory"])
def results(request):
    return realistic() if request.param == "plain" else realistic(memory=MEMORY)


@pytest.fixture
def shown(opened, results, tmp_path):
    """The browser with the page on a laptop's screen."""
    path = tmp_path / "report.html"
    page.write(results, path)
    opened.screen(*LAPTOP)
    opened.requests()  # forget those of the tests before
    opened.log("browser")
    opened.open(path)
    return opened


def test_it_is_drawn(shown, results):
    sizes = shown.ask(SIZES)
    assert len(sizes) == (5 if results.memory else 4)
    assert all(width > 300 and height > 150 for width, height in sizes)
    assert shown.ask("document.title") == f"lrn compare: {results.title}"


def test_its_numbers_are_those_of_the_results(shown, results):
    rows = shown.ask('[...document.querySelectorAll("tr")].map((r) => [...r.cells].map((c) => c.innerText))')
    assert rows == tables.rows(results)
    assert json.loads(shown.ask('document.getElementById("results").textContent')) == results.to_json()
    tips = shown.ask('[...document.querySelectorAll("figure title")].map((t) => t.textContent)')
    for unit, row in results.units.items():
        median, one = row.time.median * 1e3, results.units["lrn"].time.median
        ratio, low, high = (time / one for time in (row.time.median, row.time.low, row.time.high))
        assert f"{unit}: {row.parameters / 1e6:.2f}M parameters" in tips
        assert f"{unit}: {ratio:.2f}x {tables.heading(results)}, {low:.4g} to {high:.4g}" in tips
        assert f"{unit}: {median:.4g} ms / batch, {row.mean:.2f} test perplexity" in tips
        last = sum(curve[-1][1] for curve in row.curves) / len(row.curves)
        assert f"{unit}, epoch 10: {last:.2f}" in tips


def test_it_says_and_asks_nothing(shown):
    assert shown.log("browser") == []
    own = shown.ask("location.href")
    assert own.startswith("file://")
    assert {address for address in shown.requests() if not address.startswith("data:")} == {own}


def test_bars_are_as_long_as_their_numbers(shown, results):
    lengths = shown.ask(
        '[...document.querySelectorAll(".charts figure:nth-child(2) rect")]'
        ".map((bar) => bar.getBoundingClientRect().height)"
    )
    times = [row.time.median for row in results.units.values()]
    assert [length / lengths[0] for length in lengths] == pytest.approx(
        [time / times[0] for time in times], abs=0.01
    )


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_labels_are_whole_and_apart(shown, size):
    shown.screen(*size, phone=size == PHONE)
    for frame, *texts in shown.ask(TEXTS):
        for box in texts:
            assert box[0] >= frame[0] - 1
            assert box[2] <= frame[2] + 1
        for place, one in enumerate(texts):
            for other in texts[:place]:
                width = min(one[2], other[2]) - max(one[0], other[0])
                height = min(one[3], other[3]) - max(one[1], other[1])
                # boxes of lines are higher than letters
                assert width <= 0 or height <= 0.35 * (one[3] - one[1])


def test_a_phone_scrolls_up_and_down_only(shown):
    shown.screen(*PHONE, phone=True)
    assert shown.ask("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    lowest = 'Math.min(...[...document.querySelectorAll(".charts text")].map((t) => '
    assert shown.ask(f"{lowest}t.getBoundingClientRect().height))") > 11  # the line: letters of 10


def test_the_dark_is_dark(shown):
    light = _brightness(shown)
    shown.screen(*LAPTOP, dark=True)
    dark = _brightness(shown)
    assert light["body"] > 250
    assert light["ink"] < 50
    assert light["text"] < 50
    assert dark["body"] < 40
    assert dark["ink"] > 200
    assert dark["text"] > 200


def _brightness(shown):
    """Of the paper, of the writing, and of that in the charts: 0 to 255."""
    style = 'getComputedStyle(document.querySelector("{}")).{}'
    colours = {
        "body": shown.ask(style.format("body", "backgroundColor")),
        "ink": shown.ask(style.format("h1", "color")),
        "text": shown.ask(style.format("svg text", "fill")),
    }
    return {name: sum(map(int, re.findall(r"\d+", found)[:3])) / 3 for name, found in colours.items()}


@pytest.mark.parametrize("dark", [False, True])
def test_it_prints_on_two_pages(shown, dark):
    shown.screen(*LAPTOP, dark=dark)
    printed = shown.printed()
    assert printed.startswith(b"%PDF")
    assert 1 <= _pages(printed) <= 2


def _pages(pdf):
    """Counted also where the file keeps its objects compressed."""
    parts = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return sum(len(re.findall(rb"/Type\s*/Page\b(?!s)", part)) for part in parts)
