"""A run of the classifier, from training to prediction, on tiny documents."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import Fault, flags, leftovers, logged, refusal, same, trained, without_times
from runs import lrn as lrn_apart
from safetensors.torch import load_file
from tasks.doc.cases import TINY, train_run, write_documents
from tasks.trainings import given, lrn, metrics

from lrn.tasks.doc import generator
from lrn.tasks.doc.config import PredictConfig
from lrn.tasks.doc.data import read_cues, split
from lrn.tasks.doc.task import TASK
from lrn.training import checkpoint
from lrn.training.run import Run

NUMBERS = {"the": [1, 2, 3, 4], ".": [0, 0.5, 0, 1], "splendid": [1, 0, 0, 0], "unneeded": [9, 9, 9, 9]}


@pytest.fixture(scope="module", autouse=True)
def room(tmp_path_factory):
    """Where the processes' output goes, and what is kept of documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_TEST_ROOM", str(tmp_path_factory.mktemp("room")))
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Not to be changed: copy it."""
    out = tmp_path_factory.mktemp("runs") / "run"
    assert train_run(out) == 0
    return out


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in NUMBERS.items()))
    return path


@pytest.fixture(scope="module")
def with_vectors(vectors, tmp_path_factory):
    """Another, whose vectors are given."""
    out = tmp_path_factory.mktemp("runs") / "with_vectors"
    assert train_run(out, "--vectors", vectors) == 0
    return out


def content(path):
    return json.loads(path.read_text())


def saved(run, name="last"):
    """A saved state, but for times."""
    return without_times(checkpoint.load(run / f"{name}.ckpt", "doc"))


# Runs ---------------------------------------------------------------------------------------------


def test_the_run_folder(run):
    wanted = {"unit", "test_error", "test_loss", "valid_error", "parameters", "seconds_per_epoch", "steps"}
    assert wanted <= set(metrics(run))
    assert metrics(run)["steps"] == 12
    about = content(run / "about.json")
    assert about["data"] == read_cues(100, source="builtin:quotes").about
    assert "vectors" not in about
    assert not (run / "vectors.npy").exists()
    assert content(run / "classes.json")["words"] == ["negative", "positive"]
    assert [row["valid_error"] for row in logged(run) if row["valid_error"]]


def test_bf16(run, tmp_path):
    assert train_run(tmp_path / "run", "--precision", "bf16", "--smoothing", "0.1") == 0
    assert {weight.dtype for weight in saved(tmp_path / "run")["model"].values()} == {torch.float32}
    assert metrics(tmp_path / "run")["test_loss"] == pytest.approx(metrics(run)["test_loss"], abs=0.1)


def test_evaluate(run, capsys):
    found = {}
    for part, count in (("train", 90), ("valid", 10), ("test", 200)):
        assert lrn("evaluate", run, "--part", part) == 0
        found[part] = json.loads(capsys.readouterr().out)
        assert (found[part]["part"], found[part]["documents"]) == (part, count)
    for name in ("error", "loss"):
        assert found["test"][name] == metrics(run)[f"test_{name}"]
        assert found["valid"][name] == metrics(run)[f"valid_{name}"]


def test_evaluate_the_last_weights(run, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    state = checkpoint.load(copy / "last.ckpt", "doc")
    state["model"]["output.weight"].zero_()
    state["model"]["output.bias"].copy_(torch.tensor([0.0, 1.0]))
    checkpoint.save(copy / "last.ckpt", "doc", state)
    assert lrn("evaluate", copy, "--last") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["error"] == 50  # all of them positive
    shares = torch.tensor([0.0, 1.0]).log_softmax(0)
    assert figures["loss"] == pytest.approx(-shares.mean().item(), abs=1e-4)


@pytest.mark.parametrize("form", ["text", "json"])
def test_predict(run, form, capsys, monkeypatch):
    """Blank lines give blank results: what comes out can be laid beside what went in."""
    given(monkeypatch, "i found it splendid.\n\n \t\nGanz Unbekanntes, 東京\n".encode())
    assert lrn("predict", run, "--format", form) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert len(lines) == said.count("\n") == 4
    if form == "json":
        first, *blank, last = map(json.loads, lines)
        assert blank == [{"label": None, "probabilities": {}}] * 2
        for result in (first, last):
            assert list(result["probabilities"]) == ["negative", "positive"]
            assert sum(result["probabilities"].values()) == pytest.approx(1)
            assert result["label"] == max(result["probabilities"], key=result["probabilities"].get)
    else:
        assert lines[1] == lines[2] == ""
        label, _, shares = lines[0].partition("\t")
        name, share, other, rest = shares.split()
        assert (name, other) == ("negative", "positive")
        assert float(share) + float(rest) == pytest.approx(1, abs=2e-4)
        assert label == (name if float(share) > float(rest) else other)


def test_predict_is_what_evaluate_counts(run, tmp_path, capsys):
    """The generated test documents as text, in two files."""
    documents = list(generator.documents(200, part="test"))
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, some in zip(paths, (documents[:150], documents[150:]), strict=True):
        path.write_text("".join(" ".join(document.words) + "\n" for document in some))
    assert lrn("predict", run, "--files", *paths, "--format", "json") == 0
    labels = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    wrong = [
        label != generator.CLASSES[document.label] for label, document in zip(labels, documents, strict=True)
    ]
    assert 100 * np.mean(wrong) == pytest.approx(metrics(run)["test_error"], abs=0.01)


def test_documents_are_cut_for_prediction(run, capsys, monkeypatch):
    """To longest_test words, here 80."""
    given(monkeypatch, b"\n".join(b"the " * 80 + end for end in (b"", b"splendid " * 9)) + b"\n")
    assert lrn("predict", run, "--format", "json") == 0
    said = capsys.readouterr()
    first, second = map(json.loads, said.out.splitlines())
    assert second == first | {"words_cut": 9}
    says = "has more than 80 words: the 9 words behind them were not read (longest_test)"
    assert said.err == f"document 2 {says}\n"


def test_of_several_that_are_cut_the_first_is_said_at_once(run, capsys, monkeypatch):
    """Whoever keeps the pipe open shall not wait for the end, and nobody wants a line for each."""
    errors = []

    def lines(files):
        yield "so"
        for _ in range(3):
            yield "so " * 81
            errors.append(capsys.readouterr().err)

    monkeypatch.setattr("lrn.tasks.doc.predict.each_line", lines)
    assert lrn("predict", run) == 0
    first = "document 2 has more than 80 words: the 1 word behind them was not read (longest_test)\n"
    assert errors == [first, "", ""]
    last = "3 of 4 documents have more than 80 words: the 3 words behind them were not read (longest_test)\n"
    assert capsys.readouterr().err == last


def test_a_page_says_what_was_cut(run):
    loaded = TASK.load(Run.open(run))
    texts = [["so " * 80], ["so " * 90]]
    titles = [TASK.views(one)[0].title for one in TASK.answers(loaded, texts, PredictConfig(), details=True)]
    assert titles == ["label", "label, by the first 80 words: 10 more were not read"]


def test_documents_without_words_are_counted(run, capsys, monkeypatch):
    for text, says in (
        (b"splendid\n\n \n", "2 of 3 documents have"),
        (b"\nsplendid\n", "1 of 2 documents has"),
    ):
        given(monkeypatch, text)
        assert lrn("predict", run) == 0
        assert capsys.readouterr().err == f"{says} no words, and no label\n"


def test_what_is_not_read_is_said(run, capsys, tmp_path):
    """Where a training begins, in about.json, and by an evaluation."""
    data = write_documents(tmp_path)
    with (data / "test.csv").open("a") as file:
        file.write('1," "\n2,"' + "so " * 95 + '"\n')
    out = tmp_path / "run"
    assert train_run(out, "--data", data, "--max_steps", 1) == 0
    headline = capsys.readouterr().err.splitlines()[1]
    lengths = {
        part: np.array([len(d.words) for d in generator.documents(count, part=part)])
        for part, count in (("train", 100), ("test", 20))
    }
    train, valid = split(read_cues(100), seed=1)
    lengths |= {"valid": lengths["train"][valid], "train": lengths["train"][train]}
    lengths["test"] = np.append(lengths["test"], [1, 95])
    limits = {"train": (60, "longest"), "valid": (80, "longest_test"), "test": (80, "longest_test")}
    for part, (longest, flag) in limits.items():
        lost = np.maximum(lengths[part] - longest, 0)
        counts = {"documents": (lost > 0).sum(), "words": lost.sum()}
        assert content(out / "about.json")["cut"][part] == counts
        said = (
            f"; --{flag} {longest} cuts {counts['words']:,} words off {counts['documents']} {part} documents"
        )
        assert said in headline
    assert "test 22 documents, " in headline
    assert ", 1 without any word" in headline
    assert lrn("evaluate", out) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["documents_cut"], figures["words_cut"]) == (counts["documents"], counts["words"])
    assert figures["documents_without_words"] == 1
    assert lrn("evaluate", out, "--part", "valid") == 0
    assert "documents_without_words" not in json.loads(capsys.readouterr().out)


def test_nothing_is_said_of_what_is_read(tmp_path, capsys):
    assert train_run(tmp_path / "run", "--longest", 0, "--longest_test", 0, "--max_steps", 1) == 0
    assert not re.search("cuts|without any word|warning", capsys.readouterr().err)
    assert lrn("evaluate", tmp_path / "run") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"part", "documents", "error", "loss"}


def test_a_row_that_swallows_others_is_a_warning(tmp_path, capsys):
    data = write_documents(tmp_path)
    with (data / "test.csv").open("a") as file:
        file.write('1,"splendid\n2,no taller than 5 feet 10"\n')
    assert train_run(tmp_path / "run", "--data", data, "--max_steps", 1) == 0
    said = "warning: test.csv: the row that begins on line 21 "
    assert capsys.readouterr().err.splitlines()[2].startswith(said)
    assert lrn("evaluate", tmp_path / "run") == 0
    assert capsys.readouterr().err.startswith(said)


def test_input_that_is_no_text(run, capsys, monkeypatch):
    given(monkeypatch, b"good\nbad \xff\n")
    assert lrn("predict", run) == 2
    said = capsys.readouterr().err
    assert said.startswith("lrn: standard input, line 2: not UTF-8 text")
    assert said.count("\n") == 1


def test_export_and_import(run, tmp_path, capsys):
    copy, file = shutil.copytree(run, tmp_path / "run"), tmp_path / "weights.safetensors"
    assert lrn("export", run, file) == 0
    same(dict(sorted(load_file(file).items())), dict(sorted(saved(run, "best")["model"].items())))
    (copy / "best.ckpt").unlink()
    assert lrn("import", copy, file) == 0
    capsys.readouterr()
    results = []
    for folder in (run, copy):
        assert lrn("evaluate", folder, "--part", "valid") == 0
        results.append(capsys.readouterr().out)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "name", ["words.json", "characters.json", "classes.json", "best.ckpt", "config.json"]
)
def test_a_run_that_lacks_a_file(run, name, tmp_path, capsys, monkeypatch):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / name).unlink()
    given(monkeypatch, b"good\n")
    for words in (("evaluate", copy), ("predict", copy)):
        assert lrn(*words) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"lrn: {copy} ")
        assert name in said
        assert said.count("\n") == 1


# Vectors that are given ---------------------------------------------------------------------------


def test_given_vectors_stay_as_they_are(with_vectors):
    kept = np.load(with_vectors / "vectors.npy")
    words = content(with_vectors / "words.json")["words"]
    assert words == ["<pad>", "<unk>", "<eos>", "the", ".", "splendid"]
    assert kept.tolist() == [NUMBERS[word] for word in words[3:]]
    for name in ("best", "last"):
        weights = saved(with_vectors, name)["model"]
        ((key, table),) = ((key, value) for key, value in weights.items() if "word" in key)
        assert key.endswith(".learnt")
        assert table.shape == (3, 4)  # the file's width, not the settings'
    assert len(saved(with_vectors)["average"]) == 0


def test_coverage(with_vectors, vectors, tmp_path):
    about = content(with_vectors / "about.json")["vectors"]
    assert (about["file"], about["words"], about["width"]) == ("vectors.txt", 3, 4)
    for part, count in (("train", 100), ("test", 200)):
        made = generator.documents(count, part=part, manner=generator.QUOTING)
        tokens = [word for document in made for word in document.words]
        share = sum(word in NUMBERS for word in tokens) / len(tokens)
        assert about["coverage"][part] == pytest.approx(share, abs=1e-4)
    said = trained("doc", "--out", tmp_path / "run", *TINY, "--vectors", vectors, "--max_steps", 1).err
    assert f"; vectors for {about['coverage']['train']:.1%} of the words" in said


def test_vectors_that_have_moved(with_vectors, vectors, tmp_path, capsys):
    """A run needs only its own folder."""
    copy = shutil.copytree(with_vectors, tmp_path / "run")
    config = content(copy / "config.json")
    (copy / "config.json").write_text(json.dumps(config | {"vectors": str(tmp_path / "gone")}))
    assert lrn("evaluate", copy) == 0
    assert json.loads(capsys.readouterr().out)["error"] == metrics(with_vectors)["test_error"]


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "half its header": lambda path: path.write_bytes(path.read_bytes()[:40]),
    "one byte less": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a text": lambda path: path.write_text("the 1 2 3 4\n"),
    "a row less": lambda path: np.save(path, np.load(path)[:-1]),
    "other numbers": lambda path: np.save(path, np.load(path).astype(np.float64)),
    "one dimension": lambda path: np.save(path, np.load(path).ravel()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_vectors_that_are_damaged(damage, with_vectors, tmp_path, capsys, monkeypatch):
    copy, file = shutil.copytree(with_vectors, tmp_path / "run"), tmp_path / "weights.safetensors"
    assert lrn("export", copy, file) == 0
    (copy / "metrics.json").unlink()  # so that there is something left to do
    damage(copy / "vectors.npy")
    given(monkeypatch, b"splendid\n")
    for words in (
        ("evaluate", copy),
        ("predict", copy),
        ("train", "--resume", copy),
        ("import", copy, file, "--overwrite"),
    ):
        capsys.readouterr()
        assert lrn(*words) == 2, words
        said = refusal(capsys.readouterr().err)
        assert said.startswith(f"lrn: {copy}")
        assert "vectors.npy" in said


def test_vectors_for_no_word(tmp_path, capsys):
    (tmp_path / "vectors.txt").write_text("unneeded 1 2\n")
    for name in ("vectors.txt", "absent.txt"):
        assert train_run(tmp_path / "out", "--vectors", tmp_path / name) == 2
        assert name in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# Interrupted, and gone on with --------------------------------------------------------------------

LEARNING = {
    "dropout": flags(dropout=0.3, drop_words=0.2),
    "ema": flags(unit="lstm", ema=0.9, smoothing=0.1),
    "ema-last-state": flags(unit="sru", ema=0.9, pooling="last", drop_words=0.2),
}


@pytest.mark.parametrize("learning", LEARNING)
def test_resumed_bit_for_bit(learning, vectors, tmp_path):
    """By a signal in the middle of an epoch, killed with a file half written, killed in a step."""
    command = ["doc", *TINY, *LEARNING[learning], "--vectors", vectors]
    trained(*command, "--out", tmp_path / "whole")
    run = tmp_path / "run"
    words = ["train", *command, "--out", run]
    for fault, code in ((Fault("int", 4), 130), (Fault("kill", 5), -9), (Fault("die", 2), -9)):
        done = lrn_apart(*words, fault=fault)
        assert done.code == code, done.err
        assert "Traceback" not in done.err
        assert 0 < saved(run)["progress"]["step"] < 12
        words = ["train", "--resume", run]
    trained(*words[1:])
    for name in ("last", "best"):
        same(saved(run, name), saved(tmp_path / "whole", name), name)
    assert bool(saved(run)["average"]) == ("ema" in learning)
    assert logged(run) == logged(tmp_path / "whole")
    ours, theirs = (without_times(metrics(tmp_path / name)) for name in ("run", "whole"))
    assert ours == theirs
    assert not [*leftovers(run)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_documents(tmp_path_factory.mktemp("csv"))


@pytest.fixture(scope="module")
def stopped(folder, tmp_path_factory):
    """A run that can be resumed. Not to be changed: copy it."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    done = lrn_apart("train", "doc", "--data", folder, "--out", run, *TINY, fault=Fault("int", 8))
    assert done.code == 130, done.err
    return run


def changed(folder, tmp_path):
    """The same documents with a word more."""
    other = shutil.copytree(folder, tmp_path / "changed")
    path = other / "train.csv"
    path.write_text(path.read_text().replace("splendid", "quite splendid", 1))
    return other


def test_resumed_with_changed_data(stopped, folder, tmp_path, capsys):
    run = shutil.copytree(stopped, tmp_path / "run")
    before = (run / "last.ckpt").read_bytes()
    for data in (changed(folder, tmp_path), "builtin:cues"):
        assert lrn("train", "--resume", run, "--data", data) == 2
        assert f"the data is not what {run} was trained on so far" in capsys.readouterr().err
    assert (run / "last.ckpt").read_bytes() == before


def test_data_that_has_moved(stopped, folder, tmp_path, capsys):
    run = shutil.copytree(stopped, tmp_path / "run")
    config = content(run / "config.json")
    (run / "config.json").write_text(json.dumps(config | {"data": str(tmp_path / "gone")}))
    for words in (("train", "--resume", run), ("evaluate", run)):
        assert lrn(*words) == 2
        assert f"the data of {run} is no longer at {tmp_path / 'gone'}" in capsys.readouterr().err
        assert lrn(*words, "--data", folder) == 0
        capsys.readouterr()
    assert metrics(run)["steps"] == 12


def test_evaluated_on_other_data(run, stopped, folder, capsys):
    """The labels must be the same; the documents need not."""
    assert lrn("evaluate", run, "--data", folder) == 2
    assert "the data has the classes against, for;" in capsys.readouterr().err
    assert lrn("evaluate", run, "--data", "builtin:ceus") == 2
    assert "did you mean 'builtin:cues'?" in capsys.readouterr().err


# Wrong settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--documents", "5"], "documents must be at least 100, got 5"),
        (["--decay", "0"], "decay must be above 0 and at most 1, got 0"),
        (["--decay", "1.5"], "decay must be above 0 and at most 1, got 1.5"),
        (
            ["--pooling", "atention"],
            "unknown pooling 'atention'; allowed: attention, last; did you mean 'attention'?",
        ),
        (["--activation", "identiy"], "did you mean 'identity'?"),
        (["--unit", "lrm"], "did you mean 'lrn'?"),
        (["--smoothing", "1"], "smoothing must be a probability from 0 to below 1, got 1"),
        (["--drop_words", "-0.1"], "drop_words must be a probability"),
        (["--l2", "-1"], "l2 must be at least 0, got -1"),
        (["--hidden", "0"], "hidden must be at least 1, got 0"),
        (["--data", "builtin:docstring"], "did you mean 'builtin:docstrings'?"),
        (["--data", "/absent"], "there is no folder /absent"),
    ],
)
def test_wrong_settings(words, says, tmp_path, capsys):
    assert train_run(tmp_path / "out", *words) == 2
    assert says in refusal(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


# Several processes --------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_learn_the_same_as_one(run, tmp_path):
    """Batches of 89 documents and of one, which leaves nothing for the second process."""
    words = ["doc", *TINY, *flags(dropout=0, drop_words=0, smoothing=0.1, batch_size=89, epochs=3)]
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [Path(sys.executable).with_name("lrn"), "train", *words, "--out", tmp_path / "two", "--devices"]
    done = subprocess.run([*map(str, command), "2"], env=environment, capture_output=True, timeout=90)
    assert done.returncode == 0, done.stderr.decode()
    trained(*words, "--out", tmp_path / "one")
    assert saved(tmp_path / "two")["progress"]["step"] == 6
    ours, theirs = (saved(tmp_path / name)["model"] for name in ("two", "one"))
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=0, atol=1e-5)
