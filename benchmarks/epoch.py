"""Time and memory of a training by unit, with everything the task does around it, and of a single prediction.

    python benchmarks/epoch.py ner --data conll2003 --vectors glove.6B.100d.txt --units lstm,lrn --threads 2

Batches from all over an epoch are learnt from by all units in turn, several times; a batch's time is the
median of its turns, an epoch's the mean of the batches' times their number. A step is the very same that
`lrn train` takes, batches made on the spot. Memory is the most that a step holds beyond what was there before
it, the median over a few batches. Settings: the preset `paper`, or another one: `--preset quick`.

`--profile` says instead where the time of a step goes: forward by part of the model, and all of it by kind of
operation.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from lrn import tasks
from lrn.bench.tables import peak_bytes
from lrn.compare import units_of
from lrn.names import TASKS
from lrn.training import device
from lrn.training.loop import Loop


def prepare(unit: str, words: argparse.Namespace) -> Loop:
    """A training that is ready for its first step."""
    known = tasks.settings(words.task)
    given = {"data": words.data, "vectors": words.vectors}
    given = {name: value for name, value in given.items() if value is not None}
    preset = {**known.presets[words.preset], "preset": words.preset}
    config = known.train(**{**preset, "unit": unit, "threads": words.threads, **given})
    learner = tasks.load(words.task).prepare(config)
    learner.model.train()
    return Loop(learner, device.fabric(learner.config))


def epochs(loops: dict[str, Loop], words: argparse.Namespace) -> dict[str, float]:
    units = list(loops)
    steps = loops[units[0]].learner.steps(0)
    taken: dict[str, list[float]] = {unit: [] for unit in units}
    for step in steps[1 :: max(1, len(steps) // words.batches)]:
        turns: dict[str, list[float]] = {unit: [] for unit in units}
        for _ in range(words.turns):
            for unit, loop in loops.items():
                start = time.perf_counter()
                float(loop.take(step))
                turns[unit].append(time.perf_counter() - start)
        for unit in units:
            taken[unit].append(statistics.median(turns[unit]))
    return {unit: statistics.fmean(values) * len(steps) for unit, values in taken.items()}


def memory(loop: Loop) -> float:
    """The bytes that a step holds at its peak, median over a few batches of an epoch."""
    steps = loop.learner.steps(0)
    taken = [
        peak_bytes(partial(loop.take, step), torch.empty(0)) for step in steps[1 :: max(1, len(steps) // 5)]
    ]
    return statistics.median(taken)


KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "mkldnn::"),
    "walks": ("lrn::scan", "lrn::fused", "lrn::walk", "lrn::atr"),
    "attention": ("lrn::attend", "lrn::open_memory"),
    "masks of dropouts": ("aten::bernoulli", "aten::random_"),
}


def profile(loop: Loop, batches: int) -> None:
    """Print the shares of a step's time, over some batches of an epoch."""
    steps = loop.learner.steps(0)
    steps = steps[1 :: max(1, len(steps) // batches)]
    for step in steps[:2]:
        loop.take(step)
    spans: list[Any] = []
    for name, part in loop.learner.model.named_children():
        part.register_forward_pre_hook(
            lambda *_, name=name: spans.append(torch.profiler.record_function(f"part {name}").__enter__())
        )
        part.register_forward_hook(lambda *_: spans.pop().__exit__(None, None, None), always_call=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        for step in steps:
            loop.take(step)
    events = found.key_averages()
    whole = sum(event.self_cpu_time_total for event in events)
    print(f"{whole / 1e3 / len(steps):.0f} ms a step\n  forward, by part of the model:")
    for event in events:
        if event.key.startswith("part "):
            print(f"    {event.key[5:]:20} {event.cpu_time_total / whole:6.1%}")
    print("  all of it, by kind of operation:")
    shares = {
        kind: sum(event.self_cpu_time_total for event in events if event.key.startswith(names))
        for kind, names in KINDS.items()
    }
    shares["optimizer"] = sum(event.cpu_time_total for event in events if event.key.startswith("Optimizer"))
    shares["the rest"] = whole - sum(shares.values())
    for kind, taken in shares.items():
        print(f"    {kind:20} {taken / whole:6.1%}")


def tagging(learner: Any) -> Iterator[Callable[[], object]]:
    """A sentence of the test data each: words in, tags out."""
    from lrn.tasks.ner.predict import tag_all

    loaded = learner.loaded
    for sentence in learner.data.test[:220]:
        yield partial(tag_all, loaded.model, loaded.kept.codes, [sentence.words])


def answering(learner: Any) -> Iterator[Callable[[], object]]:
    """A question of the test data each, with its paragraph: texts in, answer out."""
    from lrn.tasks.rc.data import Cut
    from lrn.tasks.rc.predict import answerer

    loaded, part = learner.loaded, learner.data.test
    answer = answerer(loaded.model, loaded.kept.batch_of_words, loaded.config.longest_answer)
    for number in range(0, len(part), max(1, len(part) // 220)):
        text, question = part.texts[part.about[number]], part.asked[number]
        yield lambda text=text, question=question: answer(Cut.of(text), Cut.of(question), 1)


PREDICTIONS = {"ner": ("one sentence tagged", tagging), "rc": ("one question answered", answering)}


def latency(learner: Any, each: Callable[[Any], Iterator[Callable[[], object]]]) -> float:
    """Seconds that a prediction takes, median over about 200 of them."""
    learner.model.eval()
    taken = []
    for predict in each(learner):
        start = time.perf_counter()
        predict()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[20:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--data")
    parser.add_argument("--vectors")
    parser.add_argument("--units", default="lstm,lrn", type=units_of)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    loops = {unit: prepare(unit, words) for unit in words.units}
    if words.profile:
        for unit, loop in loops.items():
            print(unit, end=": ")
            profile(loop, words.batches)
        return
    found = epochs(loops, words)
    held = {unit: memory(loop) for unit, loop in loops.items()}
    first = words.units[0]
    steps = len(loops[first].learner.steps(0))
    for unit, seconds in found.items():
        print(
            f"{unit:5} {seconds:8.1f} s an epoch, {1e3 * seconds / steps:7.1f} ms a batch, "
            f"{seconds / found[first]:.3f} of {first}; "
            f"{held[unit] / 2**20:6.0f} MB a batch, {held[unit] / held[first]:.3f} of {first}"
        )
    if words.task in PREDICTIONS:
        what, each = PREDICTIONS[words.task]
        print(f"{what} in {latency(prepare('lrn', words).learner, each) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
