"""ELMo in the reading model: its layers of paragraphs and questions, computed once, and kept with a run."""

import json
import shutil

import numpy as np
import pytest
import torch
from elmo_files import write_elmo
from tasks.rc.cases import learner, train_run, write_squad
from tasks.trainings import lrn, metrics

from lrn.tasks.rc import task
from lrn.tasks.rc.config import RCConfig
from lrn.tasks.rc.context import ElmoReader
from lrn.tasks.rc.data import encode_words, read_builtin
from lrn.tasks.rc.task import TASK
from lrn.text.elmo import Elmo
from lrn.training import checkpoint

LAYERS, WIDTH = 3, 10


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def data():
    return read_builtin(RCConfig(paragraphs=50))


@pytest.fixture(scope="module")
def elmo(tmp_path_factory):
    return write_elmo(tmp_path_factory.mktemp("elmo"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_squad(tmp_path_factory.mktemp("squad"))


@pytest.fixture(scope="module", params=[False, True], ids=["apart", "carried"])
def carried(request):
    return request.param


@pytest.fixture(scope="module")
def run(elmo, folder, carried, tmp_path_factory):
    """Not to be changed: copy it."""
    out = tmp_path_factory.mktemp("runs") / "run"
    assert train_run(folder, out, *flags(elmo, carried)) == 0
    return out


def flags(elmo, carried, *more):
    return ["--elmo", elmo, *(["--elmo_carried"] if carried else []), "--epochs", 2, *more]


def texts(data, sentences, numbers):
    return [[data.types[token] for token in sentences[number]] for number in numbers]


def plain_context(elmo, batch, paragraphs, questions):
    """What ELMo says of the texts, one after the other and word by word, where the batch has them."""
    model, found = Elmo(elmo), []
    for rows, packing in ((paragraphs, batch.paragraphs), (questions, batch.questions)):
        read = [model.read([words])[0] for words in rows]
        said = torch.empty(LAYERS, len(packing.rows), WIDTH)
        places = iter(range(len(packing.rows)))
        for step in range(max(map(len, rows))):
            for row in packing.order.tolist():
                if step < len(rows[row]):
                    said[:, next(places)] = torch.from_numpy(read[row][step])
        found.append(said)
    return found


def test_every_word_has_its_own_features(elmo, data):
    """Those that were kept, and those of texts that are given as their words."""
    kept = learner(data, elmo=str(elmo)).kept
    part, numbers = data.train, np.array([7, 2, 3, 0])
    paragraphs = texts(data, part.paragraphs, part.about[numbers])
    questions = texts(data, part.questions, numbers)
    given = kept.batch_of_words(paragraphs, questions)
    stored = kept.batch(data, "train", numbers)
    expected = plain_context(elmo, given, paragraphs, questions)
    for name, said in zip(("paragraphs", "questions"), expected, strict=True):
        torch.testing.assert_close(getattr(given.context, name), said, rtol=0, atol=1e-6)
        found = getattr(stored.context, name)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, said, rtol=2**-11, atol=1e-6)  # kept in half precision
        torch.testing.assert_close(found, said.half().float(), rtol=2**-10, atol=1e-6)


def test_both_ways_give_the_same_answers(elmo, data):
    student = learner(data, elmo=str(elmo))
    model, kept = student.model.float().eval(), student.kept
    part, numbers = data.test, np.array([1, 4])
    paragraphs, questions = (
        texts(data, part.paragraphs, part.about[numbers]),
        texts(data, part.questions, numbers),
    )
    with torch.no_grad():
        stored, given = (
            model(kept.batch(data, "test", numbers)),
            model(kept.batch_of_words(paragraphs, questions)),
        )
    torch.testing.assert_close(stored.first, given.first, rtol=0, atol=2e-3)
    torch.testing.assert_close(stored.last, given.last, rtol=0, atol=2e-3)


def test_it_counts_in_both_places(elmo, data):
    """At the input, and before the answer is pointed at."""
    model, plain = learner(data, elmo=str(elmo)).model, learner(data).model
    assert model.encoder[0].forwards.input_size == plain.encoder[0].forwards.input_size + WIDTH
    grown = sum(p.numel() for p in model.pointer.parameters()) - sum(
        p.numel() for p in plain.pointer.parameters()
    )
    assert grown > 0
    assert len(model.mixes) == 2
    assert all(len(mix.weight) == LAYERS for mix in model.mixes)


def test_a_paragraph_is_read_once(elmo, data, monkeypatch, tmp_path):
    """However many questions there are about it, and however often it is asked about."""
    monkeypatch.setenv("LRN_CACHE", str(tmp_path))
    read = []
    real = Elmo.read
    monkeypatch.setattr(Elmo, "read", lambda self, rows: read.extend(map(tuple, rows)) or real(self, rows))
    reader = ElmoReader(elmo)
    reader.read_part(data, "valid")
    part = data.valid
    assert len(read) == len(part.paragraphs.lengths) + len(part)
    ElmoReader(elmo).read_part(data, "valid")  # from the disk
    kept = TASK.first_kept(RCConfig(), data)
    read.clear()
    for question in (["Where", "?"], ["When", "?"]):
        paragraph = ("Oslo", "lies", "here")
        reader.add_words(encode_words([paragraph], [question], kept.codes), [paragraph], [question])
    assert read == [("Oslo", "lies", "here"), ("Where", "?"), ("When", "?")]


def test_other_texts_are_read_anew(elmo, data, tmp_path, monkeypatch):
    """Where limits leave other texts of the same data, or where a word is another one of the same length."""
    first = ElmoReader(elmo).features(data, "train", "paragraphs")
    types = list(data.types)
    place = data.train.paragraphs[0][0]
    types[place] = "Something"
    changed = type(data)(tuple(types), data.counts, data.train, data.valid, data.test, data.about)
    second = ElmoReader(elmo).features(changed, "train", "paragraphs")
    assert not np.array_equal(first.rows(0), second.rows(0))


def test_states_are_carried(elmo, data):
    """Text by text in their order, some side by side; paragraphs and questions each begin with zeros."""
    reader = ElmoReader(elmo, carried=4)
    for name in ("paragraphs", "questions"):
        sentences = getattr(data.valid, name)
        model, count = Elmo(elmo, carried=True), len(sentences.lengths)
        found = reader.features(data, "valid", name)
        for start in range(0, count, 4):
            numbers = range(start, min(start + 4, count))
            for number, said in zip(numbers, model.read(texts(data, sentences, numbers)), strict=True):
                np.testing.assert_allclose(
                    found.rows(number).reshape(said.shape), said, rtol=2**-10, atol=1e-4
                )
    apart = ElmoReader(elmo).features(data, "valid", "paragraphs")
    assert not np.array_equal(apart.rows(20), reader.features(data, "valid", "paragraphs").rows(20))


def test_given_texts_depend_on_nothing_before(elmo, data):
    reader = ElmoReader(elmo, carried=4)
    codes = TASK.first_kept(RCConfig(), data).codes
    paragraphs, questions = [["Oslo", "lies", "here"]], [["Where", "?"]]
    found = []
    for before in ([["a", "b"]], [["c"]]):
        reader.add_words(encode_words(before, before, codes), before, before)
        found.append(reader.add_words(encode_words(paragraphs, questions, codes), paragraphs, questions))
    assert torch.equal(found[0].context.paragraphs, found[1].context.paragraphs)
    assert torch.equal(found[0].context.questions, found[1].context.questions)


# Runs ---------------------------------------------------------------------------------------------


def test_a_run(run, capsys, tmp_path):
    """It needs nothing but its folder: not the ELMo that it was made with."""
    run = shutil.copytree(run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"elmo": str(tmp_path / "gone")}))
    assert {path.name for path in (run / "elmo").iterdir()} == {"options.json", "weights.hdf5"}
    weights = checkpoint.load(run / "last.ckpt", "rc")["model"]
    assert not any("table" in name or "elmo" in name for name in weights)
    capsys.readouterr()
    assert lrn("evaluate", run) == 0
    assert json.loads(capsys.readouterr().out)["f1"] == metrics(run)["test_f1"]
    (tmp_path / "text").write_text("Oslo lies at the end of a fjord.\n")
    (tmp_path / "asked").write_text("Where does Oslo lie?\nWhat lies there?\n")
    assert lrn("predict", run, "--text", tmp_path / "text", "--files", tmp_path / "asked") == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_a_run_whose_elmo_is_gone(run, capsys, tmp_path):
    run = shutil.copytree(run, tmp_path / "run")
    (run / "elmo" / "weights.hdf5").unlink()
    assert lrn("evaluate", run) != 0
    said = capsys.readouterr().err
    assert "lacks weights.hdf5" in said
    assert "Traceback" not in said


def test_resumed_to_the_same_weights(folder, elmo, carried, tmp_path):
    settings = flags(elmo, carried, "--save_steps", 1)
    assert train_run(folder, tmp_path / "whole", *settings) == 0
    assert train_run(folder, tmp_path / "part", *settings, "--max_steps", 3) == 0
    config = json.loads((tmp_path / "part/config.json").read_text())
    (tmp_path / "part/config.json").write_text(json.dumps(config | {"max_steps": 0}))
    state = checkpoint.load(tmp_path / "part/last.ckpt", "rc")
    state["progress"]["finished"] = False
    checkpoint.save(tmp_path / "part/last.ckpt", "rc", state)
    (tmp_path / "part/metrics.json").unlink()
    assert lrn("train", "--resume", tmp_path / "part") == 0
    a, b = (checkpoint.load(tmp_path / name / "last.ckpt", "rc")["model"] for name in ("whole", "part"))
    assert all((a[name] == b[name]).all() for name in a)
    assert any((mix != 0).any() for name, mix in a.items() if name.startswith("mixes.") and "weight" in name)


def test_it_reads_before_anything_is_learnt_or_scored(elmo, data, run, monkeypatch):
    """Not in the middle, where a bar of its own would be in the way."""
    read = []
    real = ElmoReader.read_part
    monkeypatch.setattr(
        ElmoReader, "read_part", lambda self, data, name: read.append(name) or real(self, data, name)
    )
    learner(data, elmo=str(elmo))
    assert read == ["train", "valid", "test"]
    read.clear()
    learner(data, elmo=str(elmo), test=False)
    assert read == ["train", "valid"]
    read.clear()
    answer = task.answer
    monkeypatch.setattr(task, "answer", lambda *given: read.append("scoring") or answer(*given))
    assert lrn("evaluate", run, "--part", "valid") == 0
    assert read == ["valid", "scoring"]


@pytest.mark.parametrize("missing", ["options.json", "weights.hdf5"])
def test_a_folder_that_is_none(folder, elmo, missing, tmp_path, capsys):
    """Said at once, before the data is read."""
    broken = shutil.copytree(elmo, tmp_path / "elmo")
    (broken / missing).unlink()
    assert train_run(folder, tmp_path / "run", "--elmo", broken) == 2
    assert f"lacks {missing}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_carried_without_an_elmo():
    with pytest.raises(ValueError, match="elmo_carried is for a model with --elmo only"):
        RCConfig(elmo_carried=True)
