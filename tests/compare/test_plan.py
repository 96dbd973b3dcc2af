"""What a comparison's folder is for, and what can be added to it."""

import json

import pytest

from lrn.compare.plan import Plan, claim, joined
from lrn.tasks import settings


def plan(units=("lstm", "lrn"), seeds=(1,), task="lm", **more):
    return Plan(task, settings(task).train(**more), units, seeds)


def begun(folder, first):
    """A folder in which a comparison has trained something."""
    folder.mkdir(exist_ok=True)
    claim(folder, first)
    (folder / "runs").mkdir()
    return folder


@pytest.mark.parametrize(
    ("there", "typed", "units", "seeds"),
    [
        ((("lstm", "lrn"), (1,)), (("lrn", "lstm"), (1,)), ("lstm", "lrn"), (1,)),
        ((("lstm", "lrn"), (1,)), (("gru",), (1,)), ("lrn", "lstm", "gru"), (1,)),
        ((("lstm", "lrn"), (3,)), (("lstm", "lrn"), (2, 1)), ("lstm", "lrn"), (1, 2, 3)),
        ((("lstm", "lrn"), (2, 1)), (("lstm",), (1,)), ("lstm", "lrn"), (2, 1)),
    ],
)
def test_units_and_seeds_are_put_together(there, typed, units, seeds, tmp_path):
    begun(tmp_path, plan(*there))
    whole = claim(tmp_path, plan(*typed))
    assert (whole.units, whole.seeds) == (units, seeds)
    stored = json.loads((tmp_path / "compare.json").read_text())
    assert (stored["units"], stored["seeds"]) == (list(units), list(seeds))
    assert (tmp_path / "runs").exists()


def test_what_one_has_beyond_the_other():
    assert plan(("lrn", "atr", "gru"), (1, 4, 5)).beyond(plan(("lrn",), (1,))) == "atr, gru and seeds 4, 5"
    assert plan(seeds=(1, 2)).beyond(plan()) == "seed 2"
    assert plan().beyond(plan(seeds=(1, 2))) == ""


def test_other_settings_are_another_comparison(tmp_path):
    begun(tmp_path, plan())
    said = r"holds a comparison with other lr \(0.001, now 0.5\); choose another --out, or --overwrite$"
    with pytest.raises(ValueError, match=said):
        joined(tmp_path, plan(("lstm", "lrn", "gru"), lr=0.5))
    with pytest.raises(ValueError, match="with other task and "):
        joined(tmp_path, plan(task="ner"))
    assert json.loads((tmp_path / "compare.json").read_text())["units"] == ["lstm", "lrn"]


def test_overwriting_begins_anew(tmp_path):
    begun(tmp_path, plan())
    whole = claim(tmp_path, plan(("gru",), lr=0.5, overwrite=True))
    assert (whole.units, [path.name for path in tmp_path.iterdir()]) == (("gru",), ["compare.json"])


def test_a_comparison_that_trained_nothing_is_no_obstacle(tmp_path):
    """As one leaves it that was refused or stopped before its first run."""
    claim(tmp_path, plan(task="ner"))
    assert claim(tmp_path, plan(("gru",))).units == ("gru",)


def test_a_comparison_that_was_killed_while_it_wrote_is_no_obstacle(tmp_path):
    (tmp_path / ".compare.json.123.part").write_text('{"task": "l')
    assert joined(tmp_path, plan()).units == plan().units
    claim(tmp_path, plan())
    assert [path.name for path in tmp_path.iterdir()] == ["compare.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"units": ["../mine"]}, r"unknown unit in .*compare\.json '\.\./mine'; allowed: lrn, "),
        ({"units": "lrn"}, r"compare\.json is damaged, or another file: units must be a list"),
        ({"seeds": ["1"]}, r"compare\.json is damaged, or another file: seeds.0 must be a whole number"),
    ],
)
def test_a_damaged_file(change, said, tmp_path):
    begun(tmp_path, plan())
    path = tmp_path / "compare.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=said):
        joined(tmp_path, plan())
