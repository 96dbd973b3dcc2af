"""What the engine that is parallel in time costs: iterations by length and gates, and its time beside the
walk's.

    python benchmarks/newton.py --run runs/lm-lrn-quick-1

The run is a language model of LRN, whose trained gates are taken on random words; without one only random
gates are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

import lrn
from lrn.recurrence import Rows, parallel, scan

LENGTHS = (128, 512, 2048, 8192, 32768)


def iterations(run: Callable[[int], object], window: int | None) -> list[str]:
    """The mean and the most iterations of a window at every length; the whole sequence is one without
    ``window``.
    """
    row = []
    for steps in LENGTHS:
        parallel.WINDOW = window or steps
        with lrn.engine("parallel"), parallel.effort() as cost, torch.no_grad():
            run(steps)
        counts = cost.iterations or [0]
        walked = f", {cost.walked} walked" if cost.walked else ""
        row.append(f"{sum(counts) / len(counts):.1f} ({max(counts)}{walked})")
    return row


def gates(scale: float, steps: int) -> Tensor:
    torch.manual_seed(1)
    return scale * torch.randn(steps, 1, 1, 3, 16)


def random(scale: float) -> Callable[[int], object]:
    return lambda steps: scan("lrn_tanh", gates(scale, steps), torch.zeros(1, 1, 1, 16), None, Rows(1))


def trained(folder: str) -> Callable[[int], object]:
    from lrn import tasks
    from lrn.training.run import Run

    run = Run.open(folder)
    model = tasks.load(run.task).load(run).model
    words = model.embedding.weight.shape[0]

    def read(steps: int) -> object:
        torch.manual_seed(1)
        return model(torch.randint(words, (steps, 1)))

    return read


def seconds(engine: str, steps: int, width: int) -> float:
    """The best of some walks of one row, forward and backward."""
    x = torch.randn(steps, 1, 1, 3, width).requires_grad_()
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        with lrn.engine(engine):
            output, _ = scan("lrn_tanh", x, torch.zeros(1, 1, 1, width), None, Rows(1))
        torch.autograd.grad(output.sum(), x)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--run", help="a run folder of lrn train lm")
    options = parser.parse_args()
    window = parallel.WINDOW
    scales = (0.5, 1, 2, 8)
    runs = {f"random, scale {scale:g}": random(scale) for scale in scales}
    if options.run:
        runs["trained language model"] = trained(options.run)
    print("| gates | " + " | ".join(f"T = {steps:,}" for steps in LENGTHS) + " |")
    print("|---" * (len(LENGTHS) + 1) + "|")
    for name, run in runs.items():
        for about, size in ((f"windows of {window:,}", window), ("one window", None)):
            print(f"| {name}, {about} | " + " | ".join(iterations(run, size)) + " |", flush=True)
    parallel.WINDOW = window
    names = [name for name in ("parallel", "cpu") if name in lrn.engines()]
    print("\n| T, B, H | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for steps, width in ((1024, 1), (8192, 1), (32768, 1), (8192, 16), (8192, 256)):
        times = " | ".join(f"{1e3 * seconds(name, steps, width):.1f} ms" for name in names)
        print(f"| {steps:,}, 1, {width} | {times} |", flush=True)


if __name__ == "__main__":
    main()
