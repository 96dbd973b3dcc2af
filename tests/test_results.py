"""``lrn results``: tables from the files of run folders, made up here; nothing is trained."""

import json
import subprocess
import sys

import pytest

from lrn import cli
from lrn.training.run import FORMAT

DATA = {
    "nli": {"train": {"pairs": 99_890}},
    "lm": {"tokens": {"train": 929_589}},
    "doc": {"train": {"documents": 25_000}, "classes": ["a", "b"]},
}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a run folder, in the folder where the test is."""
    monkeypatch.chdir(tmp_path)

    def one(
        name, task="nli", *, score=80.0, finished=True, epochs=2, about=None, fingerprint="abc", **config
    ):
        folder = tmp_path / name
        folder.mkdir()
        settings = {"unit": "lrn", "preset": "paper", "data": "/some/where/snli", "epochs": 2, **config}
        (folder / "config.json").write_text(json.dumps({"task": task, "format": FORMAT, **settings}))
        data = {"fingerprint": fingerprint, **(DATA[task] if about is None else about)}
        (folder / "about.json").write_text(json.dumps({"data": data}))
        figure = {"nli": "accuracy", "lm": "perplexity", "doc": "error"}[task]
        rows = [f"{n},{n},,{score - 10 + n}\n" for n in range(1, 3)]
        (folder / "log.csv").write_text(f"step,epoch,train_loss,valid_{figure}\n1,0,0.5,\n" + "".join(rows))
        (folder / "last.ckpt").touch()
        if finished:
            found = {"parameters": 1234, "epochs": epochs, f"test_{figure}": score, "test_loss": 1.0}
            (folder / "metrics.json").write_text(json.dumps({**found, "test": {"more": "of it"}}))
        return name

    return one


def printed(capsys, *words):
    assert cli.main(["results", *words]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def refused(capsys, *words):
    assert cli.main(["results", *words]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


def rows(text):
    header, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    return [dict(zip(header, row, strict=True)) for row in body]


def test_a_table(make, capsys):
    found = printed(
        capsys, make("a"), make("b", unit="lstm", score=70.0), make("c", unit="sru", finished=False)
    )
    own = "paper, on its own data: SNLI, 549,367 pairs"
    assert found == (
        "| unit | seed | parameters | epochs "
        f"| validation accuracy after each epoch | test accuracy | {own} |\n"
        "|---|---|---:|---:|---|---:|---:|\n"
        "| lrn | 1 | 1,234 | 2 | 71.00, 72.00 | 80.00 | 84.88 |\n"
        "| lstm | 1 | 1,234 | 2 | 61.00, 62.00 | 70.00 | 84.27 |\n"
        "| sru | 1 | – | 2 of 2, unfinished | 71.00, 72.00 | – | 84.28 |\n"
    )


def test_seeds(make, capsys):
    names = [make(f"run-{seed}", seed=seed, score=79.0 + seed) for seed in (1, 2, 3)]
    (row,) = rows(printed(capsys, *names))
    assert (row["seed"], row["test accuracy"]) == ("1, 2, 3", "81.00 ± 1.00")
    assert len(rows(printed(capsys, *names, "--single"))) == 3


def test_a_column_for_what_differs_and_matters(make, capsys):
    """Not for where it ran, nor for where files were; neither for what the preset says."""
    same = {"threads": 1, "accelerator": "cpu", "save_steps": 7, "data": "/else/where/snli"}
    one = make("a", vectors="/here/glove.txt")
    other = make("b", vectors="/there/glove.txt", lr=0.5, preset="paper-ln", norm="rms", **same)
    (row, second) = rows(printed(capsys, one, other))
    assert [*row][4:6] == ["preset", "lr"]
    assert "validation" in [*row][6]
    assert [second["preset"], second["lr"]] == ["paper-ln", "0.5"]
    assert [row["lr"]] == ["0.001"]


def test_other_data_has_a_name(make, capsys):
    names = [make("a"), make("b", fingerprint="0123456789"), make("c", data=None, fingerprint="x")]
    names.append(make("d", data="/moved/here", fingerprint="abc"))
    assert [row["data"] for row in rows(printed(capsys, *names))] == [
        *("snli", "snli (01234567)", "built-in", "snli"),
    ]


def test_the_papers_figures_on_its_own_data(make, capsys):
    (row,) = rows(printed(capsys, make("a", about={"train": {"pairs": 549_367}})))
    assert row["paper"] == "84.88"
    (row,) = rows(printed(capsys, make("b", unit="olrn")))
    assert not [name for name in row if "paper" in name]
    (row,) = rows(printed(capsys, make("c", preset="quick")))
    assert not [name for name in row if "paper" in name]


def test_another_presets_figures(make, capsys):
    run = make("a", "lm", preset="small")
    (row,) = rows(printed(capsys, run, "--paper", "paper-ptb"))
    assert row["paper, preset paper-ptb"] == "61.26"
    (row,) = rows(printed(capsys, run, "--paper", "paper-wt2"))
    assert row["paper, preset paper-wt2, on its own data: WikiText-2, 2,088,628 words"] == "69.91"
    assert "unknown preset 'papr-ptb'" in refused(capsys, run, "--paper", "papr-ptb")


def test_a_column_for_each_set_of_documents(make, capsys):
    (row,) = rows(printed(capsys, make("a", "doc", data="/x/imdb"), "--validation", "best"))
    assert row["validation error, the best"] == "71.00"
    assert [row[name] for name in row if name.startswith("paper, on its own data: ")] == [
        *("4.98", "25.07", "38.42", "3.98"),
    ]


def test_a_table_for_each_task(make, capsys):
    names = make("a"), make("b", "lm", preset="small"), make("c", unit="gru")
    found = printed(capsys, *names)
    assert found.index("**nli**") < found.index("| gru |") < found.index("**lm**")
    assert [table["task"] for table in json.loads(printed(capsys, *names, "--format", "json"))] == [
        "nli",
        "lm",
    ]
    assert printed(capsys, *names, "--format", "csv").count("\n\ntask,") == 1


def test_a_run_that_was_told_to_go_further(make, capsys):
    """Its figures are of the epochs that metrics.json says, so are those on the validation data."""
    (row,) = rows(printed(capsys, make("a", epochs=1)))
    assert [row["epochs"], row["validation accuracy after each epoch"]] == ["1", "71.00"]


def test_what_is_no_run_is_refused(make, capsys, tmp_path):
    run = make("a")
    (tmp_path / "empty").mkdir()
    assert "there is no run folder none" in refused(capsys, run, "none")
    assert "empty is not a run folder" in refused(capsys, run, "empty")
    assert "./a is named twice, first as a" in refused(capsys, run, "./a")
    averaged = make("b", finished=False)
    (tmp_path / averaged / "last.ckpt").unlink()
    assert "b was not trained and has no figures: lrn evaluate b" in refused(capsys, averaged)
    assert "the runs of nli have no test f1; there is: accuracy, loss" in refused(capsys, run, "--test", "f1")


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("metrics.json", '{"parameters"', "metrics.json is damaged"),
        ("metrics.json", '{"parameters": 3}', "metrics.json is damaged, or another file: epochs is missing"),
        ("about.json", '{"data": 3}', "about.json is damaged: it does not say what the data was"),
        ("about.json", '{"data": {"fingerprint": "x"}}', "about.json is damaged: its data has no 'train'"),
        ("about.json", "[", "about.json is damaged"),
        ("config.json", '{"task": "nli", "format": 2, "speed": 3}', "config.json has settings that this"),
        ("config.json", '{"task": "cooking", "format": 2}', "unknown task 'cooking'"),
        ("log.csv", "step,epoch,valid_accuracy\n1,x,3\n", "log.csv is damaged"),
    ],
)
def test_damaged_files(make, capsys, tmp_path, file, text, expected):
    run = make("a")
    (tmp_path / run / file).write_text(text)
    assert expected in refused(capsys, run)


def test_it_needs_no_torch(make):
    code = "import sys; from lrn import cli; cli.main(['results', 'a']); sys.exit('torch' in sys.modules)"
    make("a")
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0
