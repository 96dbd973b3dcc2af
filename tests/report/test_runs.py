"""A table of runs says what the runs' files say: rows, settings that differ, means, and what is not there."""

import json
import math

import pytest
from helpers import says

from lrn.report import runs
from lrn.report.runs import Figure, Trained


def trained(unit="lrn", seed=1, score=80.0, **more):
    values = {
        "folder": f"runs/{unit}-{seed}",
        "unit": unit,
        "seed": seed,
        "settings": {"data": "snli", "preset": "paper", "lr": 0.001, "norm": "none"},
        "usual": {"lr": 0.001, "norm": "none"},
        "planned": 2,
        "epochs": 2,
        "parameters": 1234,
        "curve": ((1, score - 10), (2, score - 1)),
        "tests": {"test_accuracy": score, "test_loss": 0.5},
    }
    return Trained(**values | more)


def table(*given, **more):
    return runs.table("nli", given, **{"metric": "test_accuracy", "lower_is_better": False} | more)


UNFINISHED = {"epochs": None, "parameters": None, "tests": {}, "curve": ((1, 70.0),)}


def test_a_row_for_each_run():
    found = runs.cells(table(trained(paper={"paper": "84.88"}), trained("lstm", score=90.126)))
    assert found == [
        [
            *("unit", "seed", "parameters", "epochs"),
            *("validation accuracy after each epoch", "test accuracy", "paper"),
        ],
        ["lrn", "1", "1,234", "2", "70.00, 79.00", "80.00", "84.88"],
        ["lstm", "1", "1,234", "2", "80.13, 89.13", "90.13", ""],
    ]


def test_seeds_are_one_row_with_mean_and_deviation():
    given = trained(seed=1, score=80.0), trained("gru"), trained(seed=2, score=82.0)
    (_, lrn, gru) = runs.cells(table(*given))
    assert lrn == ["lrn", "1, 2", "1,234", "2", "71.00 ± 1.41, 80.00 ± 1.41", "81.00 ± 1.41"]
    assert gru[:2] == ["gru", "1"]
    assert [row[1] for row in runs.cells(table(*given, single=True))[1:]] == ["1", "1", "2"]


@pytest.mark.parametrize(
    "other",
    [
        {"unit": "lstm"},
        {"planned": 3},
        {"parameters": 99},
        {"settings": {"data": "snli", "preset": "paper", "lr": 0.002, "norm": "none"}},
        UNFINISHED,
    ],
)
def test_only_what_differs_by_the_seed_alone_is_one_row(other):
    assert len(table(trained(seed=1), trained(**{"seed": 2} | other)).rows) == 2
    assert len(table(trained(seed=1), trained(seed=1, **other)).rows) == 2


def test_the_same_seed_twice_is_no_second_seed():
    assert [row.seeds for row in table(trained(), trained(folder="again"), trained(seed=2)).rows] == [
        (1, 2),
        (1,),
    ]


def test_settings_that_differ_have_a_column():
    one = {"data": "snli", "preset": "paper", "lr": 0.001, "norm": "none"}
    found = runs.cells(table(trained(settings=one), trained(settings=one | {"lr": 0.00003, "norm": None})))
    assert found[0][4:6] == ["lr", "norm"]
    assert [row[4:6] for row in found[1:]] == [["0.001", "none"], ["3e-05", "none"]]


def test_settings_that_the_preset_explains_have_none():
    one = {"data": "snli", "preset": "paper", "lr": 0.001, "norm": "none"}
    other = trained(settings=one | {"preset": "paper-ln", "norm": "rms"}, usual={"lr": 0.001, "norm": "rms"})
    assert table(trained(settings=one), other).settings == ("preset",)
    changed = trained(settings=one | {"norm": "rms"}, usual={"lr": 0.001, "norm": "none"})
    assert table(trained(settings=one), other, changed).settings == ("preset", "norm")


def test_an_unfinished_run_says_so():
    header, row = runs.cells(table(trained(**UNFINISHED)))
    assert dict(zip(header, row, strict=True)) == {
        "unit": "lrn",
        "seed": "1",
        "parameters": "",
        "epochs": "1 of 2, unfinished",
        "validation accuracy after each epoch": "70.00",
        "test accuracy": "",
    }
    (_, row) = runs.cells(table(trained(**UNFINISHED | {"curve": ()}), validation="best"))
    assert row[3:5] == ["0 of 2, unfinished", ""]


@pytest.mark.parametrize(
    ("validation", "lower", "heading", "expected"),
    [
        ("each", False, "validation accuracy after each epoch", "70.00, 75.00, 73.00"),
        ("best", False, "validation accuracy, the best", "75.00"),
        ("best", True, "validation accuracy, the best", "70.00"),
        ("last", False, "validation accuracy after the last epoch", "73.00"),
    ],
)
def test_validation(validation, lower, heading, expected):
    run = trained(curve=((1, 70.0), (2, 75.0), (3, 73.0)))
    header, row = runs.cells(table(run, validation=validation, lower_is_better=lower))
    assert row[header.index(heading)] == expected


def test_a_seed_that_stopped_before_another():
    short = trained(seed=2, epochs=1, curve=((1, 72.0),))
    (_, row) = runs.cells(table(trained(seed=1), short))
    assert row[3:5] == ["1 to 2", "71.00 ± 1.41"]


def test_the_last_epochs_figure_stands_beside_the_bests_where_there_is_one():
    run = trained(tests={"test_accuracy": 80.0, "test_accuracy_last_epoch": 79.5})
    header, row = runs.cells(table(run))
    assert (header[-2:], row[-2:]) == (["test accuracy, last epoch", "test accuracy"], ["79.50", "80.00"])


def test_other_test_figures():
    header, row = runs.cells(table(trained(), tests=["loss"]))
    assert (header[-1], row[-1]) == ("test loss", "0.50")
    with pytest.raises(ValueError, match=says("runs of nli have no test f1", "accuracy, loss")):
        table(trained(), tests=["f1"])
    with pytest.raises(ValueError, match="none is tested"):
        table(trained(**UNFINISHED), tests=["f1"])


def test_markdown():
    one = table(trained(settings={"data": "a|b"}, usual={}), trained(settings={"data": "c"}, **UNFINISHED))
    assert runs.markdown([one]) == (
        "| unit | seed | parameters | epochs | data "
        "| validation accuracy after each epoch | test accuracy |\n"
        "|---|---|---:|---:|---|---|---:|\n"
        "| lrn | 1 | 1,234 | 2 | a\\|b | 70.00, 79.00 | 80.00 |\n"
        "| lrn | 1 | – | 1 of 2, unfinished | c | 70.00 | – |\n"
    )
    two = runs.markdown([one, table(trained())])
    assert two.startswith("**nli**\n\n| unit |")
    assert "\n\n**nli**\n\n| unit |" in two


def test_csv():
    text = runs.comma_separated([table(trained()), table(trained("gru"))])
    first, second = text.split("\n\n")
    assert first.splitlines()[1] == 'nli,lrn,1,"1,234",2,"70.00, 79.00",80.00'
    assert second.splitlines()[1].startswith("nli,gru,")


def test_json_has_every_value_and_nothing_that_json_has_not():
    given = trained(seed=1, score=80.0), trained(seed=2, score=math.nan)
    (found,) = json.loads(json.dumps(runs.to_json([table(*given)]), allow_nan=False))
    (row,) = found["rows"]
    assert row["runs"] == ["runs/lrn-1", "runs/lrn-2"]
    assert row["tests"]["test_accuracy"] == {"values": [80.0, None], "mean": None, "deviation": None}


def test_a_training_that_came_to_nothing():
    assert str(Figure((math.nan, 3.0))) == "nan"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "metrics.json is damaged"),
        ("[]", "must be an object"),
        ('{"parameters": 3}', "epochs is missing"),
        ('{"parameters": "3", "epochs": 1}', "parameters must be a whole number, got '3'"),
        ('{"parameters": 3, "epochs": 1, "test_f1": "x"}', "test_f1 must be a number, got 'x'"),
    ],
)
def test_damaged_metrics(text, expected, tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=expected) as error:
        runs.read_metrics(path)
    assert str(path) in str(error.value)


def test_a_log(tmp_path):
    path = tmp_path / "log.csv"
    assert runs.read_curve(path, "valid_f1") == ()
    path.write_text("step,epoch,train_loss\n20,0,0.5\n")
    assert runs.read_curve(path, "valid_f1") == ()
    path.write_text("step,epoch,train_loss,valid_f1\n20,0,0.5,\n30,1,,70.5\n")
    assert runs.read_curve(path, "valid_f1") == ((1, 70.5),)
    path.write_text("step,epoch,train_loss,valid_f1\n30,one,,70.5\n")
    with pytest.raises(ValueError, match=r"log\.csv is damaged"):
        runs.read_curve(path, "valid_f1")
