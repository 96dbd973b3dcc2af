"""Time of a training epoch by unit, with everything the task does around it, and of tagging a sentence.

    python benchmarks/epoch.py ner --data conll2003 --vectors glove.6B.100d.txt --units lstm,lrn --threads 2

Batches from all over an epoch are learnt from by all units in turn, several times; a batch's time is the
median of its turns, an epoch's the mean of the batches' times their number. Settings: the preset `paper`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from lrn.training.trainee import Step, Trainee

from lrn import tasks
from lrn.compare import units_of


def prepare(task: str, unit: str, words: argparse.Namespace) -> Trainee:
    settings = tasks.settings(task)
    values = dict(settings.presets["paper"]) | {"preset": "paper", "unit": unit, "data": words.data}
    trainee, _ = tasks.jobs(task).prepare(settings.train(**values, vectors=words.vectors))
    trainee.progress.epoch_seconds.append(0.0)
    trainee.train()
    return trainee  # type: ignore[no-any-return]


def epochs(task: str, units: list[str], words: argparse.Namespace) -> dict[str, float]:
    trainees = {unit: prepare(task, unit, words) for unit in units}
    steppers = {unit: trainee.alone() for unit, trainee in trainees.items()}
    plan = trainees[units[0]].plan(0)
    chosen = [Step(0, n, len(plan), plan[n]) for n in range(1, len(plan), max(1, len(plan) // words.batches))]
    taken: dict[str, list[float]] = {unit: [] for unit in units}
    for step in chosen:
        turns: dict[str, list[float]] = {unit: [] for unit in units}
        for _ in range(words.turns):
            for unit in units:
                start = time.perf_counter()
                steppers[unit](step)
                turns[unit].append(time.perf_counter() - start)
        for unit in units:
            taken[unit].append(statistics.median(turns[unit]))
    return {unit: statistics.fmean(values) * len(plan) for unit, values in taken.items()}


def latency(trainee: Any) -> float:
    """Seconds to tag a sentence of the test data, median over 200 of them, words in and tags out."""
    from lrn.tasks.ner.data import encode

    model = trainee.model.eval()
    taken = []
    for sentence in trainee.dataset.test[:220]:
        start = time.perf_counter()
        model.tag(encode([sentence.words], model.codes))
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[20:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("ner", "doc"))
    parser.add_argument("--data")
    parser.add_argument("--vectors")
    parser.add_argument("--units", default="lstm,lrn", type=units_of)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    found = epochs(words.task, words.units, words)
    reference = found[words.units[0]]
    for unit, seconds in found.items():
        print(f"{unit:5} {seconds:8.1f} s an epoch, {seconds / reference:.3f} of {words.units[0]}")
    if words.task == "ner":
        print(f"one sentence tagged in {latency(prepare('ner', 'lrn', words)) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
