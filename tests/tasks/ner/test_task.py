"""Learning, however many processes share it; and a run, from training to evaluation."""

import json
import shutil

import pytest
import torch
from tasks.ner.cases import learner, train_run
from tasks.trainings import learnt, lrn, metrics

from lrn.training import checkpoint
from lrn.training.learner import Place

# Steps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_processes_average_to_the_gradient_of_one(world, count):
    """However the sentences divide, even if there are fewer than processes."""
    student, piece = learner(), list(range(count))
    expected = learnt(student, piece)
    parts = [learnt(student, piece, place=Place(rank, world)) for rank in range(world)]
    for whole, *shares in zip(expected.gradients, *(part.gradients for part in parts), strict=True):
        torch.testing.assert_close(sum(shares) / world, whole, rtol=0, atol=1e-12)
    assert sum(part.loss for part in parts) / world == pytest.approx(expected.loss, abs=1e-12)
    assert {part.tokens for part in parts} == {expected.tokens}


# Runs ---------------------------------------------------------------------------------------------


def test_the_run_folder(run):
    wanted = {"test_f1", "test_f1_last_epoch", "valid_f1", "parameters", "seconds_per_epoch"}
    assert wanted <= set(metrics(run))
    about = json.loads((run / "about.json").read_text())
    assert about["vectors"]["words"] == 2
    assert about["data"]["train"]["sentences"] == 40
    weights = checkpoint.load(run / "best.ckpt", "ner")["model"]
    (table,) = (value for key, value in weights.items() if "word" in key)
    assert table.shape[1] == 4  # the file's width, not that of the flags
    assert json.loads((run / "config.json").read_text())["word_width"] == 4


def test_evaluate(run, capsys):
    assert lrn("evaluate", run) == 0
    figures, found = json.loads(capsys.readouterr().out), metrics(run)
    assert figures.pop("part") == "test"
    assert figures.pop("sentences") == 40
    assert figures.pop("entities") == sum(row["entities"] for row in found["test"].values())
    for name in ("precision", "recall", "f1"):
        assert figures.pop(name) == found[f"test_{name}"]
    assert figures == found["test"]  # by type
    assert {"LOC", "PER"} <= set(figures)
    assert figures["LOC"].keys() == {"precision", "recall", "f1", "entities"}
    assert lrn("evaluate", run, "--part", "valid", "--last") == 0


@pytest.mark.parametrize("name", ["words.json", "characters.json", "tags.json", "best.ckpt"])
def test_a_run_that_lacks_a_file(run, name, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / name).unlink()
    for words in (("evaluate", copy), ("predict", copy)):
        assert lrn(*words) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"lrn: {copy} ")
        assert name in said
        assert said.count("\n") == 1


def test_resumed_to_the_same_weights(folder, tmp_path):
    settings = ["--epochs", "2", "--save_steps", "1", "--vectors", str(folder / "vectors.txt")]
    assert train_run(folder, tmp_path / "whole", *settings) == 0
    assert train_run(folder, tmp_path / "part", *settings, "--max_steps", "3") == 0
    config = json.loads((tmp_path / "part/config.json").read_text())
    (tmp_path / "part/config.json").write_text(json.dumps(config | {"max_steps": 0}))
    state = checkpoint.load(tmp_path / "part/last.ckpt", "ner")
    state["progress"]["finished"] = False
    checkpoint.save(tmp_path / "part/last.ckpt", "ner", state)
    (tmp_path / "part/metrics.json").unlink()
    assert lrn("train", "--resume", tmp_path / "part") == 0
    a, b = (checkpoint.load(tmp_path / name / "last.ckpt", "ner")["model"] for name in ("whole", "part"))
    assert all((a[name] == b[name]).all() for name in a)


def test_data_that_has_moved(run, folder, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "metrics.json").unlink()  # so that there is something left to do
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"data": str(tmp_path / "gone")}))
    for words in (("evaluate", copy), ("train", "--resume", copy)):
        assert lrn(*words) == 2
        assert "is no longer at" in capsys.readouterr().err
        assert lrn(*words, "--data", folder) == 0
        capsys.readouterr()


def test_wrong_input(folder, tmp_path, capsys):
    assert train_run(tmp_path, tmp_path / "out") == 2
    assert "lacks" in capsys.readouterr().err
    assert train_run(folder, tmp_path / "out", "--vectors", str(tmp_path / "absent")) == 2
    assert "absent" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert train_run(folder, tmp_path / "out", "--unit", "lrm") == 2
    assert "did you mean 'lrn'" in capsys.readouterr().err


def test_tags_that_training_never_has(run, folder, tmp_path, capsys):
    """They are named when a training begins and by an evaluation, also of other data."""
    data = shutil.copytree(folder, tmp_path / "data")
    for part, text in (
        ("valid", "Olympics B-EVENT\n\n"),
        ("test", "World B-EVENT\nCup I-EVENT\nCup I-EVENT\n"),
    ):
        with (data / f"{part}.txt").open("a") as file:
            file.write(text)
    said = [
        "warning: valid has tags that were never trained and cannot be found: B-EVENT (1)",
        "warning: test has tags that were never trained and cannot be found: B-EVENT (1), I-EVENT (2)",
    ]
    assert train_run(data, tmp_path / "run", "--max_steps", 1) == 0
    assert capsys.readouterr().err.splitlines()[2:4] == said
    assert lrn("evaluate", run, "--data", data) == 0
    assert capsys.readouterr().err.splitlines() == said


def test_nothing_is_said_of_tags_that_are_known(run, capsys):
    assert lrn("evaluate", run) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_sentence_that_cannot_be_one(folder, tmp_path, capsys):
    data = shutil.copytree(folder, tmp_path / "data")
    with (data / "train.txt").open("a") as file:
        file.write("so O\n" * 501)
    assert train_run(data, tmp_path / "run", "--max_steps", 1) == 0
    said = "warning: train: the longest sentence has 501 words; is there a blank line after each sentence?"
    assert said in capsys.readouterr().err.splitlines()
    assert json.loads((tmp_path / "run" / "about.json").read_text())["remarks"] == [
        said.removeprefix("warning: ")
    ]


def test_a_file_that_is_one_sentence(folder, tmp_path, capsys):
    data = shutil.copytree(folder, tmp_path / "data")
    (data / "test.txt").write_text("so O\n" * 61)
    assert train_run(data, tmp_path / "run", "--max_steps", 1) == 0
    said = "warning: test: the longest sentence has 61 words; is there a blank line after each sentence?"
    assert said in capsys.readouterr().err.splitlines()
