"""`lrn compare --tasks`: a comparison for every task, and one page of all of them."""

import pytest
from report.cases import results

from lrn import cli, compare, names, survey


def test_settings_of_every_task():
    plans = survey.plans_of([*names.TASKS], ["lrn"], [1], threads=1)
    assert [plan.task for plan in plans] == [*names.TASKS]
    assert {plan.config.preset for plan in plans} == {"quick"}
    assert {plan.config.data for plan in plans} == {None, "builtin:quotes"}
    assert {plan.config.threads for plan in plans} == {1}


@pytest.fixture
def compared(monkeypatch):
    """Comparisons that train nothing, and what was asked of them."""
    asked = []

    def pretend(plan, out):
        asked.append((plan.task, plan.config.preset, plan.units, plan.seeds))
        out.mkdir(parents=True, exist_ok=True)
        results(task=plan.task).write(out / compare.RESULTS)
        return 0

    monkeypatch.setattr(compare, "compare", pretend)
    return asked


def test_a_page_of_all_tasks(compared, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["compare", "--tasks", "doc,ner", "--units", "lstm,lrn", "--seeds", "1,2", "--out", str(out)]
    assert cli.main(words) == 0
    assert compared == [(task, "quick", ("lstm", "lrn"), (1, 2)) for task in ("doc", "ner")]
    page = (out / "report.html").read_text()
    assert 'href="doc/report.html"' in page
    assert 'href="ner/report.html"' in page
    assert (out / "table.md").read_text().count("\n| ") == 2
    said = capsys.readouterr()
    assert "task 2 of 2: ner" in said.err
    assert "A training step takes, in lrn's" in said.out


def test_a_folder_with_something_else(compared, tmp_path, capsys):
    (tmp_path / "thesis.tex").touch()
    assert cli.main(["compare", "--tasks", "doc,ner", "--out", str(tmp_path)]) == 2
    assert "is not a comparison on several tasks; choose another --out" in capsys.readouterr().err
    assert compared == []


def test_a_task_that_stops_stops_all(monkeypatch, tmp_path):
    monkeypatch.setattr(compare, "compare", lambda *words: 130)
    assert cli.main(["compare", "--tasks", "doc,ner", "--out", str(tmp_path / "out")]) == 130
    assert not (tmp_path / "out" / "report.html").exists()


def test_without_a_task_it_is_the_document_task(monkeypatch):
    asked = []
    monkeypatch.setattr("lrn.commands.compare", lambda plan: asked.append(plan) or 0)
    assert cli.main(["compare"]) == 0
    assert cli.main(["compare", "--units", "lrn", "--seeds", "3"]) == 0
    assert [plan.task for plan in asked] == ["doc", "doc"]
    assert [plan.units for plan in asked] == [tuple(names.COMPARED.split(",")), ("lrn",)]
    assert [plan.seeds for plan in asked] == [(1,), (3,)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "doc,dok"], "did you mean 'doc'"),
        (["--tasks", "doc,doc"], "different tasks"),
        (["--tasks="], "different tasks"),
        (["--tasks", "doc", "--units", "x"], "unit"),
        (["--tasks", "doc", "--lr", "1"], "--lr"),
    ],
)
def test_wrong_words(words, said, tmp_path, capsys):
    assert cli.main(["compare", *words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_said_first(monkeypatch, tmp_path, capsys):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "spacy" else found(name))
    assert cli.main(["compare", "--tasks", "doc,rc", "--out", str(tmp_path / "out")]) == 2
    assert "needs spacy" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_comparison(tmp_path, capsys):
    (tmp_path / "doc").mkdir()
    (tmp_path / "doc" / "mine.txt").write_text("mine")
    assert cli.main(["compare", "--tasks", "doc", "--out", str(tmp_path)]) == 2
    assert "not a comparison" in capsys.readouterr().err
