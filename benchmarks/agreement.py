"""Thousands of random problems on one engine, each against the definition: a long run, made once a release.

    OMP_NUM_THREADS=1 python benchmarks/agreement.py --engine cpu --cases 10000 --seed 17

Problems are drawn as in ``tests/recurrence``: any cell, type, size, layout, kind of rows, gradients from
either result or both. It prints every case that does not agree, and ends with 1 if there is one. The
interpreter of Triton takes a tenth of a second for the smallest of them: with TRITON_INTERPRET=1 sizes are
small.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import torch
from recurrence.cases import DIRECTIONS, LAYOUTS, NAMES, ROWS, SLOW, WIDTHS, Case, assert_as_defined, on

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
STEPS, BATCHES = ((0, 1, 2, 3, 7, 17), (0, 1, 2, 5, 9, 17)) if not SLOW else ((0, 1, 2, 3), (0, 1, 2))


def draw(source: random.Random) -> Case:
    """One problem."""
    rows = source.choice(ROWS)
    least = 1 if rows == "packed" else 0
    return Case(
        source.choice(NAMES),
        steps=source.choice([n for n in STEPS if n >= least]),
        batch=source.choice([n for n in BATCHES if n >= least]),
        hidden=source.choice(WIDTHS),
        direction=source.choice(DIRECTIONS),
        rows=rows,
        batch_first=rows != "packed" and source.random() < 0.5,
        reset=source.random() < 0.5,
        layout=source.choice(LAYOUTS),
        above=source.choice(("both", "output", "final")),
        dtype=source.choice(DTYPES),
        seed=source.randrange(1 << 30),
    )


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    source, wrong, start = random.Random(options.seed), 0, time.perf_counter()
    with on(options.engine):
        for n in range(options.cases):
            case = draw(source)
            try:
                assert_as_defined(case)
            except AssertionError as error:
                wrong += 1
                print(f"{case}: {error}", flush=True)
            if (n + 1) % 1000 == 0:
                print(f"{n + 1} cases, {wrong} wrong, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"engine {options.engine}, seed {options.seed}: {options.cases} cases, {wrong} mismatches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
