"""Translation as a task: what it learns from, how it is scored, what a run keeps."""

import json
import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tasks.mt.cases import SMALL, learner, train_run, write_pairs
from tasks.trainings import lrn, metrics

from lrn.tasks.mt.config import MTConfig
from lrn.tasks.mt.data import read_builtin, read_folder
from lrn.tasks.mt.search import Search
from lrn.tasks.mt.task import TASK, loss_of, translate
from lrn.training import checkpoint
from lrn.training.learner import Place
from lrn.training.run import Run


def figures(capsys, *words):
    capsys.readouterr()
    assert lrn("evaluate", *words, "--threads", 1) == 0
    return json.loads(capsys.readouterr().out)


# Learning -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_a_mean_over_sentences(smoothing):
    """Of the means over their pieces, and each of them smoothed; written out."""
    student = learner(smoothing=smoothing)
    piece = np.array([3, 1, 7, 20])
    batch = student.batch(piece, Place())
    scores = batch.target.pad(student.model(batch))
    labels = batch.target.pad(batch.labels)
    types, total = scores.shape[-1], 0.0
    for row, length in enumerate(batch.target.lengths.tolist()):
        mean = 0.0
        for step in range(length):
            logs = F.log_softmax(scores[row, step], -1)
            shares = torch.full_like(logs, smoothing / (types - 1))
            shares[labels[row, step]] = 1 - smoothing
            mean += (shares * (shares.clamp_min(1e-300).log() - logs)).sum().item() / length
        total += mean / len(piece)
    assert student.loss(batch).objective.item() == pytest.approx(total, abs=1e-12)


def test_batches_hold_so_many_tokens():
    student = learner(batch_tokens=150)
    plan = student.plan(0)
    assert sorted(np.concatenate(plan).tolist()) == [*range(100)]
    for piece in plan:
        longest = student.lengths[:, piece].max()
        assert len(piece) * longest <= 150
        batch = student.batch(piece, Place())
        assert student.tokens(piece) == len(batch.source.tokens) + len(batch.labels)


def test_the_schedule_goes_by_steps():
    student = learner(schedule="chen", lr=0.1, replicas=4, warmup=5, decay_from=100, decay_to=200)
    step = student.steps(0)[0]
    rates = []
    for done in (0, 10, 20, 50):
        student.progress.step = done
        rates.append(student.rate(step))
    assert rates == pytest.approx([0.1, 0.25, 0.4, 0.05])


def test_it_learns():
    """A few sentences by heart."""
    student = learner(optimizer="adam", lr=0.02, smoothing=0.0, hidden=16)
    student.model.float()
    batch = student.batch(np.arange(4), Place())
    optimizer = student.optimizer()
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = student.loss(batch).objective
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_nothing_left_to_learn_from(tmp_path):
    folder = write_pairs(tmp_path / "text", 5)
    data = read_folder(folder, "en", "de", lambda share: None)
    config = MTConfig(**SMALL, data=str(folder), longest=1)
    with pytest.raises(ValueError, match="no pair is left for training; dropped: 5 too long"):
        TASK.learner_on(config, data, TASK.first_kept(config, data))


# Scores -------------------------------------------------------------------------------------------


def test_the_loss_of_a_part():
    """Whatever the batches are."""
    student = learner()
    pairs = student.kept.numbered(student.data, "valid")
    student.model.eval()
    with torch.no_grad():
        assert loss_of(student.loaded, pairs, 4) == pytest.approx(loss_of(student.loaded, pairs, 30))


def test_translations_are_in_the_order_of_the_part():
    student = learner()
    pairs = student.kept.numbered(student.data, "valid")
    student.model.eval()
    with torch.no_grad():
        one_by_one, together = (
            translate(student.loaded, pairs, Search(2, further=3), size, lambda share: None)
            for size in (1, 7)
        )
    assert [best[0].pieces for best in one_by_one] == [best[0].pieces for best in together]


def test_every_figure_of_a_run(run):
    found = metrics(run)
    for name in ("bleu", "bleu_lc", "bleu_tok", "bleu_tok_lc", "chrf", "exact", "loss"):
        assert {f"valid_{name}", f"test_{name}"} <= found.keys()
    assert "tok:13a" in found["test"]["signatures"]["bleu"]
    assert found["test"]["decoding"]["beam"] == 4


def test_parts_by_name(run, folder, capsys, tmp_path):
    """Of the run's folder, and of another that has no training part."""
    first, second = (figures(capsys, run, "--part", f"test_{year}") for year in (2016, 2017))
    assert first["bleu"] == metrics(run)["test_bleu"]
    assert first["loss"] != second["loss"]
    for language, three in (("en", "eng"), ("de", "deu")):
        shutil.copy(folder / f"test_2017.{language}", tmp_path / f"news.{three}")
    elsewhere = figures(capsys, run, "--data", tmp_path, "--part", "news")
    assert elsewhere["loss"] == second["loss"]
    assert lrn("evaluate", run, "--part", "test_2018") == 2
    assert "lacks test_2018.en and test_2018.de; expected pairs of files like " in capsys.readouterr().err


def test_translations_in_a_file(run, capsys, tmp_path):
    found = figures(capsys, run, "--write", tmp_path / "found.de", "--batch_size", 7)
    lines = (tmp_path / "found.de").read_text().splitlines()
    assert len(lines) == found["pairs"]
    assert lrn("evaluate", run, "--write", tmp_path / "found.de") == 2
    assert "found.de exists; choose another name, or add --overwrite" in capsys.readouterr().err
    assert figures(capsys, run, "--write", tmp_path / "found.de", "--overwrite")["bleu"] == found["bleu"]


def test_a_source_of_nothing_is_translated_by_nothing(run, folder, capsys, tmp_path):
    (tmp_path / "odd.en").write_text("\n   \n☃\n")
    (tmp_path / "odd.de").write_text("\nnichts\n☃\n")
    figures(capsys, run, "--data", tmp_path, "--part", "odd", "--write", tmp_path / "found")
    lines = (tmp_path / "found").read_text().split("\n")
    assert lines[:2] == ["", ""]
    assert len(lines) == 4


# Runs ---------------------------------------------------------------------------------------------


def test_what_a_run_keeps(run):
    config = json.loads((run / "config.json").read_text())
    assert config["text"] == "raw", "what was found out"
    about = json.loads((run / "about.json").read_text())
    assert about["pieces"]["dropped"] == {}
    assert about["data"]["languages"] == ["en", "de"]
    for name in ("bpe.json", "source.json", "target.json", "epoch-2.ckpt", "epoch-3.ckpt"):
        assert (run / name).exists()
    assert not (run / "epoch-1.ckpt").exists()


def test_broken_pairs_are_reported(folder, tmp_path, capsys):
    text = shutil.copytree(folder, tmp_path / "text")
    for language, lines in (("en", "\nshort\n"), ("de", "leer\n" + "lang " * 30 + "\n")):
        with (text / f"train.{language}").open("a") as file:
            file.write(lines)
    assert train_run(text, tmp_path / "run", "--max_steps", 1, "--ratio", 3.0, "--test", "false") == 0
    assert "dropped: 1 empty, 1 ratio" in capsys.readouterr().err
    about = json.loads((tmp_path / "run/about.json").read_text())
    assert about["pieces"]["dropped"] == {"empty": 1, "ratio": 1}


def test_segmented_text(folder, tmp_path, capsys):
    """It is known by its looks, and what comes of it is whole words."""
    for path in folder.iterdir():
        lines = [
            " ".join(word[:2] + "@@ " + word[2:] if len(word) > 3 else word for word in line.split())
            for line in path.read_text().splitlines()
        ]
        (tmp_path / path.name).write_text("\n".join(lines) + "\n")
    assert train_run(tmp_path, tmp_path / "run", "--max_steps", 1) == 0
    assert json.loads((tmp_path / "run/config.json").read_text())["text"] == "segmented"
    assert not (tmp_path / "run/bpe.json").exists()
    (tmp_path / "lines").write_text("Th@@ e fi@@ lm\n")
    capsys.readouterr()
    assert lrn("predict", tmp_path / "run", "--files", tmp_path / "lines") == 0
    assert "@@" not in capsys.readouterr().out


def test_resumed_to_the_same_weights(folder, tmp_path):
    """And to the same kept epochs."""
    settings = ["--epochs", 2, "--save_steps", 1, "--keep_epochs", 1, "--ema", "0.5"]
    assert train_run(folder, tmp_path / "whole", *settings) == 0
    assert train_run(folder, tmp_path / "part", *settings, "--max_steps", 3) == 0
    config = json.loads((tmp_path / "part/config.json").read_text())
    (tmp_path / "part/config.json").write_text(json.dumps(config | {"max_steps": 0}))
    state = checkpoint.load(tmp_path / "part/last.ckpt", "mt")
    state["progress"]["finished"] = False
    checkpoint.save(tmp_path / "part/last.ckpt", "mt", state)
    (tmp_path / "part/metrics.json").unlink()
    assert lrn("train", "--resume", tmp_path / "part") == 0
    for name in ("last.ckpt", "epoch-2.ckpt"):
        a, b = (checkpoint.load(tmp_path / run / name, "mt")["model"] for run in ("whole", "part"))
        assert all(torch.equal(a[key], b[key]) for key in a)
    assert not (tmp_path / "part/epoch-1.ckpt").exists()


def test_a_part_that_is_missing(folder, tmp_path, capsys):
    """Before anything is learnt."""
    text = shutil.copytree(folder, tmp_path / "text", ignore=shutil.ignore_patterns("test*"))
    assert train_run(text, tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "lacks test.en and test.de" in said
    assert "to train without a test: --test false" in said
    assert train_run(text, tmp_path / "run", "--max_steps", 1, "--test", "false") == 0


def test_the_other_way_round(folder, tmp_path):
    words = ["--source", "de", "--target", "en", "--max_steps", 1, "--test", "false"]
    assert train_run(folder, tmp_path / "run", *words) == 0
    loaded = TASK.load(Run.open(tmp_path / "run"))
    assert loaded.kept.codes.target.language == "en"


def test_the_papers_figures():
    data = {"train": {"pairs": 4_500_000}}
    assert TASK.printed({"preset": "paper"}, data)["lrn"] == "26.26"
    assert TASK.printed({"preset": "small"}, read_builtin(100).about) == {}
