"""Comparisons on several tasks as one table and one page."""

import math
from dataclasses import replace

from report.cases import results, with_unit
from rich.console import Console

from lrn.report import survey
from lrn.report.results import Timing


def found():
    """Two tasks: lstm at 0.010 s a step, lrn at 0.005 s; the second, where more is better, has lrn alone."""
    return {"lm": results(), "doc": results(("lrn",), task="doc", lower_is_better=False, metric="test_f1")}


def test_a_row_for_every_task():
    header, lm, doc = survey.rows(found())
    assert header == ["task", "score", "lstm", "lrn"]
    assert lm == ["lm", "test perplexity ↓", "101.00 · 2.00x", "102.00 · 1.00x"]
    assert doc == ["doc", "test f1 ↑", "", "101.00 · 1.00x"]


def test_what_came_out():
    times, quality = survey.summary(found())
    assert times == "A training step takes, in lrn's, by geometric mean: lstm 2.00."
    assert quality == "By quality lrn is number 2 of 2 on lm, 1 of 1 on doc."


def test_the_spread_over_tasks():
    slower = with_unit(results(), "lstm", time=Timing(0.04, 0.04, 0.04, 9))
    assert survey.summary({"lm": results(), "ner": slower})[0].endswith("lstm 4.00 (2.00 to 8.00).")


def test_one_seed_cannot_tell():
    assert "One seed cannot tell" in survey.summary({"lm": results(seeds=(1,))})[-1]


def test_a_training_that_came_to_nothing_is_the_last():
    worse = with_unit(results(), "lrn", scores=(math.nan, math.nan))
    assert "number 2 of 2 on lm" in survey.summary({"lm": worse})[1]
    assert "nan" in survey.rows({"lm": worse})[1][3]


def test_units_that_are_level():
    level = with_unit(results(("lstm", "gru", "lrn")), "lstm", scores=(102.0, 104.0))
    assert "number 2 of 3 on lm (level with 1 other)." in survey.summary({"lm": level})[1]


def test_without_lrn_the_first_unit_is_the_measure():
    found = {"lm": results(("lstm", "gru"))}
    times, quality = survey.summary(found)
    assert times.startswith("A training step takes, in lstm's, by geometric mean: gru ")
    assert quality == "By quality lstm is number 1 of 2 on lm."
    for shown in (survey.markdown(found), survey.render(found), str(survey.terminal(found).title)):
        assert "relative to lstm, less is better" in shown
        assert "relative to lrn" not in shown


def test_the_page_and_the_table_are_written(tmp_path):
    survey.write(found(), tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "<td class='best'>101.00 · 2.00x</td>" in page
    assert (
        (tmp_path / "table.md").read_text().startswith("| task | score | lstm | lrn |\n|---|---|---:|---:|")
    )


def test_names_are_text_and_not_markup():
    odd = replace(results(), metric="test_<b>")
    assert "<b>" not in survey.render({"lm": odd})


def test_the_terminal_names_every_task():
    console = Console(width=200, record=True)
    console.print(survey.terminal(found()))
    text = console.export_text()
    assert "lm" in text
    assert "doc" in text
