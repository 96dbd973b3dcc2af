"""Tables say what the results say."""

import pytest
from report.cases import results, with_unit

from lrn.report import tables


def test_rows():
    header, lstm, lrn = tables.rows(results())
    assert header == ["unit", "parameters", "test perplexity", "ms / batch", "time"]
    assert lstm == ["lstm", "1,234", "101.00 ± 1.41", "10.0", "2.00x"]
    assert lrn == ["lrn", "2,234", "102.00 ± 1.41", "5.0", "1.00x"]


def test_times_are_told_in_lrns_or_in_the_first_units():
    assert [row[-1] for row in tables.rows(results(("lstm", "gru")))] == ["time", "1.00x", "0.50x"]


def test_the_papers_scores_have_a_column_where_there_are_some():
    header, lstm, lrn = tables.rows(results(printed={"lrn": "61.26", "gru": "69.09"}))
    assert (header[-1], lstm[-1], lrn[-1]) == ("paper", "", "61.26")


def test_markdown_and_latex(tmp_path):
    tables.write(results(), tmp_path)
    assert "| lrn | 2,234 | 102.00 ± 1.41 | 5.0 | 1.00x |" in (tmp_path / "table.md").read_text()
    assert r"lrn & 2,234 & 102.00 $\pm$ 1.41 & 5.0 & 1.00x \\" in (tmp_path / "table.tex").read_text()


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
