"""Translation by unit: a training step of the paper's model, what share of it is a walk, and decoding.

    python benchmarks/mt.py step --units gru,lrn --threads 2       # 4,096 tokens of the preset `paper`
    python benchmarks/mt.py step --preset small --tokens 1200
    python benchmarks/mt.py decode --runs runs/mt-gru-small-1 runs/mt-lrn-small-1 --data DIR --batch_size 1

`step` takes made sentences of 25 to 31 pieces a side, like news; a step is forward, backward, clipping
and Adam. Time is the best of a few, memory what the process holds at most, in a process of its own for each
unit. `walk` is the share of the time that is spent in the decoder's first layer, which goes step by step for
all units, since its attention is between the cells.

`decode` takes trained runs and translates the first sentences of the test part, all runs in turn.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch

from lrn import tasks
from lrn.compare import units_of
from lrn.nn import AttentiveRecurrence
from lrn.tasks.mt.data import pair_batch, source_batch
from lrn.tasks.mt.model import Translator
from lrn.tasks.mt.search import Search, beam_search
from lrn.training.run import Run


def made_batch(tokens: int, types: int) -> Any:
    """Sentences of like length, as many as fit into so many tokens."""
    draw = np.random.default_rng(1)
    count = max(1, tokens // 32)
    sides = [
        [draw.integers(3, types, length).astype(np.int32) for length in draw.integers(25, 32, count)]
        for _ in range(2)
    ]
    return pair_batch(*sides)


class Clock:
    """Adds up the time that passes in some part of forward and backward."""

    def __init__(self) -> None:
        self.seconds, self._began = 0.0, 0.0

    def start(self, *_: Any) -> None:
        self._began = time.perf_counter()

    def stop(self, *_: Any) -> None:
        self.seconds += time.perf_counter() - self._began


def watch(walk: AttentiveRecurrence) -> Clock:
    """Time the walk: going forward it is a call, going back what lies between its outputs' gradients and its
    input's, since nothing else is computed then."""
    clock = Clock()
    run = walk.forward

    def timed(x: Any, sizes: Any, memory: Any, state: Any) -> Any:
        clock.start()
        walked = run(x, sizes, memory, state)
        clock.stop()
        walked.output.register_hook(clock.start)
        x.register_hook(clock.stop)
        return walked

    walk.forward = timed  # type: ignore[method-assign]
    return clock


def step(words: argparse.Namespace) -> None:
    """One unit, in this process."""
    known = tasks.settings("mt")
    config = known.train(**{**known.presets[words.preset], "preset": words.preset, "unit": words.unit})
    torch.manual_seed(1)
    model = Translator(config, words.types // 2, words.types - words.types // 2)
    optimizer = torch.optim.Adam(model.parameters(), config.lr)
    batch = made_batch(words.tokens, words.types // 2)
    clock = watch(model.decoder.first)
    taken, walked = [], []
    for _ in range(words.turns + 1):
        clock.seconds = 0.0
        began = time.perf_counter()
        model.loss(batch, config.smoothing).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        optimizer.zero_grad()
        taken.append(time.perf_counter() - began)
        walked.append(clock.seconds)
    best = min(range(1, len(taken)), key=taken.__getitem__)  # the first also makes what Adam gathers
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    count = sum(parameter.numel() for parameter in model.parameters())
    share = walked[best] / taken[best]
    print(f"{words.unit:5} {count:12,} parameters  {taken[best]:8.3f} s  {share:5.1%} walk  {most:6.2f} GB")


def decode(words: argparse.Namespace) -> None:
    """Milliseconds a sentence of trained runs, in turn."""
    task = tasks.load("mt")
    runs = {name: task.load(Run.open(name)) for name in words.runs}
    rows: dict[str, list[Any]] = {}
    for name, loaded in runs.items():
        data = task.read(loaded.config, Run.open(name).data(words.data), lambda share: None)
        lines = data.part(words.part).sources[: words.sentences]
        rows[name] = [np.array(loaded.kept.codes.source.encode(line), np.int32) for line in lines]
    taken: dict[str, list[float]] = {name: [] for name in runs}
    with torch.no_grad():
        for _ in range(words.turns + 1):
            for name, loaded in runs.items():
                began = time.perf_counter()
                for start in range(0, len(rows[name]), words.batch_size):
                    batch = source_batch(rows[name][start : start + words.batch_size])
                    beam_search(loaded.model, batch, Search(words.beam))
                taken[name].append((time.perf_counter() - began) / len(rows[name]))
    first = statistics.median(taken[words.runs[0]][1:])
    for name, loaded in runs.items():
        middle = statistics.median(taken[name][1:])
        print(f"{loaded.config.unit:5} {1e3 * middle:8.2f} ms a sentence  {middle / first:.3f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("step", "decode"))
    parser.add_argument("--units", default="gru,atr,sru,lrn,olrn", type=units_of)
    parser.add_argument("--unit", help=argparse.SUPPRESS)  # of a process that measures one
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--types", type=int, default=55_300, help="of both languages together")
    parser.add_argument("--runs", nargs="+", default=[])
    parser.add_argument("--data")
    parser.add_argument("--part", default="test")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--batch_size", type=int, default=1)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    if words.what == "decode":
        if not words.runs:
            parser.error("decode needs trained runs: --runs")
        decode(words)
    elif words.unit:
        step(words)
    else:
        for unit in words.units:  # one after the other, so that each has all the memory
            subprocess.run([sys.executable, *sys.argv, "--unit", unit], check=True)


if __name__ == "__main__":
    main()
