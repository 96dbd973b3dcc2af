"""The parts that a page shows an answer in."""

import json

import pytest

from lrn.report.views import Attention, Bar, Bars, Mark, Marks, Shade, Shades, above_even, shares_of, to_json


def test_bars_of_probabilities():
    bars = Bars.of("label", {"good": 0.98765, "bad": 0.01235}).bars
    assert bars == [Bar("good", 0.9877, "98.8 %"), Bar("bad", 0.0123, "1.2 %")]


def test_heads_come_first():
    """Weights come by row, ``[row][head][column]``, and are shown by head."""
    by_row = [[[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]], [[0.3, 0.3, 0.4], [0.0, 1 / 3, 2 / 3]]]
    view = Attention.of("attention", ("a", "b"), ("c", "d", "e"), by_row, "note")
    assert view.weights == [[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], [[1, 0, 0], [0, 0.3333, 0.6667]]]
    assert (view.rows, view.columns, view.note) == (["a", "b"], ["c", "d", "e"], "note")


def test_shares():
    assert shares_of([]) == []
    assert shares_of([0.0, 0.0]) == [0.0, 0.0]
    assert shares_of([2.0, 8.0]) == [0.25, 1.0]


def test_above_an_even_share():
    """Nothing at or below it; all the more above."""
    assert above_even([0.25] * 4) == [0.0] * 4
    assert above_even([1.0]) == [1.0]
    assert above_even([]) == []
    found = above_even([0.9, 0.1, 0.0])
    assert found[0] == pytest.approx(0.904, abs=1e-3)
    assert found[1:] == [0, 0]


@pytest.mark.parametrize(
    ("view", "kind"),
    [
        (Bars.of("t", {"a": 0.5}), "bars"),
        (Shades("t", [Shade("<b>", 0.5, "tip")]), "shades"),
        (Marks("t", [Mark("a", "PER", 2)], large=True), "marks"),
        (Attention.of("t", ["a"], ["b"], [[[1.0]]]), "attention"),
    ],
)
def test_as_json(view, kind):
    found = to_json(view)
    assert found["kind"] == kind
    assert found["title"] == "t"
    assert json.loads(json.dumps(found)) == found
