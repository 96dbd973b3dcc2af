"""`lrn compare`: trains what is not trained yet, and reports the runs' own figures."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from compare.cases import Copied, Made, finished, timed
from report.cases import results

from lrn import cli, compare
from lrn.compare import trainings
from lrn.report.results import Comparison
from lrn.tasks import load

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
    patch.setattr(compare, "time_units", lambda task, configs: timed(configs))
    assert run(folder, out) == 0
    patch.undo()
    return out


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
    monkeypatch.setattr(trainings, "start", lambda *args: pytest.fail("trains again"))
    monkeypatch.setattr(compare, "time_units", lambda *args: pytest.fail("measures again"))
    assert run(folder, out) == 0


@pytest.mark.slow
def test_another_comparison_in_the_same_folder(folder, out, capsys):
    assert run(folder, out, "--lr", "0.5") == 2
    assert "holds a comparison with other lr (0.01, now 0.5); choose another" in capsys.readouterr().err


@pytest.mark.slow
def test_units_and_seeds_are_added_to_a_finished_comparison(folder, out, tmp_path, monkeypatch, capsys):
    """Only what is missing is trained, the times of all units are measured anew, and nothing is lost."""
    mine = tmp_path / "comparison"
    shutil.copytree(out, mine)
    before = {path: path.stat().st_mtime_ns for path in mine.glob("runs/*/metrics.json")}
    begun, timings = [], []

    def train(task, training):
        begun.append(training.folder.name)
        return Copied(out / "runs" / "lstm-1", training.folder)

    monkeypatch.setattr(trainings, "start", train)
    monkeypatch.setattr(
        compare, "time_units", lambda task, configs: timings.append([*configs]) or timed(configs)
    )
    assert run(folder, mine, "--seeds", "2,1", units="gru") == 0
    assert begun == ["gru-1", "lrn-2", "lstm-2", "gru-2"]
    assert timings == [["lrn", "lstm", "gru"]]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert f"{mine} also has lrn, lstm: kept" in capsys.readouterr().out
    results = Comparison.read(mine / "results.json")
    assert (list(results.units), results.seeds) == (["lrn", "lstm", "gru"], (1, 2))
    assert all(len(row.scores) == 2 for row in results.units.values())
    assert results.command.endswith("--units lrn,lstm,gru --seeds 1,2")
    assert run(folder, mine) == 0  # as it was typed at first
    assert "also has gru and seed 2: kept" in capsys.readouterr().out
    assert (len(begun), len(timings)) == (4, 1)
    assert Comparison.read(mine / "results.json") == results


@pytest.mark.slow
def test_times_are_measured_on_the_same_batches(folder):
    from lrn.tasks.lm.config import LMConfig

    config = LMConfig(
        data=str(folder), embedding=8, hidden=12, last=8, layers=2, batch_size=4, bptt=10, delta=4, threads=1
    )
    times = compare.time_units(
        "lm", {unit: replace(config, unit=unit) for unit in ("lrn", "lstm")}, seconds=0.1
    )
    assert all(taken.median > 0 for taken in times.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--units", "lrn,lrm"], "did you mean 'lrn'"),
        (["--units", "lrn,lrn"], "different units"),
        (["--units", ""], "different units"),
        (["--seeds", "1,x"], "--seeds"),
        (["--seeds", "1,1"], "--seeds"),
        (["--lrs", "0.1,x"], "--lrs must be different positive numbers separated by commas"),
        (["--lrs", "0.1,0.10"], "got '0.1,0.10'"),
        (["--lrs", "0,0.1"], "got '0,0.1'"),
        (["--lrs", "nan"], "got 'nan'"),
        (["--lrs", ""], "got ''"),
        (["--against", "papr"], "unknown --against 'papr'; allowed: paper; did you mean 'paper'?"),
        (["--match", "size"], "unknown --match 'size'; allowed: width, parameters, time"),
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
    monkeypatch.setattr(trainings, "start", lambda *args: failing)
    assert run(folder, tmp_path / "out") == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "lrn: training lstm (seed 1) failed: no luck"


def test_help(capsys):
    assert cli.main(["compare", "--help"]) == 0
    assert "[TASK]" in capsys.readouterr().out


def test_classifiers_come_with_a_picture_of_their_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "time_units", lambda task, configs: timed(configs))
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
    assert list(compare._known_times(path, ["lrn", "lstm"])) == ["lrn", "lstm"]
    for others in (["lrn"], ["lstm", "lrn", "gru"], ["lrn", "gru"]):
        assert compare._known_times(path, others) == {}
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"results\.json is damaged, or another file"):
        compare._known_times(path, ["lstm", "lrn"])


def test_every_unit_with_the_learning_rate_that_validates_best(tmp_path, monkeypatch, capsys):
    """What is tried first, what is trained then, and that both are told of."""
    scores = {"lstm-0.01": 70.5, "lstm-0.1": 60.0, "lrn-0.01": 70.0, "lrn-0.1": 80.25}
    begun, timings = {}, []

    def train(task, training):
        begun[training.folder.name] = training.settings
        return Made(training.folder, valid_f1=scores.get(training.folder.name, 50.0), test_f1=75.0)

    monkeypatch.setattr(trainings, "start", train)
    monkeypatch.setattr(compare, "_memory", lambda *given: None)  # there are no models
    monkeypatch.setattr(
        compare, "time_units", lambda task, configs: timings.append(configs) or timed(configs)
    )
    words = ["compare", "ner", "--units", "lstm,lrn", "--lrs", "0.1,0.01", "--out", str(tmp_path / "out")]
    assert cli.main([*words, "--seeds", "3,4"]) == 0
    assert list(begun) == [*scores, "lstm-3", "lrn-3", "lstm-4", "lrn-4"]
    assert {begun[name]["lr"] for name in ("lstm-3", "lstm-4")} == {0.01}
    assert {begun[name]["lr"] for name in ("lrn-3", "lrn-4")} == {0.1}
    assert {unit: config.lr for unit, config in timings[0].items()} == {"lstm": 0.01, "lrn": 0.1}
    found = Comparison.read(tmp_path / "out" / "results.json")
    assert found.trials.chosen == {"lstm": 0.01, "lrn": 0.1}
    assert (found.units["lrn"].own, found.config["lr"]) == ({"lr": 0.1}, "by unit")
    assert "| lrn | 70.000 | **80.250†** |" in (tmp_path / "out" / "table.md").read_text()
    assert "80.250†" in (tmp_path / "out" / "report.html").read_text()
    assert "4/4 lrn, lr 0.1: done: valid f1 80.25" in capsys.readouterr().out
    begun.clear()
    assert cli.main([*words, "--units", "gru", "--seeds", "2"]) == 0  # trials keep their seed
    assert list(begun) == ["gru-0.01", "gru-0.1", "lrn-2", "lstm-2", "gru-2", "gru-3", "gru-4"]
    assert {begun[name]["seed"] for name in ("gru-0.01", "gru-0.1")} == {3}
    assert cli.main([*words[:-4], "--lrs", "0.2", *words[-2:]]) == 2
    assert "holds a comparison with other lrs (0.01,0.1, now 0.2); choose" in capsys.readouterr().err


def test_the_papers_scores_beside_those_of_other_data(tmp_path, monkeypatch):
    """They are shown where it is asked for, and headed as what they are; that is no other comparison."""
    monkeypatch.setattr(trainings, "start", lambda task, training: Made(training.folder, test_f1=75.0))
    monkeypatch.setattr(compare, "_memory", lambda *given: None)  # there are no models
    monkeypatch.setattr(compare, "time_units", lambda task, configs: timed(configs))
    words = ["compare", "ner", "--units", "lstm,lrn", "--out", str(tmp_path / "out")]
    assert cli.main(words) == 0
    assert "paper" not in (tmp_path / "out" / "table.md").read_text()
    assert cli.main([*words, "--against", "paper"]) == 0
    shown = (tmp_path / "out" / "table.md").read_text()
    assert "| paper (its own data and size) |" in shown
    assert "| 88.56 |" in shown
    assert (
        "The paper's scores are of CoNLL-2003, 14,041 sentences: its data and the size of its model are not"
        in shown
    )
    assert "The paper&#x27;s scores are of CoNLL-2003" in (tmp_path / "out" / "report.html").read_text()


def test_widths_that_match(tmp_path, monkeypatch, capsys):
    """Every unit is trained, tried and timed with its own width, and the page and the table show it."""
    begun, timings = {}, []

    def train(task, training):
        begun[training.folder.name] = training.settings
        return Made(training.folder, valid_f1=70.0, test_f1=75.0)

    monkeypatch.setattr(trainings, "start", train)
    monkeypatch.setattr(compare, "_memory", lambda *given: None)  # there are no models
    monkeypatch.setattr(
        compare, "time_units", lambda task, configs: timings.append(configs) or timed(configs)
    )
    small = "--sentences 8 --hidden 12 --word_width 6 --dense 6 --threads 1 --lrs 0.1"
    words = ["compare", "ner", "--units", "lstm,lrn", "--out", str(tmp_path / "out"), *small.split()]
    assert cli.main([*words, "--match", "parameters"]) == 0
    width = begun["lstm-1"]["hidden"]
    assert width < begun["lrn-1"]["hidden"] == 12
    assert begun["lstm-0.1"]["hidden"] == width
    assert {unit: config.hidden for unit, config in timings[0].items()} == {"lstm": width, "lrn": 12}
    found = Comparison.read(tmp_path / "out" / "results.json")
    assert (found.matched.widths, found.config["hidden"]) == ({"lstm": width, "lrn": 12}, "by unit")
    shown = (tmp_path / "out" / "table.md").read_text()
    assert "| unit | hidden | lr |" in shown
    assert (
        "every model has about as many parameters as lrn's; relative to it when they were chosen: lstm "
        in shown
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "only the recurrent unit changed, and with it hidden and lr." in page
    assert "every model has about as many parameters as lrn" in page
    assert cli.main(words) == 2
    assert "holds a comparison with other match (parameters, now width); choose" in capsys.readouterr().err
