"""BERT in the inference model: trained with it, or as it is with its features computed once."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tasks.nli.cases import learner, train_run
from tasks.trainings import lrn, metrics

from lrn.tasks.nli import task
from lrn.tasks.nli.context import Bert
from lrn.tasks.nli.data import read_builtin
from lrn.text.bert_folder import width
from lrn.training import checkpoint
from lrn.training.loop import Loop

transformers = pytest.importorskip("transformers")

WIDTH = 8
EXACT = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def pairs():
    return read_builtin(100)


@pytest.fixture(scope="module")
def bert(pairs, tmp_path_factory):
    """A small BERT with random weights, whose pieces are letters."""
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(1)
    letters = sorted({letter for word in pairs.types for letter in word.lower()} | set("<eos>"))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return folder


@pytest.fixture(params=[True, False], ids=["frozen", "trained"])
def frozen(request):
    return request.param


def flags(bert, frozen, *more):
    own = ["--bert_frozen"] if frozen else ["--bert_lr", "0.001"]
    return ["--bert", bert, *own, "--epochs", 2, *more]


@pytest.fixture(scope="module")
def run_of(bert, folder, tmp_path_factory):
    made = {}

    def run(frozen):
        if frozen not in made:
            made[frozen] = tmp_path_factory.mktemp("runs") / "run"
            assert train_run(folder, made[frozen], *flags(bert, frozen)) == 0
        return made[frozen]

    return run


def test_both_ways_say_the_same(bert, pairs):
    """Features from the cache, from words that are given, and from a BERT inside the model."""
    numbers = np.array([4, 2, 9])
    still, moving = (learner(pairs, bert=str(bert), bert_frozen=frozen) for frozen in (True, False))
    still.model.eval(), moving.model.eval()
    moving.model.load_state_dict(still.model.state_dict(), strict=False)
    assert moving.model.bert is not None
    assert still.model.bert is None
    sentences = [
        [[pairs.types[token] for token in part[number]] for number in numbers]
        for part in (pairs.train.premises, pairs.train.hypotheses)
    ]
    batches = [
        still.kept.batch(pairs, "train", numbers),
        still.kept.batch_of_words(*sentences),
        moving.kept.batch(pairs, "train", numbers),
        moving.kept.batch_of_words(*sentences),
    ]
    for model in (still.model.float(), moving.model.float()):
        model.eval()
    with torch.no_grad():
        found = [
            model(batch)
            for model, batch in zip(
                (still.model, still.model, moving.model, moving.model), batches, strict=True
            )
        ]
    for scores in found[1:]:
        torch.testing.assert_close(scores, found[1], rtol=0, atol=1e-6)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=2e-3)  # kept in half precision


def test_it_counts_in_all_three_places(bert, pairs):
    """At the input, before the second encoders, and in the last layer."""
    model = learner(pairs, bert=str(bert), bert_frozen=True).model
    plain = learner(pairs).model
    for name in ("premise", "premise_after", "hypothesis_after"):
        assert getattr(model, name).input_size == getattr(plain, name).input_size + WIDTH
    assert model.walk.lower.input_size == plain.walk.lower.input_size + WIDTH
    assert model.walk.upper.input_size == plain.walk.upper.input_size
    assert model.output.weight.shape[1] == plain.output.weight.shape[1] + WIDTH


def test_sentences_that_are_cut(bert, pairs):
    """Of the features those of the words that are left."""
    student = learner(pairs, bert=str(bert), bert_frozen=True)
    whole = student.kept.batch(pairs, "train", np.array([3]))
    cut = student.kept.batch(pairs, "train", np.array([3]), 2)
    assert torch.equal(cut.context.premises, whole.context.premises[:2])
    assert torch.equal(cut.context.hypotheses, whole.context.hypotheses[:2])
    assert torch.equal(cut.context.pairs, whole.context.pairs)


def test_features_are_computed_once(bert, pairs, monkeypatch):
    first = Bert(bert, frozen=True).features(pairs, "valid")

    def never(*args):
        raise AssertionError("computed again")

    monkeypatch.setattr("lrn.tasks.nli.context.word_features", never)
    again = Bert(bert, frozen=True).features(pairs, "valid")
    assert np.array_equal(first.table, again.table)


def test_its_own_learning_rate(bert, pairs):
    student = learner(pairs, bert=str(bert), lr=1.0, bert_lr=0.25)
    groups = student.optimizer().param_groups
    assert sum(len(group["params"]) for group in groups) == len(list(student.model.parameters()))
    student.model.float()
    loop = Loop(student, __import__("lrn.training.device", fromlist=["fabric"]).fabric(student.config))
    loop.take(student.steps(0)[0])
    assert [group["lr"] for group in loop.optimizer.param_groups] == [1.0, 0.25]


def test_a_run(run_of, frozen, capsys, tmp_path):
    """It needs nothing but its folder: not the BERT that it was made with."""
    run = shutil.copytree(run_of(frozen), tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"bert": str(tmp_path / "gone")}))
    weights = checkpoint.load(run / "best.ckpt", "nli")["model"]
    assert any(name.startswith("bert.") for name in weights) is not frozen
    assert (run / "bert/model.safetensors").exists() is frozen
    capsys.readouterr()
    assert lrn("evaluate", run) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == metrics(run)["test_accuracy"]
    (tmp_path / "pairs").write_text("some dogs were asleep\tno dogs were asleep\n")
    assert lrn("predict", run, "--files", tmp_path / "pairs") == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_bert_is_trained(run_of, bert):
    from safetensors.torch import load_file

    before = load_file(Path(bert) / "model.safetensors")
    after = checkpoint.load(run_of(False) / "best.ckpt", "nli")["model"]
    changed = [not torch.equal(after[f"bert.model.{name}"], value) for name, value in before.items()]
    assert sum(changed) > len(changed) / 2


def test_resumed_to_the_same_weights(folder, bert, frozen, tmp_path):
    settings = flags(bert, frozen, "--save_steps", 1)
    assert train_run(folder, tmp_path / "whole", *settings) == 0
    assert train_run(folder, tmp_path / "part", *settings, "--max_steps", 3) == 0
    config = json.loads((tmp_path / "part/config.json").read_text())
    (tmp_path / "part/config.json").write_text(json.dumps(config | {"max_steps": 0}))
    state = checkpoint.load(tmp_path / "part/last.ckpt", "nli")
    state["progress"]["finished"] = False
    checkpoint.save(tmp_path / "part/last.ckpt", "nli", state)
    (tmp_path / "part/metrics.json").unlink()
    assert lrn("train", "--resume", tmp_path / "part") == 0
    a, b = (checkpoint.load(tmp_path / name / "last.ckpt", "nli")["model"] for name in ("whole", "part"))
    assert all((a[name] == b[name]).all() for name in a)


@pytest.mark.parametrize(("kind", "name"), [("bert", "hidden_size"), ("distilbert", "dim")])
def test_the_width_of_a_folder(kind, name, bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "copy")
    (folder / "config.json").write_text(json.dumps({"model_type": kind, name: 6}))
    assert width(folder) == 6
    (folder / "config.json").write_text(json.dumps({"model_type": kind, name: "6"}))
    with pytest.raises(ValueError, match="expected the width of the model, got '6'"):
        width(folder)


def test_it_reads_before_anything_is_learnt_or_scored(bert, pairs, folder, run_of, monkeypatch, capsys):
    """Not in the middle, where a bar of its own would be in the way."""
    read = []
    features = Bert.features
    monkeypatch.setattr(
        Bert, "features", lambda self, data, name: read.append(name) or features(self, data, name)
    )
    learner(pairs, bert=str(bert), bert_frozen=True)
    assert read == ["train", "valid", "test"]
    read.clear()
    learner(pairs, bert=str(bert), bert_frozen=True, test=False)
    assert read == ["train", "valid"]
    read.clear()
    run = run_of(True)
    read.clear()
    classify = task.classify
    monkeypatch.setattr(task, "classify", lambda *given: read.append("scoring") or classify(*given))
    assert lrn("evaluate", run, "--part", "valid") == 0
    assert read[:2] == ["valid", "scoring"]
