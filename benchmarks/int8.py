"""int8 against float32: speed and quality of a trained run of `ner` or `doc` on this processor.

    python benchmarks/int8.py runs/doc-lrn-paper-1

`lrn.quantize` decides, part by part, on a batch of the run's own size. Both models are scored by the task on
its test data, and timed on batches of training inputs, one at a time and in the run's batches, taking turns.
It ends with 1 where int8 gains nothing; `--force` takes it all the same.
"""

from __future__ import annotations

import argparse
import sys

import torch
from distill import CALLS, Inputs, opened, score, seconds

import lrn
from lrn.tasks.base import Loaded


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run folder of ner or doc")
    parser.add_argument("--data", help="where the run's data is now, if it was moved")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0, help="to time for, each size of batch")
    parser.add_argument("--no-linear", action="store_true", help="leave nn.Linear in float32")
    parser.add_argument("--force", action="store_true")
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    try:
        task, learner, loaded = opened(words.run, words.data)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    example = max(Inputs(learner), key=lambda batch: batch.packing.lengths.sum())
    try:
        small = lrn.quantize(
            loaded.model, example, call=CALLS[task.name], linear=not words.no_linear, force=words.force
        )
    except RuntimeError as error:
        print(error)
        return 1
    models = {"float32": loaded, "int8": Loaded(loaded.config, loaded.kept, small)}
    plain = {name: each.model for name, each in models.items()}
    times = [seconds(task, learner, plain, largest, words.seconds) for largest in (1, None)]
    print(f"\n{'':8} {task.metric:>12} {'ms for one':>12} {'ms a batch':>12} {'times as fast':>20}")
    for name, each in models.items():
        gains = " and ".join(f"{found['float32'] / found[name]:.2f}" for found in times)
        ones = " ".join(f"{found[name] * 1e3:12.2f}" for found in times)
        print(f"{name:8} {score(task, each, learner):12.2f} {ones} {gains:>20}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
