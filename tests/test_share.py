"""Models in one file: what comes out of it is what the run says, and what is no such file is refused."""

import copy
import errno
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models import make_run
from safetensors import safe_open
from safetensors.torch import save_file
from tasks.trainings import given, lrn

import lrn as library
from lrn import share, tasks
from lrn.names import TASKS
from lrn.tasks.doc import generator as made_documents
from lrn.tasks.doc import task as doc
from lrn.training.run import Run

VECTORS = {"the": [1.0, 2.0, 3.0, 4.0], ".": [0.0, 0.0, 0.0, 1.0], "splendid": [-1.0, 1.0, 0.5, 0.0]}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A task's run and the file exported from it, made when first asked for. Not to be changed."""
    folder = tmp_path_factory.mktemp("shared")

    def of(task):
        run, file = folder / task, folder / f"{task}.safetensors"
        if not run.exists():
            own = {}
            if task == "doc":
                (folder / "private").mkdir()
                own["vectors"] = str(folder / "private" / "vectors.txt")
                lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items()]
                (folder / "private" / "vectors.txt").write_text("".join(lines))
            make_run(task, run, **own)
            assert lrn("export", run, file) == 0
        return run, file

    return of


def content(file):
    with safe_open(file, "pt") as opened:
        return dict(opened.metadata()), {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def changed(file, to, header=None, tensors=None, without=()):
    """A copy with other entries, or without some."""
    said, weights = content(file)
    said, weights = said | (header or {}), weights | (tensors or {})
    save_file(
        {name: value.contiguous() for name, value in weights.items() if name not in without},
        to,
        {name: value for name, value in said.items() if name not in without},
    )
    return to


def requests(task, run):
    """Some of the test data, as a user would type it."""
    loaded = tasks.load(task).load(Run.open(run))
    data = tasks.load(task)._read(loaded.config, Run.open(run).data())
    if task == "doc":
        return [" ".join(made.words) for made in made_documents.documents(8, part="test")]
    if task == "ner":
        return [" ".join(sentence.words) for sentence in data.test[:20]]
    if task == "nli":
        return [
            tasks.load("nli").example(loaded),
            ("some dogs were asleep", "no dogs were asleep"),
            ("a", ""),
        ]
    if task == "rc":
        part = data.test
        return [(part.texts[part.about[n]], part.asked[n]) for n in range(3)]
    if task == "mt":
        return [*data.part("test").sources[:5], "", "☃ ☃☃"]
    return ["a b", "c d a", "b"]


# Out and in -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_what_is_loaded_is_the_run(task, shared):
    """To the last bit, on the same machine; and to 1e-5 whether texts are given one by one or together."""
    run, file = shared(task)
    model, texts = library.load(file), requests(task, run)
    expected = library.load(run).predict(texts)
    found = model.predict(texts)
    assert len(found) == len(texts)
    assert found == expected
    alone = [model.predict([text])[0] for text in texts]
    for one, other in zip(alone, found, strict=True):
        same_answer(one, other)
    assert json.loads(json.dumps(found)) == found
    page = (Path(__file__).parent.parent / "docs" / "serve.md").read_text()
    (row,) = re.findall(rf"^\| `{task}` \|.*\| (.*) \|$", page, re.M)
    assert {*re.findall("`([a-z_]+)`", row)} == found[0].keys(), "docs/serve.md"
    detailed = model.predict(texts, details=True)
    for one, other in zip(detailed, found, strict=True):
        same_answer({name: one[name] for name in other}, other)
        assert set(one) > set(other)


def same_answer(one, other, where=""):
    """Numbers to 1e-5, all else exactly."""
    if isinstance(other, dict):
        assert one.keys() == other.keys(), where
        for name in other:
            same_answer(one[name], other[name], f"{where}.{name}")
    elif isinstance(other, list):
        assert len(one) == len(other), where
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            same_answer(a, b, f"{where}[{number}]")
    elif isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-5, rel=1e-5), where
    else:
        assert one == other, where


def test_documents_as_they_are_evaluated(shared):
    """By another way to the same probabilities: the one that `lrn evaluate` goes."""
    run, file = shared("doc")
    loaded = doc.TASK.load(Run.open(run))
    data = doc.read_documents(loaded.config)
    numbers = doc.np.arange(30)
    with torch.no_grad():
        expected = doc.classify(loaded, data, "test", numbers, lambda share: None)
    texts = [" ".join(data.types[token] for token in data.test.document(n)) for n in numbers]
    found = library.load(file).predict(texts)
    shares = torch.tensor([list(one["probabilities"].values()) for one in found])
    torch.testing.assert_close(shares, expected, rtol=0, atol=1e-5)
    assert shares.std(0).min() > 1e-3  # or any documents would do


@pytest.mark.parametrize("task", ["doc", "ner"])
def test_the_command_says_the_same(task, shared, monkeypatch, capsys):
    run, file = shared(task)
    texts = requests(task, run)
    given(monkeypatch, "".join(f"{text}\n" for text in texts).encode())
    capsys.readouterr()
    assert lrn("predict", run, "--format", "json", "--threads", 1) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for one, other in zip(library.load(file).predict(texts), said, strict=True):
        same_answer(one, other)


def test_it_is_a_module_that_is_ready_for_use(shared):
    run, file = shared("doc")
    model = library.load(file)
    assert isinstance(model, torch.nn.Module)
    assert not any(part.training for part in model.modules())
    assert repr(model).startswith("TrainedModel(\n  task=doc, unit=lrn\n")
    other = library.load(run)
    assert model.state_dict().keys() == other.state_dict().keys()
    before = model.predict(["it was splendid"])
    model.train()
    assert model.predict(["it was splendid"]) == before
    assert model.training
    assert model.model.training
    assert copy.deepcopy(model).predict(["it was splendid"]) == before
    assert all(weight.grad is None for weight in model.parameters())


def test_loading_draws_nothing(shared):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for task in ("doc", "ner"):
        library.load(shared(task)[1])
    assert torch.equal(torch.get_rng_state(), before)


def test_three_lines_without_what_trains(shared, tmp_path):
    """And without the run, its data and its vectors: the file is enough."""
    shutil.copy(shared("doc")[1], tmp_path / "model.safetensors")
    code = (
        "import sys\n"
        "for name in ('lightning', 'rich', 'yaml', 'matplotlib'): sys.modules[name] = None\n"
        "import lrn\n"
        "model = lrn.load('model.safetensors')\n"
        "print(model.predict(['it was splendid .'])[0]['label'])\n"
        "assert 'torch._dynamo' not in sys.modules, 'takes longer to import than all the rest'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("negative", "positive")


@pytest.mark.parametrize("package", ["numpy", "safetensors"])
def test_a_package_that_is_missing(package, shared, monkeypatch):
    file = shared("doc")[1]
    for name in [name for name in sys.modules if name.partition(".")[0] == "safetensors"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "lrn.tasks.doc.task")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package}: pip install 'lrn-torch\[train\]'"):
        library.load(file)


def test_what_is_in_the_file(shared):
    """All that the model needs, and no word of where things are on the machine that it is from."""
    run, file = shared("doc")
    header, tensors = content(file)
    kept = {name for name in header if name.startswith("kept/")}
    assert kept == {"kept/words.json", "kept/characters.json", "kept/classes.json"}
    assert tensors["kept/vectors.npy"].tolist() == [
        VECTORS[word] for word in json.loads(header["kept/words.json"])["words"][3:]
    ]
    assert header["task"] == "doc"
    assert json.loads(header["config"])["vectors"] == "vectors.txt"
    assert str(run.parent).encode() not in file.read_bytes()
    assert str(shared("lm")[0].parent).encode() not in shared("lm")[1].read_bytes()


def test_weights_come_back(shared, tmp_path, capsys):
    """Into another run, without what is no weight."""
    run, file = shared("doc")
    other = shutil.copytree(run, tmp_path / "run")
    (other / "best.ckpt").unlink()
    assert lrn("import", other, file) == 0
    assert library.load(other).predict(["splendid"]) == library.load(run).predict(["splendid"])


# Wrong requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "texts", "says"),
    [
        ("doc", "a text", "expected a list, a text for each entry, got the text 'a text'"),
        ("doc", b"bytes", "got a bytes"),
        ("doc", None, "got a NoneType"),
        ("doc", {"a": 1}, "got a dict"),
        ("doc", ["a", 3], "entry 1: expected a text, got 3"),
        ("doc", [("a", "b")], "entry 0: expected a text, got ('a', 'b')"),
        ("nli", ["only one"], "entry 0: expected a premise and a hypothesis, got 'only one'"),
        ("nli", [("a", None)], "entry 0: expected a premise and a hypothesis"),
    ],
)
def test_texts_that_are_none(task, texts, says, shared):
    with pytest.raises(TypeError, match=re.escape(says)):
        library.load(shared(task)[1]).predict(texts)


def test_half_a_character(shared):
    with pytest.raises(ValueError, match="entry 1: the text has half a character at 2"):
        library.load(shared("ner")[1]).predict(["a", "a \ud800"])


def test_nothing_to_say(shared):
    assert library.load(shared("doc")[1]).predict([]) == []
    assert library.load(shared("doc")[1]).predict([""]) == [{"label": None, "probabilities": {}}]
    assert library.load(shared("ner")[1]).predict([" "]) == [{"words": [], "tags": [], "entities": []}]


@pytest.mark.parametrize(
    ("task", "texts", "says"),
    [
        ("lm", ["a", ""], "entry 1: the text is empty"),
        ("lm", ["a", "b", " \n"], "entry 2: the text is empty"),
        ("rc", [("Anna slept.", "Who?"), (" ", "Who?")], "entry 1: the text is empty"),
        ("rc", [("Anna slept.", "")], "entry 0: the question is empty"),
    ],
)
def test_a_text_without_which_there_is_no_answer(task, texts, says, shared):
    """Which one it is, among many; and before the work on the others."""
    with pytest.raises(ValueError, match=says):
        library.load(shared(task)[1]).predict(texts)


@pytest.mark.parametrize("given", ["hi", ["hi"], [("a", "b")]], ids=str)
def test_a_model_that_is_called(given, shared):
    with pytest.raises(TypeError, match=re.escape("for texts call its method: model.predict([…])")):
        library.load(shared("doc")[1])(given)


def test_options(shared):
    tagger, model = library.load(shared("ner")[1]), library.load(shared("lm")[1])
    assert tagger.predict(["Anna's."], split=True)[0]["words"] == ["Anna's."]
    assert len(model.predict(["a b"], words=3, temperature=0)[0]["continuation"].split(" ")) <= 4
    with pytest.raises(
        ValueError, match=r"unknown option 'splt'; allowed: details, split; did you mean 'split'\?"
    ):
        tagger.predict(["a"], splt=True)
    with pytest.raises(ValueError, match=r"unknown option 'foo'; allowed: details$"):
        library.load(shared("doc")[1]).predict(["a"], foo=3)
    with pytest.raises(TypeError, match="words cannot be '3'; it is 50 by default"):
        model.predict(["a"], words="3")
    with pytest.raises(ValueError, match="unknown option 'files'"):
        model.predict(["a"], files=["/etc/passwd"])
    with pytest.raises(ValueError, match="temperature"):
        model.predict(["a"], temperature=float("nan"))


# Wrong files ----------------------------------------------------------------------------------------


def refused(path):
    """The one line in which a file is refused."""
    with pytest.raises((ValueError, OSError)) as error:
        library.load(path)
    assert str(error.value).count("\n") == 0
    assert len(str(error.value)) < 400 + len(str(path))
    return str(error.value)


def damaged(content):
    return {
        "empty": b"",
        "seven bytes": content[:7],
        "half the header": content[:100],
        "half": content[: len(content) // 2],
        "one byte less": content[:-1],
        "one byte more": content + b"\0",
        "huge header": struct.pack("<Q", 2**62) + content[8:],
        "foreign": b"PK\x03\x04 something else entirely",
        "pickle": b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
        "nested header": struct.pack("<Q", 100_000) + b"[" * 100_000,
    }


@pytest.mark.parametrize("kind", damaged(b""))
def test_a_damaged_file(kind, shared, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(damaged(shared("ner")[1].read_bytes())[kind])
    assert refused(path).startswith(f"{path} is not a safetensors file: ")


def test_a_place_that_is_none(shared, tmp_path):
    ending = "expected a file that ends in .safetensors, or a run folder"
    for name in ("model.onnx", "model", "model.safetensors.txt"):
        (tmp_path / name).write_text("")
        assert refused(tmp_path / name) == f"{tmp_path / name}: {ending}"
    assert refused(tmp_path / "none.safetensors") == f"there is no file {tmp_path / 'none.safetensors'}"
    meant = "; did you mean '" + str(tmp_path / "model.safetensors") + "'?"
    (tmp_path / "model.safetensors").write_text("")
    wrong = tmp_path / "modle.safetensors"
    assert refused(wrong) == f"there is no file {wrong}{meant}"
    assert refused(tmp_path) == f"{tmp_path} is not a run folder: it has no config.json"


def test_a_run_that_is_not_there(shared, tmp_path):
    """The run beside it that was meant, as the commands say it."""
    (tmp_path / "lm-lrn-quick-1").symlink_to(shared("lm")[0])
    wrong = tmp_path / "lm-lrn-quik-1"
    assert refused(wrong) == f"there is no run folder {wrong}; did you mean '{tmp_path / 'lm-lrn-quick-1'}'?"


def words(*entries):
    return json.dumps({"words": entries})


HEADERS = {
    "of another program": ({}, ("task", "config", "format"), "is not a model of lrn's"),
    "weights alone": (
        {},
        ("format",),
        "has weights alone, as older versions of lrn exported them; export the",
    ),
    "of a later version": ({"format": "2", "lrn": "9.9"}, (), "was exported by lrn '9.9', whose files"),
    "another task": ({"task": "nre"}, (), "unknown task 'nre'; allowed: lm, ner, "),
    "a task with a path": ({"task": "../../x"}, (), "unknown task '../../x'"),
    "settings": ({"config": "{"}, (), "is damaged: its settings are not JSON"),
    "nested settings": ({"config": "[" * 100_000}, (), "is damaged: its settings are not JSON"),
    "a list": ({"config": "[]"}, (), "is damaged: its settings are no settings but a list"),
    "a setting": ({"config": '{"speed": 1}'}, (), "has settings that this version does not know: speed"),
    "a kind": ({"config": '{"hidden": "5"}'}, (), "is damaged: hidden cannot be '5'"),
    "a size": ({"config": '{"hidden": 100000000}'}, (), "hidden must be at most 65,536"),
    "a wide model": (
        {"config": '{"hidden": 65536, "dense": 65536}'},
        (),
        "these weights are not this model's",
    ),
    "a run": ({"elsewhere": "bert"}, (), "has weights alone: its run keeps a folder, 'bert'"),
    "no words": ({}, ("kept/words.json",), "cannot be used: its words.json is missing"),
    "words": ({"kept/words.json": "{}"}, (), "words.json is no vocabulary"),
    "other words": ({"kept/words.json": words("<pad>", "a")}, (), "these weights are not this model's"),
    "no padding": ({"kept/tags.json": words("O", "B-PER")}, (), "tags.json does not begin with <pad>"),
    "no tags": ({"kept/tags.json": words()}, (), "tags.json does not begin with <pad>"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_that_cannot_be(kind, shared, tmp_path):
    header, without, says = HEADERS[kind]
    path = changed(shared("ner")[1], tmp_path / "model.safetensors", header, without=without)
    said = refused(path)
    assert said.startswith(str(path))
    assert says in said


TENSORS = {
    "infinite": ({"dense.bias": torch.full((4,), torch.inf)}, (), "dense.bias is not finite"),
    "eight bits": (
        {"dense.bias": torch.zeros(4).to(torch.float8_e4m3fn)},
        (),
        "dense.bias is no plain tensor but float8_e4m3fn",
    ),
    "whole numbers": ({"dense.bias": torch.zeros(4, dtype=torch.int64)}, (), "dense.bias is torch.int64"),
    "a shape": ({"dense.bias": torch.zeros(5)}, (), "dense.bias has shape (5,) in the file and (4,)"),
    "one less": ({}, ("dense.bias",), "dense.bias is in the model, not the file"),
    "one more": ({"more": torch.zeros(1)}, (), "more is in the file, not the model"),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_weights_that_cannot_be(kind, shared, tmp_path):
    tensors, without, says = TENSORS[kind]
    path = changed(shared("ner")[1], tmp_path / "model.safetensors", tensors=tensors, without=without)
    said = refused(path)
    assert said.startswith(str(path))
    assert says in said


@pytest.mark.parametrize(
    "vectors",
    [
        None,
        torch.zeros(2, 4),
        torch.zeros(12),
        torch.zeros(3, 4, dtype=torch.float64),
        torch.full((3, 4), torch.nan),
        torch.zeros(3, 5),
    ],
    ids=["none", "rows", "flat", "double", "nan", "width"],
)
def test_vectors_that_cannot_be(vectors, shared, tmp_path):
    name = "kept/vectors.npy"
    tensors, without = ({}, (name,)) if vectors is None else ({name: vectors}, ())
    path = changed(shared("doc")[1], tmp_path / "model.safetensors", tensors=tensors, without=without)
    assert refused(path).startswith(str(path))


def test_merges_that_cannot_be(shared, tmp_path):
    file = shared("mt")[1]
    path = changed(file, tmp_path / "model.safetensors", {"kept/bpe.json": '{"model": {"type": "BPE"}}'})
    assert refused(path) == f"{path}: bpe.json holds no merges: it lacks vocab or merges"


# Writing --------------------------------------------------------------------------------------------


def test_only_such_a_name(shared, tmp_path, capsys):
    for name in ("model", "model.pt", "model.safetensors.gz"):
        assert lrn("export", shared("ner")[0], tmp_path / name) == 2
        assert (
            capsys.readouterr().err
            == f"lrn: {tmp_path / name}: the name must end in .safetensors, .onnx or .pt2\n"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(shared, tmp_path, monkeypatch, capsys):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "model.safetensors"
    assert lrn("export", shared("ner")[0], path) == 2
    said = capsys.readouterr().err
    assert said == f"lrn: cannot write {path}: No space left on device; choose another place\n"
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_a_folder_of_others(shared, tmp_path):
    """The weights are exported, and can be imported; to be used they need the folder."""
    run = shutil.copytree(shared("nli")[0], tmp_path / "run")
    settings = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(settings | {"bert": "/somewhere/bert", "bert_frozen": True}))
    path = tmp_path / "model.safetensors"
    share.save(Run.open(run), path)
    assert content(path)[0]["elsewhere"] == "bert"
    assert "its run keeps a folder, 'bert', without which they cannot be used" in refused(path)
    (run / "config.json").write_text(json.dumps(settings))
    assert lrn("import", run, path, "--overwrite") == 0
