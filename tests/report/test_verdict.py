"""What came out is said in one sentence, for LRN and against it in the same words."""

import math
from dataclasses import replace

import pytest
from report.cases import results, with_unit

from lrn.report.results import UnitResult
from lrn.report.verdict import pooled_deviation, sentence


def of(scores, times, **more):
    """A comparison of units with these scores and times of a step."""
    given = results(tuple(scores), seeds=tuple(range(len(next(iter(scores.values()))))), **more)
    for unit in scores:
        time = replace(given.units[unit].time, median=times[unit])
        given = with_unit(given, unit, scores=tuple(scores[unit]), time=time)
    return given


TIMES = {"lstm": 0.02, "gru": 0.008, "lrn": 0.01}


def test_against_lrn():
    found = of({"lstm": (80.0, 82.0), "gru": (70.0, 72.0), "lrn": (75.0, 77.0)}, TIMES)
    assert sentence(found) == (
        "gru has the best test perplexity, 71.00, and lrn has 76.00, worse by 5.00: more than the seeds' "
        "spread of 1.41; compared with lrn, a training step takes 2.00 times as long with lstm "
        "(lrn is faster) and 0.80 times as long with gru (lrn is slower)."
    )


def test_for_lrn():
    found = of({"lstm": (80.0, 82.0), "gru": (79.0, 83.5), "lrn": (75.0, 77.0)}, TIMES)
    assert sentence(found).startswith(
        "lrn has the best test perplexity, 76.00, and the next is lstm with 81.00, worse by 5.00: more than "
        "the seeds' spread of 1.41; "
    )


def test_more_may_be_better():
    found = of({"lstm": (80.0,), "gru": (90.0,), "lrn": (85.0,)}, TIMES, lower_is_better=False)
    assert sentence(found).startswith(
        "gru has the best test perplexity, 90.00, and lrn has 85.00, worse by 5.00"
    )


def test_one_seed_cannot_tell():
    found = of({"gru": (70.0,), "lrn": (75.0,)}, TIMES)
    assert "worse by 5.00: one seed cannot tell whether that is more than chance; " in sentence(found)


@pytest.mark.parametrize(("lrn", "said"), [((71.5, 73.5), ": more than"), ((71.0, 73.0), ": not more than")])
def test_the_spread_decides(lrn, said):
    """Here it is the square root of two."""
    assert f"{said} the seeds' spread of 1.41;" in sentence(of({"gru": (70.0, 72.0), "lrn": lrn}, TIMES))


def test_the_same():
    found = of({"gru": (70.0, 72.0), "lrn": (70.0, 72.0)}, {"gru": 0.01, "lrn": 0.01})
    assert sentence(found) == (
        "gru has the best test perplexity, 71.00, and lrn has 71.00, the same; compared with lrn, a training "
        "step takes 1.00 times as long with gru (the same)."
    )


def test_without_lrn_the_first_unit_is_told_of():
    found = of({"lstm": (80.0,), "gru": (70.0,)}, TIMES)
    assert sentence(found).startswith("gru has the best test perplexity, 70.00, and lstm has 80.00")
    assert sentence(found).endswith(
        "compared with lstm, a training step takes 0.40 times as long with gru (lstm is slower)."
    )


def test_a_unit_alone():
    assert sentence(results(("lrn",), seeds=(1,))) == (
        "lrn has a test perplexity of 100.00, and there is no other unit to compare it with."
    )


def test_what_came_to_nothing():
    nothing = (math.nan,)
    found = of({"gru": (70.0,), "lrn": nothing}, TIMES)
    assert sentence(found).startswith(
        "gru has the best test perplexity, 70.00, and lrn came to no finite one; "
    )
    found = of({"gru": (math.inf,), "lrn": (70.0,)}, TIMES)
    assert "and no other unit came to a finite one" in sentence(found)
    assert sentence(of({"gru": nothing, "lrn": nothing}, TIMES)).startswith(
        "No unit came to a finite test perpl"
    )


def test_other_units_are_told_of_where_there_is_neither_lstm_nor_gru():
    found = of({"atr": (70.0,), "lrn": (75.0,)}, TIMES | {"atr": 0.011})
    assert "1.10 times as long with atr (lrn is faster)." in sentence(found)


def test_pooled_deviation():
    time = results().units["lrn"].time
    several, other = UnitResult(1, (1.0, 3.0), (), time), UnitResult(1, (0.0, 0.0, 3.0), (), time)
    assert pooled_deviation(several, several) == pytest.approx(2**0.5)
    assert pooled_deviation(several, other) == pytest.approx(((2 + 2 * 3) / 3) ** 0.5)
    assert pooled_deviation(several, UnitResult(1, (1.0,), (), time)) is None
