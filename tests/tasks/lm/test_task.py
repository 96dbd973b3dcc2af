"""What becomes of a training of the language model in a run folder."""

import json
import math
import shutil

import pytest
import torch
from helpers import says
from tasks.lm.cases import (
    SGD,
    SIZES,
    best,
    train_run,
    write_corpus,
)
from tasks.trainings import begin, loop_of, lrn, metrics, resumed

from lrn.tasks.lm.config import LMConfig
from lrn.tasks.lm.data import read_folder
from lrn.tasks.lm.evaluate import mean_loss
from lrn.tasks.lm.task import TASK
from lrn.text.vocabulary import Vocabulary
from lrn.training import checkpoint
from lrn.training.run import Run

# What a training writes down -------------------------------------------------------------------------


def test_what_a_training_writes_down(run, data):
    found, corpus = metrics(run), read_folder(data)
    valid, test = (
        math.exp(mean_loss(best(run), part, n)) for part, n in ((corpus.valid, 2), (corpus.test, 1))
    )
    assert found["unit"] == "lrn"
    assert found["epochs"] == 2
    assert found["parameters"] == sum(p.numel() for p in best(run).parameters())
    assert found["valid_perplexity"] == pytest.approx(valid, abs=1e-3)
    assert found["test_perplexity"] == pytest.approx(test, abs=1e-3)
    assert Vocabulary.load(run / "vocabulary.json") == corpus.vocabulary
    about = Run.open(run).about()["data"]
    assert about["tokens"] == {"train": 419, "valid": 139, "test": 139}
    assert about["types"] == 6
    assert len(about["fingerprint"]) == 64


def test_unknown_words_are_said(data, tmp_path, capsys):
    """In the line with which a training begins, in about.json, and by an evaluation."""
    shares = {}
    for part in ("train", "valid", "test"):
        words = (data / f"{part}.txt").read_text().split()
        shares[part] = words.count("<unk>") / len(words)
    run = train_run(data, tmp_path / "run", "--epochs", 1)
    said = ", ".join(f"{part} {share:.1%}" for part, share in shares.items())
    assert f" types; <unk>: {said}\n" in capsys.readouterr().err
    rounded = {part: round(share, 4) for part, share in shares.items()}
    assert Run.open(run).about()["data"]["unknown"] == rounded
    assert lrn("evaluate", run) == 0
    assert json.loads(capsys.readouterr().out)["unknown_share"] == rounded["test"]


def test_the_fingerprint_knows_the_text(data, other_data):
    first = fingerprint(data)
    assert fingerprint(data) == first
    assert fingerprint(other_data) != first


def fingerprint(data):
    return TASK.read(LMConfig(), str(data), lambda share: None).about["fingerprint"]


def test_without_a_test(data, tmp_path):
    run = train_run(data, tmp_path / "run", "--test", "false")
    assert "valid_perplexity" in metrics(run)
    assert "test_perplexity" not in metrics(run)


def test_cut_short_it_is_validated_all_the_same(data, tmp_path):
    run = train_run(data, tmp_path / "run", "--max_steps", 1)
    assert metrics(run)["steps"] == 1
    assert metrics(run)["test_perplexity"] > 1
    assert lrn("evaluate", run) == 0


def test_no_best_weights(data, tmp_path, capsys):
    run = train_run(data, tmp_path / "run", "--max_steps", 1)
    (run / "best.ckpt").unlink()
    for words in (("evaluate", run), ("predict", run, "--prompt", "a")):
        assert lrn(*words) == 2
        assert "no best.ckpt" in capsys.readouterr().err
    start = ("train", "lm", *SIZES.split(), "--data", data, "--stage", "finetune", "--start", run)
    assert lrn(*start, "--out", tmp_path / "next") == 2
    assert "best.ckpt" in capsys.readouterr().err
    assert not (tmp_path / "next").exists()


def test_a_run_that_lost_its_state_is_left_alone(data, tmp_path, capsys):
    run = train_run(data, tmp_path / "run")
    before = (run / "best.ckpt").read_bytes()
    (run / "last.ckpt").unlink()
    assert lrn("train", "--resume", run) == 2
    assert "lost its last.ckpt" in capsys.readouterr().err
    assert (run / "best.ckpt").read_bytes() == before


def test_data_that_has_moved(data, tmp_path, capsys):
    here = shutil.copytree(data, tmp_path / "here")
    run = train_run(here, tmp_path / "run")
    here.rename(tmp_path / "there")
    assert lrn("evaluate", run) == 2
    assert "say where: --data" in capsys.readouterr().err
    assert lrn("evaluate", run, "--data", tmp_path / "there") == 0


@pytest.mark.parametrize("part", ["train", "valid"])
def test_too_little_text_leaves_no_run(tmp_path, part, capsys):
    lines = {"train": (1, 20, 20), "valid": (60, 1, 20)}[part]
    data = write_corpus(tmp_path / "data", lines=lines)
    words = ("--data", data, "--out", tmp_path / "run", "--batch_size", 3, "--valid_columns", 5)
    assert lrn("train", "lm", *words) == 2
    assert "columns need" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# Resuming --------------------------------------------------------------------------------------------


def test_resume_with_other_data(run, other_data, capsys):
    (run / "metrics.json").unlink()  # so that there is something left to do
    assert lrn("train", "--resume", run, "--data", other_data) == 2
    assert "the data is not what" in capsys.readouterr().err


def test_resume_of_a_finished_run(run, capsys):
    assert lrn("train", "--resume", run) == 0
    assert "is finished" in capsys.readouterr().err


# Finetuning a run ------------------------------------------------------------------------------------


def finetune(data, start, out, *words):
    return train_run(data, out, "--stage", "finetune", "--start", start, "--epochs", 3, *words)


def test_finetune_improves_on_the_best_weights(run, data, tmp_path):
    tuned = finetune(data, run, tmp_path / "tuned", "--lr", 2)
    assert metrics(tuned)["valid_perplexity"] < metrics(run)["valid_perplexity"]
    assert Run.open(tuned).about()["start"] == str(run)
    assert lrn("evaluate", tuned) == 0


def test_finetune_that_does_not_improve_keeps_the_start(run, data, tmp_path):
    """With a learning rate that spoils everything."""
    tuned = finetune(data, run, tmp_path / "tuned", "--lr", 20, "--nonmono", 1)
    before, after = best(run).state_dict(), best(tuned).state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert metrics(tuned)["valid_perplexity"] == metrics(run)["valid_perplexity"]
    assert metrics(tuned)["test_perplexity"] == metrics(run)["test_perplexity"]
    assert metrics(tuned)["best_epoch"] == -1


def test_finetune_begins_with_the_best_weights(run, data):
    config = LMConfig(**Run.open(run).config | {"stage": "finetune", "start": str(run), "lr": 1.0})
    student = TASK.prepare(config)
    assert all(map(torch.equal, student.model.parameters(), best(run).parameters()))
    assert student.progress.best == pytest.approx(mean_loss(best(run), read_folder(data).valid, 2))
    assert student.averaging


def test_finetune_needs_the_same_residual_connections(data, tmp_path):
    """Which the weights do not tell."""
    run = train_run(data, tmp_path / "run", "--layers", 3, "--max_steps", 1)
    config = LMConfig(**Run.open(run).config | {"stage": "finetune", "start": str(run), "residual": True})
    with pytest.raises(ValueError, match="was trained without, not with --residual"):
        TASK.prepare(config)


def test_finetune_of_weights_without_figures(run):
    """As `lrn import` makes them."""
    state = checkpoint.load(Run.open(run).best, "lm")
    checkpoint.save(Run.open(run).best, "lm", state | {"figures": {}})
    config = LMConfig(**Run.open(run).config | {"stage": "finetune", "start": str(run)})
    assert TASK.prepare(config).progress.best == pytest.approx(state["figures"]["loss"])


def test_finetune_resumes_where_nothing_was_saved_yet(run, data, tmp_path):
    """Of a run that was killed before its first step there is all that it starts from."""
    tuned = finetune(data, run, tmp_path / "tuned", "--lr", 20, "--nonmono", 1)
    first = resumed(Run.open(tuned)).learner.progress.best
    assert first == pytest.approx(checkpoint.load(Run.open(run).best, "lm")["figures"]["loss"])
    config = LMConfig(**Run.open(tuned).config)
    begin(loop_of(TASK.prepare(config)), tmp_path / "begun").release()
    student = resumed(Run.open(tmp_path / "begun")).learner
    assert student.progress.step == 0
    assert student.progress.best == first
    assert all(map(torch.equal, student.model.parameters(), best(run).parameters()))
    assert all(map(torch.equal, best(tmp_path / "begun").parameters(), best(run).parameters()))


def test_finetune_with_another_vocabulary(run, other_data, tmp_path, capsys):
    words = ("--stage", "finetune", "--start", run, "--data", other_data, "--out", tmp_path / "tuned")
    assert lrn("train", "lm", *SIZES.split(), *words) == 2
    assert "vocabularies differ" in capsys.readouterr().err
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize("own", [("--hidden", 7), ("--unit", "lstm")])
def test_finetune_of_another_shape(run, data, tmp_path, capsys, own):
    words = ("--stage", "finetune", "--start", run, "--data", data, "--out", tmp_path / "tuned")
    assert lrn("train", "lm", *SIZES.split(), *SGD.split(), *words, *own) == 2
    assert "not this model's" in capsys.readouterr().err
    assert not (tmp_path / "tuned").exists()


# Loading ---------------------------------------------------------------------------------------------


def test_load(run):
    loaded = TASK.load(Run.open(run))
    assert not loaded.model.training
    assert loaded.model.words == len(loaded.kept.vocabulary) == 6
    assert loaded.config.hidden == 6


def test_weights_of_another_model(run):
    settings = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(settings | {"hidden": 7}))
    with pytest.raises(ValueError, match=says("not this model's", "shape")):
        TASK.load(Run.open(run))
