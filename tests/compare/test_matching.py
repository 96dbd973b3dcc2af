"""Widths are chosen so that models are alike in parameters, or in the time of a step."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from lrn.compare import matching
from lrn.compare.matching import Sizes, check, match, nearest, width_at
from lrn.compare.plan import Plan
from lrn.report.results import Timing
from lrn.tasks import load, settings
from lrn.training.config import TrainConfig

NER = {
    "sentences": 8,
    "word_width": 6,
    "char_width": 4,
    "char_hidden": 4,
    "hidden": 12,
    "dense": 6,
    "threads": 1,
}


def plan(by, units=("lstm", "lrn", "atr"), task="ner", **more):
    return Plan(task, settings(task).train(**(NER if task == "ner" else {}) | more), units, (1,), match=by)


def found(given, out):
    return match(load(given.task), given, out, Console(file=io.StringIO()))


def test_as_many_parameters(tmp_path):
    """No other width comes nearer to LRN's count; what is chosen is kept, and a unit added finds its own."""
    given = plan("parameters")
    chosen = found(given, tmp_path)
    sizes = Sizes(load("ner"), given.config)
    wanted = sizes.count("lrn", 12)
    assert (chosen.standard, chosen.widths["lrn"]) == ("lrn", 12)
    assert chosen.widths["lstm"] < 12 < chosen.widths["atr"]
    for unit, width in chosen.widths.items():
        far = {near: abs(sizes.count(unit, near) - wanted) for near in (width - 1, width, width + 1)}
        assert min(far, key=far.get) == width
        assert chosen.ratios[unit] == pytest.approx(sizes.count(unit, width) / wanted, abs=1e-4)
    kept = json.loads((tmp_path / "widths.json").read_text())
    (tmp_path / "widths.json").write_text(json.dumps(kept | {"widths": chosen.widths | {"lstm": 5}}))
    more = found(replace(given, units=("lrn", "lstm", "gru")), tmp_path)
    assert (list(more.widths), more.widths["lstm"]) == (["lrn", "lstm", "gru"], 5)


def test_without_lrn_the_first_unit_is_the_standard(tmp_path):
    chosen = found(plan("parameters", ("gru", "atr")), tmp_path)
    assert (chosen.standard, chosen.widths["gru"], chosen.ratios["gru"]) == ("gru", 12, 1.0)


def test_as_long_a_step(tmp_path, monkeypatch):
    """Here a step of a unit takes as long as its width is, squared, and twice as long with LSTM."""
    rounds = []

    def times(learners, seconds):
        rounds.append([(one.config.unit, one.config.hidden) for one in learners.values()])
        cost = {"lrn": 1.0, "lstm": 2.0}
        return {
            name: Timing(cost[one.config.unit] * one.config.hidden**2, 0, 0, 7)
            for name, one in learners.items()
        }

    monkeypatch.setattr(matching, "taking_turns", times)
    chosen = found(plan("time", ("lrn", "lstm")), tmp_path)
    assert chosen.widths == {"lrn": 12, "lstm": 8}  # 12 / √2 is 8.5
    assert chosen.ratios == {"lrn": 1.0, "lstm": round(2 * 8**2 / 12**2, 4)}
    assert rounds[0] == [("lrn", 12), *(("lstm", width) for width in (1, 3, 6, 9, 12, 18, 24))]
    assert rounds[1:] == [[("lrn", 12), ("lstm", 8)]]


def test_real_steps_are_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(matching, "SECONDS", 0.01)
    monkeypatch.setattr(matching, "FACTORS", (0.5, 1.0))
    chosen = found(plan("time", ("lrn", "lstm")), tmp_path)
    assert 6 <= chosen.widths["lstm"] <= 12
    assert chosen.ratios["lstm"] > 0


def test_widths_that_the_task_does_not_take_are_not_tried(tmp_path):
    """Heads must divide them."""
    given = plan(
        "parameters", ("lrn", "lstm"), "nli", pairs=100, word_width=6, char_width=4, hidden=8, heads=4
    )
    assert found(given, tmp_path).widths["lstm"] % 2 == 0


def test_a_width_that_changes_nothing(tmp_path):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text("the cat sat on the mat\n" * 20)
    sizes = {"layers": 1, "embedding": 6, "last": 6, "hidden": 6}
    given = plan("parameters", ("lrn", "lstm"), "lm", data=str(tmp_path), **sizes)
    with pytest.raises(ValueError, match=r"^--match parameters: with these settings hidden does not change"):
        found(given, tmp_path)


def test_between_the_widths_and_never_beyond():
    times = {10: 1.0, 20: 4.0}
    assert width_at(times, 2.25) == pytest.approx(15.0)
    assert (width_at(times, 0.5), width_at(times, 9.0), width_at({10: 1.0}, 2.0)) == (10.0, 20.0, 10.0)
    assert nearest([4, 8, 12], 9.9) == 8


def test_a_task_without_widths():
    with pytest.raises(ValueError, match=r"^--match time: other has no setting hidden, whose value could be"):
        check("other", TrainConfig(), "time")
    check("other", TrainConfig(), "width")
