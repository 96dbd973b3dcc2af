"""What leaves a task: every graph says what the run says, for all sizes, and everything has a meaning."""

import json

import pytest
import torch
from tasks.lm.cases import write_corpus
from tasks.small import SETTINGS
from tasks.trainings import lrn

from lrn import tasks
from lrn.export.checks import TOLERANCE, difference
from lrn.names import TASKS
from lrn.tasks.portable import Example, Graph, Port, padded, some
from lrn.training.run import Run

every_task = pytest.mark.parametrize("task", TASKS)


@pytest.fixture(scope="module")
def leaving(tmp_path_factory):
    """What leaves a run of a task that has hardly begun to learn, by the task's name and unit."""
    folder, known = tmp_path_factory.mktemp("runs"), {}
    text = write_corpus(folder / "text")

    def made(task, unit="lrn", *more):
        key = (task, unit, *more)
        if key not in known:
            out = folder / "-".join(key)
            data = ["--data", text] if task == "lm" else []
            words = [*SETTINGS[task], *data, "--unit", unit, "--max_steps", 1, "--test", "false", *more]
            assert lrn("train", task, *words, "--out", out) == 0
            known[key] = tasks.load(task).leaving(Run.open(out))
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield made
    torch._dynamo.reset()  # a traced graph leaves it with sizes that it takes for symbols


def check(graph):
    for example in graph.examples:
        with torch.no_grad():
            found = graph.module.eval()(*example.inputs)
        for port, ours, theirs in zip(graph.outputs, found, example.outputs, strict=True):
            assert difference(ours, theirs) <= TOLERANCE, (graph.name, port.name)


@pytest.mark.parametrize("unit", ["lrn", "sru", "lstm"])
@every_task
def test_a_graph_says_what_the_run_says(task, unit, leaving):
    for graph in leaving(task, unit).graphs:
        check(graph)


@pytest.mark.parametrize("unit", ["sru", "lstm"])
@every_task
def test_a_graph_with_states_of_two_parts_can_be_traced(task, unit, leaving):
    """LRN's are traced where they are exported."""
    for graph in leaving(task, unit).graphs:
        traced = graph.traced().module(check_guards=False)
        for example in graph.examples:
            for port, ours, theirs in zip(
                graph.outputs, traced(*example.inputs), example.outputs, strict=True
            ):
                assert difference(ours, theirs) <= TOLERANCE, (graph.name, port.name)


@pytest.mark.parametrize(
    ("task", "more"),
    [
        ("nli", ("--norm", "layer")),
        ("nli", ("--norm", "rms")),
        ("mt", ("--norm", "rms")),
        ("doc", ("--pooling", "last")),
        ("lm", ("--experts", "3", "--drop_weights", "0.2")),
    ],
)
def test_other_settings(task, more, leaving):
    for graph in leaving(task, "lrn", *more).graphs:
        check(graph)


@every_task
def test_padding_does_not_count(task, leaving):
    """More of it, and other things in it, change nothing where anything is."""
    for graph in leaving(task).graphs:
        example = graph.examples[0]
        behind = {
            name for port in graph.inputs for name in port.axes if isinstance(name, str) and "steps" in name
        }
        if not behind:
            continue
        longer = [
            _longer(port, value, behind) for port, value in zip(graph.inputs, example.inputs, strict=True)
        ]
        with torch.no_grad():
            found = graph.module.eval()(*longer)
        for port, ours, theirs in zip(graph.outputs, found, example.outputs, strict=True):
            kept = tuple(slice(size) for size in theirs.shape)
            assert difference(ours[kept].contiguous(), theirs) <= TOLERANCE, port.name


def _longer(port, value, behind):
    for axis, name in enumerate(port.axes):
        if name in behind:
            more = list(value.shape)
            more[axis] = 3
            value = torch.cat([value, torch.ones(more, dtype=value.dtype)], axis)
    return value


@every_task
def test_everything_has_a_meaning(task, leaving):
    portable = leaving(task)
    assert tuple(graph.name for graph in portable.graphs) == tasks.settings(task).graphs
    about = json.loads(json.dumps(portable.about()))
    assert about["text"]
    assert about["answer"]
    assert all(about["vocabularies"].values())
    for graph in about["graphs"]:
        names = [port["name"] for side in ("inputs", "outputs") for port in graph[side]]
        assert len(set(names)) == len(names)
        for port in (*graph["inputs"], *graph["outputs"]):
            assert port["meaning"].endswith(".")
            assert len(port["shape"]) >= 1
        inputs = {port["name"] for port in graph["inputs"]}
        assert {port["becomes"] for port in graph["outputs"] if "becomes" in port} <= inputs


@every_task
def test_the_first_example_can_be_traced(task, leaving):
    """Torch takes a size of 1 for one that is fixed."""
    for graph in leaving(task).graphs:
        assert len(graph.examples) >= 2
        for axes, value in zip(graph.free(), graph.examples[0].inputs, strict=True):
            assert all(value.shape[axis] > 1 for axis in axes)


@pytest.mark.parametrize(("task", "setting", "what"), [("nli", "bert", "a BERT"), ("rc", "elmo", "an ELMo")])
def test_what_cannot_leave(task, setting, what):
    said = tasks.load(task)
    assert said.cannot_leave(said.settings.train()) == ""
    reason = said.cannot_leave(said.settings.train(**{setting: "folder"}))
    assert reason == f"with {what}, which cannot leave with it; runs without --{setting} can"


# The contract itself ------------------------------------------------------------------------------


def test_an_example_of_another_shape():
    port = Port("x", ("rows", 2), "Numbers.")
    with pytest.raises(ValueError, match=r"x is \['rows', 2\], got an example of \[3, 4\]"):
        Graph(
            "",
            "",
            torch.nn.Identity(),
            (port,),
            (port,),
            (Example((torch.ones(3, 4),), (torch.ones(3, 2),)),),
        )


def test_few_sequences_to_choose_from():
    assert some([5]) == [0, 0, 0]
    assert padded([[1]]).tolist() == [[1, 0]]
