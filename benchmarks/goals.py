"""The speed goals, checked against a finished run: ``make bench && .venv/bin/python benchmarks/goals.py``.

Prints every goal with its worst figure. Exit code 1 if one is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lrn.bench.peers import FLOOR, SRU_PACKAGE
from lrn.bench.results import Bench, Times
from lrn.bench.show import geometric_mean, ratios

Row = tuple[str, str, float, str, float]  # goal, worst case, figure, relation, bound


def large(shape: str) -> bool:
    _, batch, hidden = map(int, shape.split(","))
    return hidden >= 300 and batch >= 12


def worst(
    rows: dict[str, Times], figure: Callable[[dict[str, float]], float], pick: Any
) -> tuple[str, float]:
    values = {shape: figure(ratios(row)) for shape, row in rows.items()}
    shape = pick(values, key=lambda name: values[name])
    return shape, values[shape]


def goals(result: Bench) -> Iterator[Row]:
    training, inference = result.training, result.inference
    for peer, bound in (("nn.LSTM", 2.6), ("nn.GRU", 2.3), (SRU_PACKAGE, 1.3)):
        if peer in next(iter(training.values())):
            shape, value = worst(training, lambda r, p=peer: r[p], min)  # type: ignore[misc]
            yield f"training, {peer} / lrn, every shape", shape, value, ">=", bound
    mean = geometric_mean(ratios(row)["nn.LSTM"] for row in training.values())
    yield "training, nn.LSTM / lrn, geometric mean", "", mean, ">=", 4.0
    mean = geometric_mean(ratios(row)["sru"] for row in training.values())
    yield "training, our sru / lrn, geometric mean", "", mean, ">=", 1.15
    bounds = (("training", training, 1.10, 1.25), ("inference", inference, 1.15, 1.6))
    for mode, rows, bound_large, bound_small in bounds:
        for is_large, bound in ((True, bound_large), (False, bound_small)):
            part = {shape: row for shape, row in rows.items() if large(shape) == is_large}
            shape, value = worst(part, lambda r: 1 / r[FLOOR], max)
            where = "H >= 300, B >= 12" if is_large else "elsewhere"
            yield f"{mode}, lrn / nn.Linear, {where}", shape, value, "<=", bound
    step = ratios(result.streaming["1,1,256"])
    yield "streaming, lrn / nn.LSTM", "", 1 / step["nn.LSTM"], "<=", 0.4
    for packed in result.packed.values():
        yield "packed / (share x padded)", "", packed.ratio / packed.share, "<=", 1.15
    for lengths in result.long.values():
        for what in ("time_per_token", "bytes_per_token"):
            values = [getattr(row, what) for steps, row in lengths.items() if int(steps) >= 1024]
            yield f"T 1,024 to 65,536, {what}, largest / smallest", "", max(values) / min(values), "<=", 1.10
    for saved in result.saved.values():
        yield "numbers saved per token, H = 128", "", saved["lrn"], "<=", 4 * 128 + 64
    if result.import_seconds:
        yield "import lrn, seconds beyond torch", "", result.import_seconds.lrn, "<=", 0.3


def main() -> int:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "bench/bench.json")
    if not path.exists():
        print(f"no {path}: run `make bench` first", file=sys.stderr)
        return 2
    missed = 0
    for goal, case, value, relation, bound in goals(Bench.read(path)):
        met = value >= bound if relation == ">=" else value <= bound
        missed += not met
        print(f"{'met   ' if met else 'MISSED'}  {goal:52} {value:8.3f} {relation} {bound:g}  {case}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
