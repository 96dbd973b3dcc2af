"""The contract of a task: what every task must say, and what follows for all of them alike."""

import csv
import json
import os
import re
import select
import shutil
import sys
import threading

import numpy as np
import pytest
import torch
from tasks.doc.cases import learner as doc_learner
from tasks.lm.cases import write_corpus
from tasks.mt.cases import learner as mt_learner
from tasks.ner.cases import learner as ner_learner
from tasks.nli.cases import learner as nli_learner
from tasks.rc.cases import learner as rc_learner
from tasks.small import SETTINGS
from tasks.trainings import given, learnt, lrn, metrics

from lrn import tasks
from lrn.names import TASKS
from lrn.tasks.base import Loaded, Score, Task, TaskLearner, rounded
from lrn.tasks.doc.data import read_cues
from lrn.training import checkpoint
from lrn.training.checkpoint import BestState, TrainingState
from lrn.training.learner import Place
from lrn.training.run import Run

VALIDATION = {
    "lm": ["--columns", 2],
    "ner": [],
    "doc": [],
    "nli": [],
    "rc": [],
    "mt": ["--beam", 1],
}  # how validation differs from an evaluation
PREDICTION = {
    "lm": ["--prompt", "a", "--words", 1],
    "ner": [],
    "doc": [],
    "nli": [],
    "rc": ["--text", __file__],
    "mt": [],
}

every_task = pytest.mark.parametrize("task", TASKS)
every_precision = pytest.mark.parametrize("precision", ["32", "bf16"])


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """A task's run by its name and precision, trained when it is first asked for. Not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    text = write_corpus(folder / "text")

    def run(task, precision="32"):
        out = folder / f"{task}-{precision}"
        data = ["--data", text] if task == "lm" else []
        if not out.exists():
            assert lrn("train", task, *SETTINGS[task], *data, "--out", out, "--precision", precision) == 0
        return out

    return run


def logged(run):
    """The figures of validation, by epoch."""
    with (run / "log.csv").open(newline="") as file:
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    return [row for row in rows if any(name.startswith("valid_") for name in row)]


@pytest.fixture
def evaluated(capsys):
    def figures(run, *words):
        capsys.readouterr()
        assert lrn("evaluate", run, "--threads", 1, *words) == 0
        return json.loads(capsys.readouterr().out)

    return figures


@pytest.fixture
def measured(monkeypatch):
    """Tells how every score of a task was taken: on which part, in which type, whether in training mode."""

    def watch(task):
        kind, seen = type(tasks.load(task)), []
        measure = kind.measure

        def spy(self, loaded, data, options, progress):
            types = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
            seen.append((options.part, types, loaded.model.training))
            return measure(self, loaded, data, options, progress)

        monkeypatch.setattr(kind, "measure", spy)
        return seen

    return watch


# What a task says ---------------------------------------------------------------------------------


@every_task
def test_it_says_what_it_must(task):
    said = tasks.load(task)
    assert isinstance(said, Task)
    assert tasks.load(task) is said
    assert said.name == task
    assert said.settings is tasks.settings(task)
    assert issubclass(said.learner_type, TaskLearner)
    assert type(said.lower_is_better) is type(said.tests_last_epoch) is bool
    assert said.metric.startswith("test_")
    assert said.curve == "valid_" + said.metric.removeprefix("test_")
    assert not getattr(type(said), "__abstractmethods__", None)


@every_task
def test_what_it_says_is_what_a_run_holds(task, run_of):
    said, run = tasks.load(task), run_of(task)
    best = BestState.load(run / "best.ckpt", task)
    assert said.monitor in best.figures
    assert said.metric in metrics(run)
    for name in best.figures:
        assert {f"valid_{name}", f"test_{name}"} <= metrics(run).keys()
    assert [row["epoch"] for row in logged(run)] == [*range(1, metrics(run)["epochs"] + 1)]
    for row in logged(run):
        assert {said.curve, *(f"valid_{name}" for name in best.figures)} <= row.keys()
    assert (f"{said.metric}_last_epoch" in metrics(run)) == said.tests_last_epoch


@every_task
def test_the_best_is_the_best_of_the_monitored_figure(task, run_of):
    said, run = tasks.load(task), run_of(task)
    values = [row[f"valid_{said.monitor}"] for row in logged(run)]
    best = min(values) if said.lower_is_better else max(values)
    assert metrics(run)["best_epoch"] == values.index(best) + 1
    assert BestState.load(run / "best.ckpt", task).figures[said.monitor] == best


@every_task
def test_a_training_that_diverges_says_so(task, tmp_path, capsys):
    """Where the loss stays finite, too, and can grow to 18.4 only; no figure is given for what is none."""
    words = ["<unk>", *(f"w{n}" for n in range(4_000))]  # of so many, even a guess has a loss of 8.3
    data = ["--data", write_corpus(tmp_path / "text", words)] if task == "lm" else []
    run = tmp_path / "run"
    for words in (["train", task, *SETTINGS[task], *data, "--out", run], ["train", "--resume", run]):
        assert lrn(*words, *(["--lr", "1e9"] if "--out" in words else [])) == 2
        said = capsys.readouterr()
        assert said.out == ""
        *_, last = said.err.splitlines()
        assert re.match(r"lrn: the loss .*epoch 1, step \d", last)
        assert last.endswith(": training has diverged; try a smaller --lr (now 1e+09)")
        assert tasks.load(task).metric not in said.err
        assert not (run / "metrics.json").exists()


SPOKEN = {
    "ner": ([], "Anna works for Borealis."),
    "doc": ([], "I found it splendid."),
    "nli": ([], "A dog runs.\tAn animal runs."),
    "rc": (["--text", __file__], "What does a task say?"),
    "mt": ([], "The lamp costs $5."),
}


@pytest.mark.parametrize("task", SPOKEN)
def test_each_line_is_answered_before_the_next_is_written(task, run_of, monkeypatch, capsys):
    """Over pipes that stay open. When nobody reads on, as after `| head -3`, it ends quietly."""
    words, line = SPOKEN[task]
    run = run_of(task)
    given, to_program = os.pipe()
    from_program, said = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(given))
    monkeypatch.setattr("sys.stdout", os.fdopen(said, "w"))
    capsys.readouterr()
    codes = []
    program = threading.Thread(
        target=lambda: codes.append(lrn("predict", run, "--threads", 1, *words)), daemon=True
    )
    program.start()
    try:
        for _ in range(3):
            os.write(to_program, f"{line}\n".encode())
            answer = b""
            while not answer.endswith(b"\n"):
                there, *_ = select.select([from_program], [], [], 20)
                assert there, "no answer came"
                answer += os.read(from_program, 10_000)
    finally:
        os.close(from_program)
        os.write(to_program, f"{line}\n".encode())
        os.close(to_program)
        program.join(60)
        sys.stdout.close()
        sys.stdin.close()
    assert codes == [141]
    assert capsys.readouterr().err == ""


@every_task
def test_what_it_may_leave_to_others(task, run_of):
    """Only a classifier can say what it remembers."""
    said, run = tasks.load(task), Run.open(run_of(task))
    if task == "doc":
        assert said.remembered(run, "splendid").words == ["splendid"]
        return
    assert said.remembered_example(run) is None
    with pytest.raises(ValueError, match=f"is a run of {task}, which cannot say what it remembers"):
        said.remembered(run, "splendid")


def test_a_score_in_writing():
    score = Score({"words": 3}, {"loss": 1.23456789, "perplexity": 3.456789}, {"LOC": {"f1": 1.5}})
    written = {"words": 3, "loss": 1.23457, "perplexity": 3.4568, "LOC": {"f1": 1.5}}
    assert score.to_json() == written
    assert [*score.to_json()] == [*written]
    assert rounded(score.figures, "test_") == {"test_loss": 1.23457, "test_perplexity": 3.4568}


# One score ----------------------------------------------------------------------------------------


@every_task
@every_precision
def test_the_same_figure_whoever_asks(task, precision, run_of, evaluated):
    """Validation, the test at the end of the training and `lrn evaluate`, in the run's precision."""
    run = run_of(task, precision)
    names = BestState.load(run / "best.ckpt", task).figures
    found = {"test": evaluated(run), "valid": evaluated(run, "--part", "valid", *VALIDATION[task])}
    for part, figures in found.items():
        assert {name: figures[name] for name in names} == {
            name: metrics(run)[f"{part}_{name}"] for name in names
        }
    (row,) = (row for row in logged(run) if row["epoch"] == metrics(run)["best_epoch"])
    validated = {name: row[f"valid_{name}"] for name in names}
    assert rounded(validated) == {name: found["valid"][name] for name in names}


@every_task
@every_precision
def test_every_score_is_taken_in_the_precision_of_the_run(task, precision, run_of, measured, tmp_path):
    """And without dropout."""
    seen, said = measured(task), tasks.load(task)
    run = run_of(task, precision)
    assert said.load(Run.open(run)).config.precision == precision
    data = Run.open(run).data()
    words = [*SETTINGS[task], *(["--data", data] if data else []), "--epochs", 2]
    assert lrn("train", task, *words, "--out", tmp_path / "run", "--precision", precision) == 0
    assert lrn("evaluate", tmp_path / "run") == 0
    assert lrn("evaluate", tmp_path / "run", "--last", "--part", "train") == 0
    parts = ["valid", "valid", *["test"] * said.tests_last_epoch, "test", "test", "train"]
    types = {"32": torch.float32, "bf16": torch.bfloat16}[precision]
    assert seen[-len(parts) :] == [(part, types, False) for part in parts]


@pytest.mark.parametrize(
    "task", ["lm", "doc", "nli", "rc", "mt"]
)  # a tagger's figures count what is right: too few to differ
def test_the_precision_makes_a_difference(task, run_of, evaluated, tmp_path):
    run = shutil.copytree(run_of(task, "bf16"), tmp_path / "run")
    in_bf16 = evaluated(run)
    settings = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(settings | {"precision": "32"}))
    assert evaluated(run)["loss"] != in_bf16["loss"]


@every_task
def test_prediction_is_in_the_precision_of_the_run(task, run_of, monkeypatch):
    seen = []
    kind = type(tasks.load(task))
    monkeypatch.setattr(kind, "predict", lambda *args: seen.append(torch.is_autocast_enabled("cpu")))
    for precision in ("bf16", "32"):
        assert lrn("predict", run_of(task, precision), *PREDICTION[task]) == 0
    assert seen == [True, False]


@every_task
@pytest.mark.parametrize("training", [True, False])
def test_scoring_leaves_the_model_in_its_mode(task, training, run_of):
    said, run = tasks.load(task), Run.open(run_of(task))
    loaded = said.load(run)
    loaded.model.train(training)
    student = said.resume(run)
    said.score(loaded, student.data, said.settings.evaluate())
    assert loaded.model.training == training
    assert all(parameter.grad is None for parameter in loaded.model.parameters())


@every_task
def test_without_a_test(task, run_of, measured, tmp_path):
    """Neither of the best weights nor of those of the last epoch."""
    seen = measured(task)
    data = Run.open(run_of(task)).data()
    seen.clear()
    words = [*SETTINGS[task], *(["--data", data] if data else []), "--max_steps", 2]
    assert lrn("train", task, *words, "--out", tmp_path / "run", "--test", "false") == 0
    assert [part for part, _, _ in seen] == ["valid"]
    assert tasks.load(task).curve in metrics(tmp_path / "run")
    assert not [name for name in metrics(tmp_path / "run") if name.startswith("test")]


# Loading ------------------------------------------------------------------------------------------


def raw(run, task):
    """What a run has learnt in the end, before it is averaged."""
    loaded = tasks.load(task).empty(Run.open(run))
    state = TrainingState.load(run / "last.ckpt", task)
    assert state.evaluated()
    checkpoint.load_weights(loaded.model, state.model)
    return loaded


@every_task
@every_precision
def test_the_last_weights_are_those_of_the_last_epoch(task, precision, run_of, evaluated):
    """Averaged, by a moving average or by averaged SGD: what validation and test have seen."""
    said, run = tasks.load(task), run_of(task, precision)
    names = BestState.load(run / "best.ckpt", task).figures
    found = evaluated(run, "--last", "--part", "valid", *VALIDATION[task])
    last = {name: logged(run)[-1][f"valid_{name}"] for name in names}
    assert {name: found[name] for name in names} == rounded(last)
    found = evaluated(run, "--last")
    if said.tests_last_epoch:
        assert found[said.metric.removeprefix("test_")] == metrics(run)[f"{said.metric}_last_epoch"]
    data = said.resume(Run.open(run)).data
    other = said.score(raw(run, task), data, said.settings.evaluate()).to_json()
    assert {name: other[name] for name in names} != {name: found[name] for name in names}


def test_averaged_sgd_was_at_work(run_of):
    """In the runs above."""
    state = TrainingState.load(run_of("lm") / "last.ckpt", "lm")
    assert state.extra[0]["averaging"]
    assert not state.average


@every_task
@pytest.mark.parametrize(
    ("words", "name"),
    [(["evaluate"], "best.ckpt"), (["evaluate", "--last"], "last.ckpt"), (["predict"], "best.ckpt")],
)
def test_weights_are_read_once(task, words, name, run_of, monkeypatch):
    command, *options = words
    run, read, load = run_of(task), [], checkpoint.load
    monkeypatch.setattr(checkpoint, "load", lambda path, task: read.append(path) or load(path, task))
    given(monkeypatch, b"")
    assert lrn(command, run, *options, *(PREDICTION[task] if command == "predict" else [])) == 0
    assert read == [run / name]


@every_task
def test_a_model_is_loaded_ready_for_use(task, run_of):
    said, run = tasks.load(task), run_of(task)
    loaded = said.load(Run.open(run))
    assert isinstance(loaded, Loaded)
    assert not loaded.model.training
    assert loaded.device == torch.device("cpu")
    best = BestState.load(run / "best.ckpt", task).model
    assert all(torch.equal(value, best[name]) for name, value in loaded.model.state_dict().items())


# Steps --------------------------------------------------------------------------------------------


@pytest.fixture(params=["ner", "doc", "nli", "rc", "mt"])
def student(request):
    """A learner in float64, without dropout, whose pieces are numbers of sequences."""
    if request.param == "doc":
        return doc_learner(read_cues(100), l2=0.0, smoothing=0.1)
    made = {"ner": ner_learner, "nli": nli_learner, "rc": rc_learner, "mt": mt_learner}
    return made[request.param]()


def some(student, count):
    """A piece of sequences of different lengths."""
    numbers = np.arange(count)
    return numbers if isinstance(student.plan(0)[0], np.ndarray) else numbers.tolist()


def assert_same_gradients(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [(8, 8), (8, 3), (5, 1, 4)])
def test_gradients_of_several_batches_add_up_to_those_of_a_large_one(sizes, student):
    whole, pieces = some(student, sum(sizes)), []
    for size in sizes:
        first = sum(map(len, pieces))
        pieces.append(whole[first : first + size])
    expected, found = learnt(student, whole), learnt(student, *pieces)
    assert_same_gradients(found.gradients, expected.gradients)
    assert found.loss == pytest.approx(expected.loss, abs=1e-12)
    assert found.tokens == expected.tokens


@every_task
def test_accumulated_batches_are_those_of_the_plan(task, run_of):
    """Two by two, each once, in its order."""
    said, run = tasks.load(task), Run.open(run_of(task))
    run.config["accumulate"] = 2
    student = said.resume(run)
    plan, steps = [tuple(p) for work in student.plan(1) for p in student.split(work)], student.steps(1)
    assert len(steps) == (len(plan) + 1) // 2
    assert [len(step.pieces) for step in steps[:-1]] == [2] * (len(steps) - 1)
    assert [tuple(piece) for step in steps for piece in step.pieces] == plan
    assert [step.index for step in steps] == [*range(len(steps))]
    assert {(step.epoch, step.steps) for step in steps} == {(1, len(steps))}


def test_a_process_without_a_sequence_counts_for_nothing(student):
    """It has a batch all the same, since all processes have to take the step together."""
    piece = some(student, 1)
    first, second = (learnt(student, piece, place=Place(rank, 2)) for rank in (0, 1))
    assert second.loss == 0
    assert not any(gradient.any() for gradient in second.gradients)
    alone = learnt(student, piece)
    assert first.loss == pytest.approx(2 * alone.loss, abs=1e-12)
    assert_same_gradients(first.gradients, [2 * gradient for gradient in alone.gradients])
    assert second.tokens == first.tokens == alone.tokens


@pytest.mark.parametrize("sizes", [(8, 3), (1, 2)])
def test_processes_that_accumulate_average_to_the_gradient_of_one(sizes, student):
    whole = some(student, sum(sizes))
    pieces = whole[: sizes[0]], whole[sizes[0] :]
    expected = learnt(student, whole)
    parts = [learnt(student, *pieces, place=Place(rank, 2)) for rank in (0, 1)]
    means = [sum(both) / 2 for both in zip(*(part.gradients for part in parts), strict=True)]
    assert_same_gradients(means, expected.gradients)
    assert sum(part.loss for part in parts) / 2 == pytest.approx(expected.loss, abs=1e-12)
