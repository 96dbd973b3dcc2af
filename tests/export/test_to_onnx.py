"""The whole model of every task as ONNX: it says what the run says, by the file and its JSON alone."""

import json

import numpy as np
import pytest
import torch
from onnx_files import session
from tasks.trainings import lrn

from lrn import tasks
from lrn.export import checks, to_onnx
from lrn.names import TASKS
from lrn.tasks.mt.data import source_batch
from lrn.tasks.mt.search import Search, beam_search
from lrn.training.run import Run

UNITS = {"lm": "sru", "ner": "lstm", "doc": "atr", "nli": "lrn", "rc": "lrn", "mt": "gru"}
"""A unit for each task, so that every op leaves somewhere."""


@pytest.fixture(scope="module")
def run_of(trained):
    """A run of a task."""
    return lambda task: trained(task, UNITS[task])


every_task = pytest.mark.parametrize(
    "task", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("rc", "nli"))) for name in TASKS]
)


@pytest.fixture(scope="module")
def exported(run_of, tmp_path_factory):
    """The folder with what `lrn export` writes of a task's run, and what it prints."""
    known = {}

    def made(task, capsys=None):
        if task not in known:
            folder = tmp_path_factory.mktemp(f"exported-{task}")
            assert lrn("export", run_of(task), folder / "model.onnx") == 0
            known[task] = folder
        return known[task]

    return made


def about(folder):
    return json.loads((folder / "model.json").read_text())


@every_task
def test_the_file_says_what_the_run_says(task, exported, run_of):
    folder = exported(task)
    said = about(folder)
    assert (said["task"], said["unit"], said["opset"]) == (task, UNITS[task], 18)
    portable = tasks.load(task).leaving(Run.open(str(run_of(task))))
    names = {graph["file"] for graph in said["graphs"]} | {"model.json"}
    assert {path.name for path in folder.iterdir()} == names
    for graph, written in zip(portable.graphs, said["graphs"], strict=True):
        file = session(str(folder / written["file"]))
        assert [value.name for value in file.get_inputs()] == [port["name"] for port in written["inputs"]]
        for value, port in zip(file.get_inputs(), written["inputs"], strict=True):
            assert value.shape == port["shape"]
        outputs = [port["name"] for port in written["outputs"]]
        for example in graph.examples:
            given = {
                port["name"]: tensor.numpy()
                for port, tensor in zip(written["inputs"], example.inputs, strict=True)
            }
            found = file.run(outputs, given)
            for name, ours, theirs in zip(outputs, found, example.outputs, strict=True):
                assert checks.difference(torch.from_numpy(ours), theirs) <= 1e-5, name


def test_a_translation_by_the_files_alone(exported, run_of):
    """Step by step, the likeliest piece each time, as the run finds it."""
    folder, loaded = exported("mt"), tasks.load("mt").load(Run.open(str(run_of("mt"))))
    said = about(folder)
    encoder, decoder = (session(str(folder / graph["file"])) for graph in said["graphs"])
    carried = {port["name"]: port["becomes"] for port in said["graphs"][1]["outputs"] if "becomes" in port}
    end, never, further = (said["settings"][name] for name in ("end", "never", "further"))
    numbers = loaded.kept.codes.source.encode("the old man sleeps")
    with torch.no_grad():
        batch = source_batch([np.array(numbers, np.int32)])
        expected = beam_search(loaded.model, batch, Search(1))[0][0].pieces
    pieces, lengths = np.array([[*numbers, end]]), np.array([len(numbers) + 1])
    keys, values, *states = encoder.run(None, {"pieces": pieces, "lengths": lengths})
    given = {"piece": np.array([-1]), "lengths": lengths, "keys": keys, "values": values}
    given |= dict(zip(carried.values(), states, strict=True))
    found = []
    while True:
        logarithms, *states = decoder.run(None, given)
        logarithms[:, never] = -np.inf
        if not found:
            logarithms[:, end] = -np.inf
        piece = int(logarithms.argmax()) if len(found) + 1 < lengths[0] + further else end
        if piece == end:
            break
        found.append(piece)
        given |= {"piece": np.array([piece]), **dict(zip(carried.values(), states, strict=True))}
    assert tuple(found) == expected


def test_the_same_run_gives_the_same_file(exported, run_of, tmp_path, capsys):
    assert lrn("export", run_of("lm"), tmp_path / "model.onnx") == 0
    said = capsys.readouterr()
    assert "checked in onnxruntime on 3 batches of the run's data: largest difference " in said.out
    assert not said.err
    for name in ("model.onnx", "model.json"):
        assert (tmp_path / name).read_bytes() == (exported("lm") / name).read_bytes()
    content = (tmp_path / "model.onnx").read_bytes()
    assert b"site-packages" not in content
    assert b".py" not in content


def test_weights_beside_a_file_that_cannot_hold_them(run_of, tmp_path, monkeypatch):
    monkeypatch.setattr(to_onnx, "LARGEST", 0)
    assert lrn("export", run_of("lm"), tmp_path / "model.onnx") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.onnx", "model.onnx.data"]


def test_a_file_that_differs_is_not_written(run_of, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(checks, "TOLERANCE", -1.0)
    assert lrn("export", run_of("lm"), tmp_path / "model.onnx") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"lrn: {tmp_path / 'model.onnx'}: log_probabilities is not what the run says")
    assert list(tmp_path.iterdir()) == []


def test_data_that_has_moved(run_of, tmp_path, capsys):
    """It is needed to check the file, and can be somewhere else now."""
    import shutil

    run = shutil.copytree(run_of("lm"), tmp_path / "run")
    settings = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(settings | {"data": str(tmp_path / "gone")}))
    assert lrn("export", run, tmp_path / "model.onnx") == 2
    said = capsys.readouterr().err
    assert "gone" in said
    assert "--data" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
