"""Weights of the latest epochs: kept, no more than asked for, and their mean as a run of its own."""

import json
import shutil

import pytest
import torch
from runs import TINY, flags, trained

from lrn import cli
from lrn.training import checkpoint
from lrn.training.average import mean


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    """Four epochs, of which the last three are kept. Not to be changed."""
    out = tmp_path_factory.mktemp("kept") / "run"
    trained("lm", "--data", text, "--out", out, *TINY, *flags(epochs=4, keep_epochs=3, ema=0.5))
    return out


def lrn(*words):
    return cli.main([str(word) for word in words])


def weights(path):
    return checkpoint.load(path, "lm")["model"]


def test_the_latest_are_kept(run):
    assert sorted(path.name for path in run.glob("epoch-*")) == [f"epoch-{n}.ckpt" for n in (2, 3, 4)]
    best = checkpoint.load(run / "best.ckpt", "lm")
    if best["epoch"] > 1:
        kept = checkpoint.load(run / f"epoch-{best['epoch']}.ckpt", "lm")
        assert kept["figures"] == best["figures"], "the weights that were validated"
        assert all(torch.equal(kept["model"][name], best["model"][name]) for name in best["model"])


def test_their_mean(run, tmp_path, capsys):
    assert lrn("average", run, "--last", 3, "--out", tmp_path / "mean") == 0
    assert "the mean of the weights after epochs 2, 3, 4" in capsys.readouterr().out
    found = weights(tmp_path / "mean/best.ckpt")
    each = [weights(run / f"epoch-{n}.ckpt") for n in (2, 3, 4)]
    for name, value in found.items():
        expected = torch.stack([state[name].double() for state in each]).mean(0)
        torch.testing.assert_close(value.double(), expected, rtol=1e-7, atol=1e-7)
    assert not (tmp_path / "mean/last.ckpt").exists()
    assert not [*(tmp_path / "mean").glob("epoch-*")]
    assert lrn("evaluate", tmp_path / "mean", "--threads", 1) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] > 1


def test_of_one_epoch(run, tmp_path):
    assert lrn("average", run, "--last", 1, "--out", tmp_path / "one") == 0
    found, last = weights(tmp_path / "one/best.ckpt"), weights(run / "epoch-4.ckpt")
    assert all(torch.equal(found[name], last[name]) for name in last)


def test_where_it_goes_by_default(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    assert lrn("average", copy, "--last", 2) == 0
    assert (tmp_path / "copy-average/best.ckpt").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "copy-average"]


def test_what_cannot_be(run, tmp_path, capsys):
    assert lrn("average", run, "--last", 5, "--out", tmp_path / "x") == 2
    assert (
        "has the weights of 3 epochs; for the mean of 5 train with --keep_epochs 5" in capsys.readouterr().err
    )
    for number, says in (
        (1, "has the weights of 1 epoch; for"),
        (0, "has kept the weights of no epoch; train with --k"),
    ):
        copy = shutil.copytree(run, tmp_path / str(number))
        for epoch in range(2 + number, 5):
            (copy / f"epoch-{epoch}.ckpt").unlink()
        assert lrn("average", copy, "--last", 5, "--out", tmp_path / "x") == 2
        assert says in capsys.readouterr().err
    (tmp_path / "there").mkdir()
    assert lrn("average", run, "--last", 2, "--out", tmp_path / "there") == 2
    assert "there exists; choose another folder: --out" in capsys.readouterr().err
    damaged = shutil.copytree(run, tmp_path / "damaged")
    (damaged / "epoch-3.ckpt").write_bytes(b"no")
    assert lrn("average", damaged, "--last", 2, "--out", tmp_path / "x") == 2
    assert "epoch-3.ckpt is not an lrn checkpoint" in capsys.readouterr().err
    assert lrn("average", run, "--last", 0) == 2
    assert "last must be at least 1, got 0" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_weights_of_two_models():
    with pytest.raises(ValueError, match="not those of one model"):
        mean([{"w": torch.zeros(2)}, {"w": torch.zeros(3)}])


def test_what_is_no_fraction_is_the_last_ones():
    found = mean([{"n": torch.tensor(1)}, {"n": torch.tensor(4)}])
    assert found["n"] == 4
