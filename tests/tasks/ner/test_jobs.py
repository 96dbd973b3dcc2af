"""The commands, from training to prediction, on tiny generated data."""

import io
import json

import pytest

from lrn import cli
from lrn.tasks.ner import generator
from lrn.training import checkpoint

TINY = ["--word_width", "8", "--char_width", "4", "--char_hidden", "4", "--hidden", "8", "--dense", "8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for part in ("train", "valid", "test"):
        with (folder / f"{part}.txt").open("w") as file:
            for words, tags in generator.sentences(40, part=part):
                file.writelines(f"{w} {t}\n" for w, t in zip(words, tags, strict=True))
                file.write("\n")
    (folder / "vectors.txt").write_text(". 1 2 3 4\nin 0 0 0 1\nunneeded 1 1 1 1\n")
    return folder


def train(folder, out, *words):
    words = ["train", "ner", "--data", str(folder), "--out", str(out), "--threads", "1", *TINY, *words]
    return cli.main(words)


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert train(folder, out, "--epochs", "2", "--vectors", str(folder / "vectors.txt")) == 0
    return out


def test_the_run_folder(run):
    metrics = json.loads((run / "metrics.json").read_text())
    assert {"test_f1", "test_f1_last_epoch", "valid_f1", "parameters", "seconds_per_epoch"} <= set(metrics)
    about = json.loads((run / "about.json").read_text())
    assert about["vectors"]["words"] == 2
    assert about["data"]["train"]["sentences"] == 40
    weights = checkpoint.load(run / "best.ckpt", "ner")["model"]
    assert weights["words.weight"].shape[1] == 4  # the file's width, not the settings'


def test_evaluate(run, capsys):
    assert cli.main(["evaluate", str(run)]) == 0
    figures = json.loads(capsys.readouterr().out)
    metrics = json.loads((run / "metrics.json").read_text())
    assert figures["all"]["f1"] == pytest.approx(metrics["test_f1"], abs=0.01)
    assert cli.main(["evaluate", str(run), "--part", "valid", "--last"]) == 0


@pytest.mark.parametrize("form", ["conll", "json", "colour"])
def test_predict(run, form, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Anna left Borvik.\n\nNobody answered .\n"))
    assert cli.main(["predict", str(run), "--format", form]) == 0
    said = capsys.readouterr().out
    if form == "json":
        first, second = map(json.loads, said.splitlines())
        assert first["words"] == ["Anna", "left", "Borvik", "."]
        assert len(second["tags"]) == 3
    elif form == "conll":
        assert said.startswith("Anna\t")
    else:
        assert "Borvik" in said


def test_resumed_to_the_same_weights(folder, tmp_path):
    settings = ["--epochs", "2", "--save_steps", "1", "--vectors", str(folder / "vectors.txt")]
    assert train(folder, tmp_path / "whole", *settings) == 0
    assert train(folder, tmp_path / "part", *settings, "--max_steps", "3") == 0
    config = json.loads((tmp_path / "part/config.json").read_text())
    (tmp_path / "part/config.json").write_text(json.dumps(config | {"max_steps": 0}))
    state = checkpoint.load(tmp_path / "part/last.ckpt", "ner")
    state["progress"]["finished"] = False
    checkpoint.save(tmp_path / "part/last.ckpt", "ner", state)
    (tmp_path / "part/metrics.json").unlink()
    assert cli.main(["train", "--resume", str(tmp_path / "part")]) == 0
    a, b = (checkpoint.load(tmp_path / name / "last.ckpt", "ner")["model"] for name in ("whole", "part"))
    assert all((a[name] == b[name]).all() for name in a)


def test_wrong_input(folder, tmp_path, capsys):
    assert train(tmp_path, tmp_path / "out") == 2
    assert "lacks" in capsys.readouterr().err
    assert train(folder, tmp_path / "out", "--vectors", str(tmp_path / "absent")) == 2
    assert "absent" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert train(folder, tmp_path / "out", "--unit", "lrm") == 2
    assert "did you mean 'lrn'" in capsys.readouterr().err
