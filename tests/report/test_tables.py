"""Tables say what the results say."""

from dataclasses import replace

import pytest
from report.cases import results, with_unit

from lrn.report import page, tables, verdict
from lrn.report.results import Matched, Trials


def test_rows():
    header, lstm, lrn = tables.rows(results())
    assert header == [
        "unit",
        "parameters",
        "test perplexity",
        "ms / batch",
        "time relative to lrn, less is better",
    ]
    assert lstm == ["lstm", "1,234", "101.00 ± 1.41", "10.0", "2.00x"]
    assert lrn == ["lrn", "2,234", "102.00 ± 1.41", "5.0", "1.00x"]


def test_times_are_told_in_lrns_or_in_the_first_units():
    header, *cells = [row[-1] for row in tables.rows(results(("lstm", "gru")))]
    assert (header, cells) == ("time relative to lstm, less is better", ["1.00x", "0.50x"])


def test_the_papers_scores_have_a_column_where_there_are_some():
    header, lstm, lrn = tables.rows(results(printed={"lrn": "61.26", "gru": "69.09"}))
    assert (header[-1], lstm[-1], lrn[-1]) == ("paper", "", "61.26")
    header, *_ = tables.rows(results(printed={"lrn": "61.26"}, printed_on="Penn Treebank"))
    assert header[-1] == "paper (its own data and size)"


def test_markdown_and_latex(tmp_path):
    tables.write(results(), tmp_path)
    assert "| lrn | 2,234 | 102.00 ± 1.41 | 5.0 | 1.00x |" in (tmp_path / "table.md").read_text()
    assert r"lrn & 2,234 & 102.00 $\pm$ 1.41 & 5.0 & 1.00x \\" in (tmp_path / "table.tex").read_text()


def test_what_came_out_stands_below_the_table():
    assert tables.markdown(results()).endswith(f" |\n\n{verdict.sentence(results())}\n")


TRIALS = Trials(
    "valid_loss",
    1,
    (0.1, 0.2, 0.4),
    {"lstm": (3.0, 2.0, None), "lrn": (3.0, 2.5, 2.25)},
    {"lstm": 0.2, "lrn": 0.4},
)


def test_trials_are_told_of():
    shown = tables.markdown(results(trials=TRIALS))
    assert "| unit | lr 0.1 | lr 0.2 | lr 0.4 |\n" in shown
    assert "| lstm | 3.000 | **2.000** | diverged |\n| lrn | 3.000 | 2.500 | **2.250†** |\n" in shown
    assert "the best valid loss (bold), tried with seed 1. †: at the edge of the rates" in shown
    inside = replace(TRIALS, chosen={"lstm": 0.2, "lrn": 0.2})
    assert "†" not in tables.markdown(results(trials=inside))


def test_settings_of_a_units_own_have_columns():
    given = with_unit(with_unit(results(), "lrn", own={"lr": 0.01}), "lstm", own={"lr": 0.1})
    assert [row[:3] for row in tables.rows(given)] == [
        ["unit", "lr", "parameters"],
        ["lstm", "0.1", "1,234"],
        ["lrn", "0.01", "2,234"],
    ]


def test_how_widths_were_chosen_is_told():
    matched = Matched("time", "lrn", {"lstm": 5, "lrn": 7}, {"lstm": 1.125, "lrn": 1.0})
    assert tables.notes(results(matched=matched))[1:] == [
        "The widths (hidden) were chosen so that every model has a training step about as long as lrn's; "
        "relative to it when they were chosen: lstm 1.12. No width that was tried came within 10% for lstm."
    ]
    near = replace(matched, ratios={"lstm": 1.09, "lrn": 1.0})
    assert tables.about_matched(results(matched=near)).endswith("when they were chosen: lstm 1.09.")
    assert tables.notes(results()) == [verdict.sentence(results())]


def test_what_was_not_read_and_what_is_doubtful_is_told():
    remarks = ("--longest 400 cuts 9 words off 2 train documents", "test has tags that were never trained")
    assert tables.notes(results(remarks=remarks))[1:] == [f"Of the data: {remarks[0]}; {remarks[1]}."]
    assert f"Of the data: {remarks[0]}" in page.render(results(remarks=remarks))


def test_times_of_a_users_own_unit_are_not_compared_without_a_word():
    mixed, alone = results(("lrn", "mine:Mine")), results(("mine:Mine", "mine:Other"))
    assert tables.notes(mixed)[1:] == [
        "mine:Mine has no engine but plain torch, step by step: a fair comparison of times has all units run "
        "so, with LRN_ENGINE=torch."
    ]
    assert len(tables.notes(alone)) == 1
    assert len(tables.notes(replace(mixed, versions={"engine": "torch"}))) == 1


def test_the_terminals_table_has_all_rows():
    assert tables.terminal(results()).row_count == 2


def test_best_of_each_column():
    assert tables.best(results()) == {
        "parameters": ["lstm"],
        "test perplexity": ["lstm"],
        "ms / batch": ["lrn"],
    }
    assert tables.best(results(lower_is_better=False))["test perplexity"] == ["lrn"]
    assert tables.best(results(("lrn",))) == {}


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_what_came_to_nothing_is_not_best(broken):
    given = with_unit(results(), "lstm", scores=(broken, broken))
    assert tables.rows(given)[1][2] == f"{broken:.2f}"
    assert tables.best(given)["test perplexity"] == ["lrn"]
