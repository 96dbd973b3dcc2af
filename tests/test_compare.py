"""`lrn compare`: trains what is not trained yet, and reports the runs' own figures."""

import io
import json
import subprocess
import sys

import pytest
from report.cases import results
from rich.console import Console

from lrn import cli, compare
from lrn.report.results import Comparison, Timing
from lrn.tasks import load, settings

TINY = (
    "--embedding 8 --hidden 12 --last 8 --layers 2 --batch_size 4 --bptt 10 --delta 4 --epochs 2 --threads 1"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for part in ("train", "valid", "test"):
        (folder / f"{part}.txt").write_text("the cat sat on the mat and the dog ran\n" * 20)
    return folder


@pytest.fixture(scope="module")
def out(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "comparison"
    patch = pytest.MonkeyPatch()
    patch.setattr(compare, "time_units", lambda task, config, units: timed(units))
    assert run(folder, out) == 0
    patch.undo()
    return out


def timed(units):
    return {unit: Timing(0.01, 0.01, 0.01, 7) for unit in units}


def run(folder, out, *words, units="lstm,lrn"):
    return cli.main(
        ["compare", "lm", "--data", str(folder), "--units", units, "--out", str(out), *TINY.split(), *words]
    )


@pytest.mark.slow
def test_results_are_those_of_the_runs(out):
    results = Comparison.read(out / "results.json")
    assert list(results.units) == ["lstm", "lrn"]
    for unit, row in results.units.items():
        metrics = json.loads((out / "runs" / f"{unit}-1" / "metrics.json").read_text())
        assert row.scores == (metrics["test_perplexity"],)
        assert row.parameters == metrics["parameters"]
        assert [epoch for epoch, _ in row.curves[0]] == [1, 2]
    about = json.loads((out / "runs" / "lstm-1" / "about.json").read_text())
    assert results.data == about["data"]
    assert results.printed == {}
    assert (results.metric, results.lower_is_better, results.curve) == (
        "test_perplexity",
        True,
        "valid_perplexity",
    )
    for name in ("report.html", "table.md", "table.tex"):
        assert (out / name).read_text().count("lstm") > 0


@pytest.mark.slow
def test_what_is_finished_is_not_trained_again(folder, out, monkeypatch):
    monkeypatch.setattr(compare, "_start", lambda *args: pytest.fail("trains again"))
    monkeypatch.setattr(compare, "time_units", lambda *args: pytest.fail("measures again"))
    assert run(folder, out) == 0


@pytest.mark.slow
def test_another_comparison_in_the_same_folder(folder, out, capsys):
    assert run(folder, out, "--lr", "0.5") == 2
    assert "holds a comparison with other lr (0.01, now 0.5); choose another" in capsys.readouterr().err
    assert run(folder, out, units="lrn,gru") == 2
    assert "other units" in capsys.readouterr().err


@pytest.mark.slow
def test_times_are_measured_on_the_same_batches(folder):
    from lrn.tasks.lm.config import LMConfig

    config = LMConfig(
        data=str(folder), embedding=8, hidden=12, last=8, layers=2, batch_size=4, bptt=10, delta=4, threads=1
    )
    times = compare.time_units("lm", config, ["lrn", "lstm"], seconds=0.1)
    assert all(taken.median > 0 for taken in times.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--units", "lrn,lrm"], "did you mean 'lrn'"),
        (["--units", "lrn,lrn"], "different units"),
        (["--units", ""], "different units"),
        (["--seeds", "1,x"], "--seeds"),
        (["--seeds", "1,1"], "--seeds"),
        (["--preset", "quik"], "did you mean 'quick'"),
        (["--unit", "lrn"], "unit"),
    ],
)
def test_wrong_words(words, said, tmp_path, capsys):
    assert cli.main(["compare", "lm", "--out", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_something_else(folder, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert run(folder, tmp_path, "--overwrite") == 2
    assert "not a comparison" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_device_that_is_not_there(tmp_path, capsys):
    """It is said before anything is made or started."""
    assert cli.main(["compare", "lm", "--accelerator", "cuda", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "lrn: --accelerator cuda: there is none here; this machine has cpu"
    assert not (tmp_path / "out").exists()


def test_a_training_that_fails(folder, tmp_path, monkeypatch, capsys):
    """What it says is passed on, and who says it is named once."""
    command = [sys.executable, "-c", "import sys; sys.exit(print('lrn: no luck', file=sys.stderr) or 2)"]
    failing = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    monkeypatch.setattr(compare, "_start", lambda *args: failing)
    assert run(folder, tmp_path / "out") == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "lrn: training lstm (seed 1) failed: no luck"


def test_help(capsys):
    assert cli.main(["compare"]) == 0
    assert "TASK" in capsys.readouterr().out


def test_a_training_of_one_step_is_timed_too():
    from lrn.tasks.ner.config import NERConfig

    config = NERConfig(sentences=5, epochs=1, hidden=4, dense=4, word_width=4, threads=1)
    times = compare.time_units("ner", config, ["lrn"], seconds=0.05)
    assert times["lrn"].median > 0


def test_classifiers_come_with_a_picture_of_their_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "time_units", lambda task, config, units: timed(units))
    small = "--documents 100 --word_width 8 --char_width 4 --hidden 8 --epochs 1 --max_steps 4 --threads 1"
    out = tmp_path / "comparison"
    assert cli.main(["compare", "doc", "--units", "lrn", "--out", str(out), *small.split()]) == 0
    memory = Comparison.read(out / "results.json").memory
    if memory:  # unless after so little training no document is classified rightly
        assert "curve-0" in memory.svg
        assert "What LRN remembers" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("task", "preset", "data", "expected"),
    [
        ("lm", "paper-ptb", {"tokens": {"train": 929_589}}, "61.26"),
        ("lm", "small", {"tokens": {"train": 929_589}}, None),
        ("ner", "paper", {"train": {"sentences": 14_041}}, "88.56"),
        ("doc", "paper", {"classes": ["1", "2"], "train": {"documents": 560_000}}, "3.98"),
        ("doc", "quick", {"classes": ["1", "2"], "train": {"documents": 560_000}}, None),
    ],
)
def test_the_task_knows_what_the_paper_prints(task, preset, data, expected):
    assert load(task).printed({"preset": preset}, data).get("lrn") == expected


def finished(folder, metrics='{"parameters": 7, "test_f1": 80.5}', log="epoch,valid_f1\n1,70.5\n1,\n2,80\n"):
    """A run as far as a comparison reads it."""
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(metrics)
    (folder / "log.csv").write_text(log)
    return folder


def test_a_unit_is_what_its_runs_came_to(tmp_path):
    folders = [
        finished(tmp_path / "1"),
        finished(tmp_path / "2", '{"parameters": 7}'),
        finished(tmp_path / "3", '{"parameters": 7, "test_f1": 90}'),
    ]
    found = compare._unit(load("ner"), folders, timed(["lrn"])["lrn"])
    assert (found.parameters, found.scores) == (7, (80.5, 90))
    assert found.curves == (((1, 70.5), (2, 80.0)),) * 3


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"metrics": '{"parameters": 7}'}, "has no test_f1: nothing to compare"),
        ({"metrics": '{"test_f1": 80.5}'}, "metrics.json is damaged, or another file: parameters is missing"),
        ({"metrics": "[]"}, "metrics.json is damaged, or another file: it must be an object"),
        ({"log": "epoch,valid_f1\none,70\n"}, "log.csv is damaged: invalid literal"),
    ],
)
def test_damaged_runs(damage, said, tmp_path):
    folder = finished(tmp_path / "lrn-1", **damage)
    with pytest.raises(ValueError, match=rf"^{tmp_path}.*{said}"):
        compare._unit(load("ner"), [folder], timed(["lrn"])["lrn"])


def test_times_are_measured_once(tmp_path):
    path = tmp_path / "results.json"
    assert compare._known_times(path, ["lstm", "lrn"]) == {}
    results().write(path)
    assert compare._known_times(path, ["lstm", "lrn"]) == results().times
    with pytest.raises(ValueError, match="other units"):
        compare._known_times(path, ["lrn"])
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"results\.json is damaged, or another file"):
        compare._known_times(path, ["lstm", "lrn"])


def test_a_comparison_that_trained_nothing_is_no_obstacle(tmp_path):
    """As one leaves it that was refused or stopped before its first run."""
    compare_json = tmp_path / "compare.json"
    compare_json.write_text('{"task": "ner", "units": ["lrn"], "seeds": [9], "config": {}}')
    config = settings("lm").train()
    compare.check_free(tmp_path, "lm", config, ["lrn", "gru"], [1])
    (tmp_path / "runs").mkdir()
    with pytest.raises(ValueError, match="holds a comparison with other task and units and seeds and"):
        compare.check_free(tmp_path, "lm", config, ["lrn", "gru"], [1])


# What is said while it trains ---------------------------------------------------------------------


class Child:
    """A training that says some lines, each after so many seconds of the clock."""

    def __init__(self, folder, clock, seconds):
        self.folder, self.clock, self.seconds = folder, clock, seconds

    @property
    def stderr(self):
        for share in (10, 50, 90):
            self.clock[0] += self.seconds
            yield f"epoch 1/1  {share}%  loss 2.5\n"

    def wait(self):
        finished(self.folder)
        return 0


def said(tmp_path, monkeypatch, seconds, terminal=False):
    """What two trainings print, one of which was there before a third."""
    clock = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    monkeypatch.setattr(
        compare,
        "_start",
        lambda task, config, unit, seed, out: Child(out / "runs" / f"{unit}-{seed}", clock, seconds),
    )
    finished(tmp_path / "runs" / "lstm-1")
    plan = [("lstm", 1), ("gru", 1), ("lrn", 1)]
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    assert compare._train_all("ner", settings("ner").train(), plan, tmp_path, console)
    return console.file.getvalue()


def test_lines_where_there_is_no_terminal(tmp_path, monkeypatch):
    """One where a training begins and ends, and one every 15 seconds."""
    assert said(tmp_path, monkeypatch, 8.0).splitlines() == [
        "1/3 lstm, seed 1: done: test f1 80.50",
        "2/3 gru, seed 1: starting",
        "2/3 gru, seed 1: epoch 1/1  50%  loss 2.5",
        "2/3 gru, seed 1: done: test f1 80.50, about 1 min left",
        "3/3 lrn, seed 1: starting, about 1 min left",
        "3/3 lrn, seed 1: epoch 1/1  50%  loss 2.5, about 1 min left",
        "3/3 lrn, seed 1: done: test f1 80.50",
    ]


def test_a_table_in_a_terminal(tmp_path, monkeypatch):
    shown = said(tmp_path, monkeypatch, 60.0, terminal=True)
    assert "3 of 3 trained" in shown
    assert "done: test f1 80.50" in shown
