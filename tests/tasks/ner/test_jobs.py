"""The commands, from training to prediction, on tiny generated data."""

import io
import json
import shutil

import pytest

from lrn import cli
from lrn.tasks.ner import generator
from lrn.tasks.ner.model import Tagger
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
    assert weights["input.word_vectors.weight"].shape[1] == 4  # the file's width, not the settings'


def test_evaluate(run, capsys):
    assert cli.main(["evaluate", str(run)]) == 0
    figures = json.loads(capsys.readouterr().out)
    metrics = json.loads((run / "metrics.json").read_text())
    assert figures["all"]["f1"] == pytest.approx(metrics["test_f1"], abs=0.01)
    assert cli.main(["evaluate", str(run), "--part", "valid", "--last"]) == 0


def given(monkeypatch, content):
    """As standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("form", ["conll", "json", "colour"])
def test_predict(run, form, capsys, monkeypatch):
    """Blank lines are sentences without words: what comes out can be laid beside what went in."""
    given(monkeypatch, b"Anna left Borvik.\n\nNobody answered .\n")
    assert cli.main(["predict", str(run), "--format", form]) == 0
    said = capsys.readouterr().out
    if form == "json":
        first, second, third = map(json.loads, said.splitlines())
        assert first["words"] == ["Anna", "left", "Borvik", "."]
        assert second == {"words": [], "tags": [], "entities": []}
        assert len(third["tags"]) == 3
    elif form == "conll":
        first, second, third, end = sentences_of(said)
        assert [line.partition("\t")[0] for line in first] == ["Anna", "left", "Borvik", "."]
        assert second == end == []
        assert len(third) == 3
    else:
        assert "Borvik" in said
        assert said.count("\n") == 3


def sentences_of(said):
    """The lines of each sentence in CoNLL's form, where a blank line ends one; what stands after the last."""
    sentences = [[]]
    for line in said.splitlines():
        if line:
            sentences[-1].append(line)
        else:
            sentences.append([])
    return sentences


def test_entities_as_they_stand_in_the_text(run, capsys, monkeypatch):
    tags = ["B-PER", "I-PER", "I-PER", "I-PER", "O", "B-LOC", "O"]
    monkeypatch.setattr(Tagger, "tag", lambda self, batch: [tags])
    given(monkeypatch, "José O'Neill of  Rome.\n".encode())
    assert cli.main(["predict", str(run), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["words"] == ["José", "O", "'", "Neill", "of", "Rome", "."]
    assert said["entities"] == [
        {"type": "PER", "start": 0, "end": 4, "text": "José O'Neill"},
        {"type": "LOC", "start": 5, "end": 6, "text": "Rome"},
    ]


def test_no_tag_is_padding(run, capsys, monkeypatch):
    monkeypatch.setattr(Tagger, "tag", lambda self, batch: [["<pad>"]])
    given(monkeypatch, b"Anna\n")
    assert cli.main(["predict", str(run), "--format", "conll"]) == 0
    assert capsys.readouterr().out == "Anna\tO\n\n"


@pytest.mark.parametrize("where", ["standard input", "file"])
def test_input_that_is_no_text(run, where, tmp_path, capsys, monkeypatch):
    content = b"Anna left.\nBorvik \xff\xfe\n"
    (tmp_path / "file").write_bytes(content)
    given(monkeypatch, content)
    words = [] if where == "standard input" else ["--files", str(tmp_path / "file")]
    assert cli.main(["predict", str(run), "--format", "conll", *words]) == 2
    said = capsys.readouterr().err
    assert f"{where}, line 2: not UTF-8 text" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["words.json", "characters.json", "tags.json", "best.ckpt"])
def test_a_run_that_lacks_a_file(run, name, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / name).unlink()
    for words in (["evaluate", str(copy)], ["predict", str(copy)]):
        assert cli.main(words) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"lrn: {copy} ")
        assert name in said
        assert said.count("\n") == 1


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


def test_data_that_has_moved(run, folder, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"data": str(tmp_path / "gone")}))
    for words in (["evaluate", str(copy)], ["train", "--resume", str(copy)]):
        assert cli.main(words) == 2
        assert "is no longer at" in capsys.readouterr().err
        assert cli.main([*words, "--data", str(folder)]) == 0
        capsys.readouterr()


def test_wrong_input(folder, tmp_path, capsys):
    assert train(tmp_path, tmp_path / "out") == 2
    assert "lacks" in capsys.readouterr().err
    assert train(folder, tmp_path / "out", "--vectors", str(tmp_path / "absent")) == 2
    assert "absent" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert train(folder, tmp_path / "out", "--unit", "lrm") == 2
    assert "did you mean 'lrn'" in capsys.readouterr().err
