"""The whole model of every task as a compiled package: it says what the run says, without lrn."""

import json
import shutil
import signal

import pytest
import torch
from tasks.trainings import lrn

import lrn as library
from lrn import tasks
from lrn.export import checks, to_package
from lrn.names import TASKS
from lrn.training.run import Run

UNITS = {"lm": "lstm", "ner": "gru", "doc": "atr", "nli": "sru", "rc": "lrn", "mt": "olrn"}
"""A unit for each task, others than those that leave as ONNX."""

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="needs a C++ compiler"),
    pytest.mark.skipif("cpu" not in library.engines(), reason="needs the C++ engine"),
]


@pytest.fixture(autouse=True, scope="module")
def room(tmp_path_factory):
    """A place of its own for what the compiler leaves behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_package_says_what_the_run_says(task, trained, tmp_path, capsys):
    run = trained(task, UNITS[task])
    capsys.readouterr()
    assert lrn("export", run, tmp_path / "model.pt2") == 0
    printed = capsys.readouterr()
    assert "model.pt2, model.json; checked in a process without lrn on " in printed.out
    assert not printed.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.pt2"]
    said = json.loads((tmp_path / "model.json").read_text())
    assert (said["task"], said["unit"], said["file"]) == (task, UNITS[task], "model.pt2")
    portable = tasks.load(task).leaving(Run.open(str(run)))
    given = {
        written["model"]: [tuple(tensor.contiguous() for tensor in each.inputs) for each in graph.examples]
        for graph, written in zip(portable.graphs, said["graphs"], strict=True)
    }
    answers = to_package.run_alone(tmp_path / "model.pt2", library.library_path(), given, "it")
    for graph, written in zip(portable.graphs, said["graphs"], strict=True):
        for example, found in zip(graph.examples, answers[written["model"]], strict=True):
            for port, ours, theirs in zip(written["outputs"], found, example.outputs, strict=True):
                assert checks.difference(ours, theirs) <= 1e-5, port["name"]


@pytest.fixture
def uncompiled(monkeypatch):
    """As if the compiler had written something."""
    monkeypatch.setattr(to_package, "compile_graphs", lambda graphs, package, what: package.touch())


def refused(trained, tmp_path, capsys):
    """What an export says that writes nothing."""
    run = trained("lm", "lstm")
    capsys.readouterr()
    assert lrn("export", run, tmp_path / "model.pt2") == 2
    assert list(tmp_path.iterdir()) == []
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_no_compiler(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-such-compiler")
    said = refused(trained, tmp_path, capsys)
    assert said.startswith("lrn: .pt2 is compiled by a C++ compiler, and there is no no-such-compiler here")


def test_what_torch_cannot_compile(trained, tmp_path, monkeypatch, capsys):
    def failing(*args, **more):
        raise RuntimeError("\n  out of luck  \n  at line 3")

    monkeypatch.setattr("torch._inductor.aot_compile", failing)
    said = refused(trained, tmp_path, capsys)
    assert said.endswith("(lm, lstm) ahead of time: RuntimeError: out of luck; use .onnx\n")


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("trial", "end"),
    [
        ("import os; os.kill(os.getpid(), 11)", f"crashes ({signal.SIGSEGV.name})"),
        ("raise ValueError('bad package')", "fails: ValueError: bad package"),
        ("import time; time.sleep(60)", "does not end within 1 seconds"),
    ],
)
def test_a_package_that_does_not_run(trial, end, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(to_package, "TRIAL", trial)
    monkeypatch.setattr(to_package, "SECONDS", 1 if "sleep" in trial else 100)
    said = refused(trained, tmp_path, capsys)
    assert said.endswith(f"into a package that {end}; nothing was written; use .onnx\n")


@pytest.mark.usefixtures("uncompiled")
def test_a_package_that_differs(trained, tmp_path, monkeypatch, capsys):
    def wrong(package, lib, inputs, what):
        portable = tasks.load("lm").leaving(Run.open(str(trained("lm", "lstm"))))
        return {"model": [[out + 1 for out in each.outputs] for each in portable.graphs[0].examples]}

    monkeypatch.setattr(to_package, "run_alone", wrong)
    assert "log_probabilities is not what the run says" in refused(trained, tmp_path, capsys)


def test_a_loop_is_given_its_sizes():
    """Of a graph with a loop, each open size that its outputs have, once."""

    class Sums(torch.nn.Module):
        def forward(self, x):
            from lrn.recurrence import loop

            return loop(lambda state, now: ((state[0] + now[0],), state[0]), (x[0],), (x,))[1]

    sizes = ({0: torch.export.Dim("steps"), 1: torch.export.Dim("rows")},)
    module = torch.export.export(Sums(), (torch.ones(4, 3, 2),), dynamic_shapes=sizes, strict=False).module(
        check_guards=False
    )
    to_package.name_sizes(module)
    (node,) = module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.scan)
    assert [str(number.target) for number in node.args[3]] == ["aten.sym_size.int"] * 2
    x = torch.randn(5, 2, 2)
    torch.testing.assert_close(module(x), x.cumsum(0) - x + x[0])
