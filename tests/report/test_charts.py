"""Charts stay inside their frame, with round numbers and names that lie apart."""

import re

from lrn.names import UNITS
from lrn.report import charts


def test_charts_stay_inside_their_frame():
    curves = {"lstm": [(1.0, 5e6), (2.0, 4e6)], "lrn": [(1.0, 1e-3), (2.0, 1e-3)]}
    for drawing in (
        charts.lines(curves, "epoch", "x"),
        charts.bars({"lstm": 3.0, "lrn": 0.0001}, "x", {"lstm": "3", "lrn": "0"}),
        charts.scatter({"lstm": (1.0, 1.0), "lrn": (1.0, 1.0)}, "a", "b"),
    ):
        for axis, most in (("x", charts.WIDTH), ("y", charts.HEIGHT)):
            places = [float(v) for v in re.findall(rf'<(?:circle|rect)[^>]* c?{axis}="([-0-9.]+)"', drawing)]
            assert places
            assert all(0 <= place <= most for place in places)


def test_ticks_are_round():
    axis = charts.Axis([3.1, 97.0], 0, 100)
    assert axis.ticks() == [0, 20, 40, 60, 80, 100]
    assert charts.Axis([105.0, 370.0], 0, 100, log=True).ticks() == [100, 150, 200, 300]
    assert charts.Axis([2.0, 40_000.0], 0, 100, log=True).ticks() == [1, 10, 100, 1000, 10_000]
    assert list(map(charts.number, (0, 1500, 500_000, 1.5e6, 0.25))) == ["0", "1,500", "500K", "1.5M", "0.25"]


def test_names_of_dots_lie_apart():
    dots = {unit: (200.0 + 2 * n, 120.0) for n, unit in enumerate(UNITS)}
    boxes = list(charts._labels(dots, []).values())
    assert not any(charts._meet(a, b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_nothing_finite_is_nothing_to_draw():
    assert charts.lines({"lrn": [(1.0, float("nan"))]}, "epoch", "x") == ""
    assert charts.scatter({"lrn": (1.0, float("inf"))}, "a", "b") == ""
