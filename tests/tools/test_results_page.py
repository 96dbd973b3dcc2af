"""Tables of results are written from run folders, and only where those are there."""

import json

import pytest
import results_page

from lrn.training.run import FORMAT

PAGE = """# Results

Words before.

<!-- lrn results runs/one runs/two --validation last -->
| old |
<!-- end -->

<!-- table comparisons/doc -->
<!-- end -->

<!-- lrn results runs/lost -->
| kept |
<!-- end -->

Words after.
"""


@pytest.fixture
def runs(tmp_path):
    for name, unit, error in (("one", "lstm", 11.5), ("two", "lrn", 11.25)):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        config = {"task": "doc", "format": FORMAT, "unit": unit, "preset": "quick", "epochs": 1}
        data = {"fingerprint": "abc", "train": {"documents": 25}, "classes": ["a", "b"]}
        for file, content in (
            ("config.json", config),
            ("about.json", {"data": data}),
            ("metrics.json", {"parameters": 1234, "epochs": 1, "test_error": error}),
        ):
            (folder / file).write_text(json.dumps(content))
        (folder / "log.csv").write_text("step,epoch,train_loss,valid_error\n9,1,,12.5\n")
        (folder / "last.ckpt").touch()
    comparison = tmp_path / "comparisons" / "doc"
    comparison.mkdir(parents=True)
    (comparison / "table.md").write_text("| unit |\n|---|\n| lrn |\n\nlrn is best.\n")
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    return page


def run(page, *words):
    return results_page.main([str(page), "--runs", str(page.parent), *words])


def test_tables_are_made_anew(runs, capsys):
    assert run(runs, "--check") == 1
    assert runs.read_text() == PAGE
    assert run(runs) == 0
    assert capsys.readouterr().out == "kept as it is, for lack of its runs: lrn results runs/lost\n" * 2
    found = runs.read_text()
    assert (
        "| lstm | 1 | 1,234 | 1 | 12.50 | 11.50 |\n| lrn | 1 | 1,234 | 1 | 12.50 | 11.25 |\n<!-- end" in found
    )
    assert "<!-- table comparisons/doc -->\n| unit |\n|---|\n| lrn |\n<!-- end -->" in found
    assert "<!-- lrn results runs/lost -->\n| kept |\n<!-- end -->\n\nWords after.\n" in found
    assert "old" not in found
    assert run(runs, "--check") == 0


def test_what_cannot_be_made_changes_nothing(runs, capsys):
    (runs.parent / "runs" / "two" / "metrics.json").write_text("{")
    assert run(runs) == 2
    assert "metrics.json is damaged" in capsys.readouterr().err
    assert runs.read_text() == PAGE


def test_a_table_without_an_end(runs, capsys):
    runs.write_text("<!-- table comparisons/doc -->\n| a |\n")
    assert run(runs) == 2
    assert "has no <!-- end -->" in capsys.readouterr().err


def test_no_page(tmp_path, capsys):
    assert run(tmp_path / "page.md") == 2
    assert "page.md" in capsys.readouterr().err
