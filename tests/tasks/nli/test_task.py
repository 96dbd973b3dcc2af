"""Learning, however many processes share it; and a run, from training to evaluation."""

import json
import shutil

import numpy as np
import pytest
import torch
from tasks.nli.cases import learner, train_run, write_pairs
from tasks.trainings import learnt, lrn, metrics

from lrn.nn import smoothed_loss
from lrn.tasks.nli import task
from lrn.tasks.nli.data import read_builtin
from lrn.training import checkpoint
from lrn.training.learner import Place


@pytest.fixture(scope="module")
def pairs():
    return read_builtin(100)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("count", [3, 5])
def test_processes_average_to_the_gradient_of_one(world, count, pairs):
    student, piece = learner(pairs), np.arange(count)
    expected = learnt(student, piece)
    parts = [learnt(student, piece, place=Place(rank, world)) for rank in range(world)]
    for whole, *shares in zip(expected.gradients, *(part.gradients for part in parts), strict=True):
        torch.testing.assert_close(sum(shares) / world, whole, rtol=0, atol=1e-12)
    assert {part.tokens for part in parts} == {expected.tokens}


def test_the_gradient_of_a_step(pairs):
    """Of the smoothed loss and half the squared norm of all weights, on sentences cut short."""
    student = learner(pairs, l2=0.1, smoothing=0.1, longest=3)
    piece = np.array([3, 1, 7])
    found = learnt(student, piece)
    batch = student.kept.batch(pairs, "train", piece, 3)
    assert batch.premises.lengths.max() == 3
    loss = smoothed_loss(student.model(batch), batch.labels, 0.1)
    norm = sum(parameter.square().sum() for parameter in student.model.parameters())
    expected = torch.autograd.grad(loss + 0.1 / 2 * norm, list(student.model.parameters()))
    for ours, theirs in zip(found.gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_words_that_are_never_read_are_counted(pairs):
    sentences = [*pairs.train.premises.lengths, *pairs.train.hypotheses.lengths]
    lost = [length - 3 for length in sentences if length > 3]
    said = f"--longest 3 cuts {sum(lost):,} words off {len(lost):,} train sentences"
    short = learner(pairs, longest=3)
    assert short.task.unread(short) == [said]
    assert said in short.task.headline(short)
    whole = learner(pairs)
    assert whole.task.unread(whole) == []


@pytest.mark.parametrize("size", [1, 7, 64])
def test_pairs_are_labelled_in_the_order_given(size, pairs, monkeypatch):
    monkeypatch.setattr(task, "PAIRS", size)
    student, told = learner(pairs), []
    student.model.eval()
    with torch.no_grad():
        found = task.classify(student.loaded, pairs, "valid", told.append)
        for number in (0, 5, 17):
            batch = student.kept.batch(pairs, "valid", np.array([number]))
            torch.testing.assert_close(found[number], student.model(batch).softmax(-1)[0].float())
    assert told[-1] == 1


def test_the_run_folder(run):
    found = metrics(run)
    assert {"test_accuracy", "valid_accuracy", "test_loss", "parameters"} <= set(found)
    assert sum(row["pairs"] for row in found["test"].values()) == 60
    about = json.loads((run / "about.json").read_text())
    assert about["vectors"]["words"] == 2
    assert (about["data"]["train"]["pairs"], about["data"]["train"]["dropped"]) == (60, 0)
    weights = checkpoint.load(run / "best.ckpt", "nli")["model"]
    assert weights["input.word_vectors.learnt"].shape == (3, 4)  # the file's width; the special words alone
    assert not any("frozen" in name for name in weights)


def test_evaluate(run, capsys):
    assert lrn("evaluate", run) == 0
    figures, found = json.loads(capsys.readouterr().out), metrics(run)
    assert figures["part"] == "test"
    assert figures["accuracy"] == found["test_accuracy"]
    assert figures["loss"] == found["test_loss"]
    right = sum(row["accuracy"] * row["pairs"] for row in found["test"].values()) / 60
    assert right == pytest.approx(figures["accuracy"], abs=0.01)
    assert lrn("evaluate", run, "--part", "mismatched") == 0  # as MultiNLI calls what serves as test
    assert json.loads(capsys.readouterr().out)["accuracy"] == figures["accuracy"]
    assert lrn("evaluate", run, "--part", "valid", "--last") == 0


@pytest.mark.parametrize("name", ["words.json", "characters.json", "vectors.npy", "best.ckpt"])
def test_a_run_that_lacks_a_file(run, name, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / name).unlink()
    for words in (("evaluate", copy), ("predict", copy)):
        assert lrn(*words) == 2
        said = capsys.readouterr().err
        assert name in said
        assert said.count("\n") == 1


def test_resumed_to_the_same_weights(folder, tmp_path):
    settings = ["--epochs", "2", "--save_steps", "1", "--dropout", "0.3", "--ema", "0.9"]
    assert train_run(folder, tmp_path / "whole", *settings) == 0
    assert train_run(folder, tmp_path / "part", *settings, "--max_steps", "3") == 0
    config = json.loads((tmp_path / "part/config.json").read_text())
    (tmp_path / "part/config.json").write_text(json.dumps(config | {"max_steps": 0}))
    state = checkpoint.load(tmp_path / "part/last.ckpt", "nli")
    state["progress"]["finished"] = False
    checkpoint.save(tmp_path / "part/last.ckpt", "nli", state)
    (tmp_path / "part/metrics.json").unlink()
    assert lrn("train", "--resume", tmp_path / "part") == 0
    a, b = (checkpoint.load(tmp_path / name / "last.ckpt", "nli")["model"] for name in ("whole", "part"))
    assert all((a[name] == b[name]).all() for name in a)


def test_wrong_input(folder, tmp_path, capsys):
    assert train_run(tmp_path, tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert "lacks snli_1.0_train.jsonl and snli_1.0_dev.jsonl and snli_1.0_test.jsonl; expected" in said
    assert "or train.tsv, dev.tsv and test.tsv; without --data" in said
    assert train_run(folder, tmp_path / "out", "--norm", "rsm") == 2
    assert "did you mean 'rms'" in capsys.readouterr().err
    assert train_run(folder, tmp_path / "out", "--bert", tmp_path) == 2
    assert "lacks config.json" in capsys.readouterr().err
    broken = write_pairs(tmp_path / "broken", 5)
    (broken / "dev.tsv").write_text("premise\thypothesis\tlabel\nx\ty\n")
    assert train_run(broken, tmp_path / "out") == 2
    assert f"{broken}/dev.tsv, line 2: expected 3 columns" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
