"""From a trained LSTM to an LRN: the same model with another unit learns to imitate a run of `ner` or `doc`.

    python benchmarks/distill.py runs/ner-lstm-paper-1 --epochs 10 --out runs/ner-lrn-distilled

The student has the teacher's weights wherever the two are alike, and new ones in its recurrent layers. It
sees the inputs of the training data, without their labels. Both are scored by the task on its test data, and
timed on batches of training inputs, taking turns. With `--out` the student becomes a run folder, for
`lrn predict` and `lrn evaluate`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

import lrn
from lrn import tasks
from lrn.bench.timing import alternate
from lrn.names import UNITS
from lrn.tasks.base import Loaded
from lrn.training import checkpoint
from lrn.training.learner import Place
from lrn.training.run import Run

# What of each task's model is imitated: the scores of every word's tags, the scores of a document's classes.
CALLS: dict[str, Callable[[Any, Any], Tensor]] = {
    "ner": lambda model, batch: model.emissions(batch)[batch.mask],
    "doc": lambda model, batch: model(batch),
}


class Inputs:
    """The batches of the training data, in another order every time they are gone through."""

    def __init__(self, learner: Any, largest: int | None = None) -> None:
        self.learner, self.largest, self.epoch = learner, largest, 0

    def __len__(self) -> int:
        return len(self.learner.plan(0))

    def __iter__(self) -> Iterator[Any]:
        pieces = self.learner.plan(self.epoch)
        self.epoch += 1
        for piece in pieces:
            yield self.learner.batch(piece[: self.largest], Place())


def opened(folder: str, data: str | None) -> tuple[Any, Any, Any]:
    """A run's task, its training, and its model with the best weights."""
    run = Run.open(folder)
    if run.task not in CALLS:
        raise ValueError(f"{folder} is a run of {run.task}; this benchmark knows {' and '.join(CALLS)}")
    task: Any = tasks.load(run.task)
    return task, task.resume(run, data), task.load(run)


def student_of(task: Any, learner: Any, loaded: Any, unit: str) -> Any:
    """The same model with another unit, and the teacher's weights outside of it."""
    config = replace(loaded.config, unit=unit)
    torch.manual_seed(config.seed)
    model = task.build(config, learner.kept)
    inside = tuple(f"{name}." for name, part in model.named_modules() if isinstance(part, lrn.Unit))
    weights = {
        name: value for name, value in loaded.model.state_dict().items() if not name.startswith(inside)
    }
    model.load_state_dict(model.state_dict() | weights)
    return Loaded(config, learner.kept, model)


def score(task: Any, loaded: Any, learner: Any) -> float:
    """The task's figure on the test data."""
    found = task.score(loaded, learner.data, task.settings.evaluate(part="test"), "testing")
    return float(found.figures[task.metric.removeprefix("test_")])


def seconds(
    task: Any, learner: Any, models: dict[str, nn.Module], largest: int | None, most: float
) -> dict[str, float]:
    """The median time of a batch by model: on each of some batches they take turns."""
    batches = list(islice(Inputs(learner, largest), 20))
    run = CALLS[task.name]

    def all_batches(model: nn.Module) -> Callable[[], object]:
        return lambda: [run(model.eval(), batch) for batch in batches]

    with torch.no_grad():
        found = alternate({name: all_batches(model) for name, model in models.items()}, most)
    return {name: timing.median / len(batches) for name, timing in found.items()}


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def write(folder: str, task: Any, learner: Any, loaded: Any) -> None:
    """A run folder of the student, as far as it is needed to use it."""

    def fill(run: Run) -> None:
        learner.kept.save(run.folder)
        state = {"model": loaded.model.state_dict(), "figures": {}, "epoch": 0}
        checkpoint.save(run.best, task.name, state)

    Run.create(task.name, replace(loaded.config, out=folder, overwrite=False), learner.about, fill).release()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run folder of ner or doc, trained with --unit lstm")
    parser.add_argument("--unit", default="lrn", choices=UNITS)
    parser.add_argument("--data", help="where the run's data is now, if it was moved")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--states", type=float, default=0.0, help="weight of the states of the layers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0, help="to time for")
    parser.add_argument("--out", help="a new run folder for the student")
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    try:
        task, learner, teacher = opened(words.run, words.data)
        if words.out:
            Run.check_free(task.name, replace(teacher.config, out=words.out, overwrite=False))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    student = student_of(task, learner, teacher, words.unit)
    report = lrn.distill(
        teacher.model,
        student.model,
        Inputs(learner),
        epochs=words.epochs,
        lr=words.lr,
        states=words.states,
        call=CALLS[task.name],
        seed=teacher.config.seed,
    )
    print(report, end="\n\n")
    if words.out:
        write(words.out, task, learner, student)
    models = {f"{teacher.config.unit}, the teacher": teacher, f"{words.unit}, the student": student}
    times = seconds(task, learner, {name: each.model for name, each in models.items()}, None, words.seconds)
    print(f"{'':22} {task.metric:>12} {'parameters':>12} {'ms a batch':>12}")
    for name, each in models.items():
        print(
            f"{name:22} {score(task, each, learner):12.2f} {count(each.model):12,} {times[name] * 1e3:12.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
