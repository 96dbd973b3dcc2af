"""Each unit's learning rate is the one that validates best."""

import io

import pytest
from compare.cases import Diverging, Made
from rich.console import Console

from lrn.compare import trainings
from lrn.compare.plan import Plan
from lrn.compare.rates import choose
from lrn.tasks import load, settings


def chosen(out, monkeypatch, children, task="ner", units=("lrn",), rates=(0.01, 0.1, 9.0)):
    """What is chosen where trainings come to ``children``, by the names of their folders."""
    seen = []

    def train(task, training):
        seen.append(training)
        return children[training.folder.name](training.folder)

    monkeypatch.setattr(trainings, "start", train)
    plan = Plan(task, settings(task).train(), units, (5, 6), rates)
    return choose(load(task), plan, out, Console(file=io.StringIO())), seen


def made(**figures):
    return lambda folder: Made(folder, **figures)


def test_the_best_by_what_the_task_monitors(tmp_path, monkeypatch):
    scores = {"lrn-0.01": made(valid_f1=70.0), "lrn-0.1": made(valid_f1=80.0), "lrn-9.0": made(valid_f1=75.0)}
    found, seen = chosen(tmp_path, monkeypatch, scores)
    assert (found.metric, found.seed) == ("valid_f1", 5)
    assert (found.scores, found.chosen) == ({"lrn": (70.0, 80.0, 75.0)}, {"lrn": 0.1})
    assert not found.at_edge("lrn")
    assert [training.folder for training in seen] == [tmp_path / "trials" / name for name in scores]
    assert {(one.settings["seed"], one.settings["test"]) for one in seen} == {(5, False)}


def test_less_may_be_better(tmp_path, monkeypatch):
    losses = {"lrn-0.01": made(valid_loss=3.0), "lrn-0.1": made(valid_loss=4.0)}
    found, _ = chosen(tmp_path, monkeypatch, losses, "lm", rates=(0.01, 0.1))
    assert found.chosen == {"lrn": 0.01}
    assert found.at_edge("lrn")


def test_a_trial_that_diverges_is_not_chosen_and_not_repeated(tmp_path, monkeypatch):
    children = {
        "lrn-0.01": made(valid_f1=1.0),
        "lrn-0.1": made(valid_f1=2.0),
        "lrn-9.0": lambda _: Diverging(),
    }
    found, seen = chosen(tmp_path, monkeypatch, children)
    assert (found.scores["lrn"], found.chosen["lrn"], len(seen)) == ((1.0, 2.0, None), 0.1, 3)
    assert "step 2 is nan" in (tmp_path / "trials" / "lrn-9.0.diverged").read_text()
    again, seen = chosen(tmp_path, monkeypatch, {})
    assert (again, seen) == (found, [])


def test_all_trials_of_a_unit_diverge(tmp_path, monkeypatch):
    said = r"^lrn diverged with every one of --lrs \(8.0, 9.0\); try smaller ones$"
    with pytest.raises(ValueError, match=said):
        chosen(
            tmp_path,
            monkeypatch,
            dict.fromkeys(("lrn-8.0", "lrn-9.0"), lambda _: Diverging()),
            rates=(8.0, 9.0),
        )


def test_a_single_rate_has_no_edge(tmp_path, monkeypatch):
    found, _ = chosen(tmp_path, monkeypatch, {"lrn-0.1": made(valid_f1=1.0)}, rates=(0.1,))
    assert not found.at_edge("lrn")
