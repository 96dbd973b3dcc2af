"""A unit has one colour of its own in every picture, and all eyes can tell the colours apart."""

import itertools
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from bench.cases import bench
from report.cases import results

import lrn
from lrn.bench import show
from lrn.bench.peers import FLOOR, LOOP, PEERS, SRU_PACKAGE
from lrn.report import charts, gradients, page, palette

PAPERS = re.findall(r"--paper: (#\w+)", page.STYLE)  # light and dark

# Linear RGB as those see it who lack a kind of cones (Machado, Oliveira and Fernandes 2009, table 1)
EYES = {
    "all cones": np.eye(3),
    "no long": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour):
    """Linear RGB of ``#rgb`` or ``#rrggbb``."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = np.array([int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIE L*a*b* of linear RGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ np.clip(light, 0, 1) / to_xyz.sum(1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(colour, paper):
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (colour, paper))
    return high / low


def test_every_unit_has_a_colour_of_its_own():
    assert set(palette.COLOURS) == set(lrn.UNITS)
    inks = [*palette.COLOURS.values(), palette.OTHER]
    assert len(set(inks)) == len(inks)


@pytest.mark.parametrize("eyes", EYES)
def test_all_eyes_tell_the_colours_apart(eyes):
    """A distance of 2.3 is what is just noticed side by side."""
    seen = {
        ink: lab(np.array(EYES[eyes]) @ linear(ink)) for ink in [*palette.COLOURS.values(), palette.OTHER]
    }
    near = {
        pair: round(float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])), 1)
        for pair in itertools.combinations(seen, 2)
    }
    assert {pair: distance for pair, distance in near.items() if distance < 15} == {}


@pytest.mark.parametrize("paper", PAPERS)
def test_the_colours_are_seen_on_light_and_on_dark(paper):
    assert len(PAPERS) == 2
    faint = {ink: contrast(ink, paper) for ink in [*palette.COLOURS.values(), palette.OTHER]}
    assert {ink: found for ink, found in faint.items() if found < 2.2} == {}


def test_peers_have_the_colour_of_the_unit_that_they_are():
    assert palette.colour("nn.LSTM") == palette.colour("lstm")
    assert palette.colour("nn.GRU") == palette.colour("gru")
    assert palette.colour(SRU_PACKAGE) == palette.colour("sru")
    assert palette.colour(LOOP) == palette.colour("lrn")
    assert palette.colour(FLOOR) == palette.colour("nn.RNN") == palette.colour("") == palette.OTHER


def test_the_charts_of_the_page():
    names = tuple(lrn.UNITS)
    row = results().units["lrn"]
    shown = page.render(results(units=dict.fromkeys(names, row)))
    for unit in names:
        assert f'fill="{palette.colour(unit)}"><title>{unit}: ' in shown
    for drawing in (
        charts.lines({unit: [(1.0, 2.0), (2.0, 3.0)] for unit in names}, "epoch", "x"),
        charts.scatter(dict.fromkeys(names, (1.0, 2.0)), "a", "b"),
    ):
        assert set(re.findall(r'="(#\w{6})"', drawing)) == set(palette.COLOURS.values())


def test_the_benchmarks_picture():
    """By unit; what is not the unit itself is hatched, so that it can be told from it."""
    axes = pytest.importorskip("matplotlib.figure").Figure().add_subplot()
    show._bars(axes, bench().training)
    found = {bars.get_label(): bars.patches[0] for bars in axes.containers}
    assert list(found) == list(PEERS)
    for name, patch in found.items():
        assert patch.get_facecolor()[:3] == pytest.approx(colour_of(name))
    assert {name for name, patch in found.items() if patch.get_hatch()} == {LOOP, SRU_PACKAGE}


def colour_of(name):
    return tuple(int(palette.colour(name)[n : n + 2], 16) / 255 for n in (1, 3, 5))


def test_the_picture_of_gradients(tmp_path):
    pytest.importorskip("matplotlib")
    names = ["nn.RNN", *lrn.UNITS]
    gradients.draw({name: [1.0, 0.5] for name in names}, tmp_path / "g.svg", "title")
    elements = list(ET.parse(tmp_path / "g.svg").iter())
    drawn = [element.get("style") or "" for element in elements]
    written = " ".join(element.text.strip() for element in elements if element.text and element.text.strip())
    assert gradients.MEANING in written
    for name in names:
        assert any(f"stroke: {palette.colour(name)}" in style for style in drawn)
    assert palette.dashes("nn.RNN") == ":"
    assert palette.dashes("lrn") == "-"
    assert palette.dashes("nn.LSTM") == palette.dashes("gru") == "--"
