"""results.json carries everything, and a file that is something else is told apart."""

import json
import math
from dataclasses import replace

import pytest
from report.cases import MEMORY, realistic, results

from lrn.report.results import Comparison, Matched, Timing, Trials, UnitResult

TRIALS = Trials(
    "valid_loss", 1, (0.1, 0.2), {"lrn": (3.0, None), "lstm": (2.0, 1.0)}, {"lrn": 0.1, "lstm": 0.2}
)
TIME = Timing(0.2, 0.1, 0.3, 9)


@pytest.mark.parametrize(
    "given",
    [
        results(),
        results(seeds=(1,)),
        realistic(memory=MEMORY, printed={"lrn": "1"}),
        results(
            trials=TRIALS, matched=Matched("time", "lrn", {"lstm": 5, "lrn": 7}, {"lstm": 1.1, "lrn": 1.0})
        ),
    ],
)
def test_everything_is_there_after_writing_and_reading(given, tmp_path):
    given.write(tmp_path / "results.json")
    assert Comparison.read(tmp_path / "results.json") == given
    plain = json.loads((tmp_path / "results.json").read_text())
    assert plain["units"]["lrn"]["mean"] == given.units["lrn"].mean
    assert plain["units"]["lrn"]["deviation"] == given.units["lrn"].deviation


def test_what_came_to_nothing_is_kept_too(tmp_path):
    broken = UnitResult(1, (math.inf, 1.0), (((1, math.nan),),) * 2, TIME)
    given = results(units={"lrn": broken})
    given.write(tmp_path / "results.json")
    found = Comparison.read(tmp_path / "results.json").units["lrn"]
    assert math.isnan(found.mean)
    assert found.deviation is None
    assert math.isnan(found.curves[0][0][1])


def test_deviation():
    assert UnitResult(1, (1.0, 3.0), (), TIME).deviation == pytest.approx(2**0.5)
    assert UnitResult(1, (1.0,), (), TIME).deviation is None
    assert UnitResult(1, (1.0, math.inf), (), TIME).deviation is None


def test_times_and_whose_is_one():
    assert list(results().times) == ["lstm", "lrn"]
    assert (results().standard, results().ratios) == ("lrn", {"lstm": 2.0, "lrn": 1.0})
    assert results(("gru", "lstm")).standard == "gru"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "task is missing"),
        ({"units": {}}, "a comparison must have a unit"),
        ({"units": {"lrn": {"parameters": 1}}}, "units.lrn.scores is missing"),
        ({"units": {"lrn": {"parameters": 1, "scores": [], "curves": []}}}, "units.lrn.time is missing"),
        ({"seeds": [1, "2"]}, "seeds.1 must be a whole number, got '2'"),
        ({"memory": {"svg": "<svg/>"}}, "memory.caption is missing"),
    ],
)
def test_another_file(content, said, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results().to_json() | content if content else {}))
    with pytest.raises(ValueError, match=rf"^{path} is damaged, or another file: {said}$"):
        Comparison.read(path)


def test_nothing_may_be_changed():
    with pytest.raises(AttributeError):
        results().task = "ner"
    assert replace(results(), task="ner").task == "ner"


def test_without_a_score_or_a_unit_there_is_nothing_to_compare():
    with pytest.raises(ValueError, match="must have a score"):
        UnitResult(1, (), (), TIME)
    with pytest.raises(ValueError, match="must have a unit"):
        results(units={})


def test_the_title_says_which_seeds():
    assert results().title == "lm, preset quick, seeds 1, 2"
    assert results(seeds=(3,)).title == "lm, preset quick, seed 3"
