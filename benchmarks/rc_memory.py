"""Memory of the reading model's training batches, with attention by sequence and padded.

    python benchmarks/rc_memory.py --data squad --unit lrn --threads 1

A batch is of 64 questions of the training data in the preset `paper`, those with the longest paragraphs or
drawn at random as the released code draws them; the figure is the most that forward and backward pass hold
beyond what was there before. `padded` attends as the released code does, in tensors of [questions, longest,
longest] with a mask. In brackets: what is computed, which must not differ.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn import tasks
from lrn.bench.tables import peak_bytes
from lrn.nn import GatedAttention
from lrn.tasks.rc.data import QuestionBatch
from lrn.text.batches import RowPacking
from lrn.training.learner import Place


def padded(
    self: GatedAttention, x: Tensor, packing: RowPacking, memory: Tensor, places: RowPacking
) -> Tensor:
    """``GatedAttention.forward`` in padded form."""
    queries = packing.pad(torch.relu(self.query(self.dropout(x, packing))))  # [B, T, H]
    keys = places.pad(torch.relu(self.key(self.dropout(memory, places))))  # [B, S, H]
    scores = queries @ keys.transpose(1, 2) / math.sqrt(keys.shape[2])  # [B, T, S]
    weights = scores.masked_fill(~places.mask.unsqueeze(1), -1e30).softmax(-1)
    read = torch.cat([x, packing.pack(weights @ places.pad(memory)).data], -1)  # [N, 2 * W]
    return read * torch.sigmoid(self.gate(self.dropout(read, packing)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data")
    parser.add_argument("--unit", default="lrn")
    parser.add_argument("--threads", type=int, default=1)
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    known = tasks.settings("rc")
    config = known.train(
        **{**known.presets["paper"], "preset": "paper", "unit": words.unit, "data": words.data}
    )
    learner = tasks.load("rc").prepare(config)
    learner.model.train()
    order = np.argsort(-learner.lengths, kind="stable")
    chosen = {
        "the longest": order[: config.batch_size],
        "drawn at random": _drawn(len(order), config.batch_size),
    }
    for name, numbers in chosen.items():
        batch = learner.batch(numbers, Place())
        lengths = batch.paragraphs.lengths.tolist()
        print(f"{len(lengths)} paragraphs, {name}: {min(lengths)} to {max(lengths)} tokens, {words.unit}")
        show(learner, batch)


def _drawn(count: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).permutation(count)[:size]


def show(learner: Any, batch: QuestionBatch) -> None:
    """Print what the self attention alone, and what a whole step needs, each in both ways."""
    attention, packing = learner.model.self_attention, batch.paragraphs
    states = torch.randn(len(packing.rows), attention.query.in_features)

    def attend() -> float:
        x = states.clone().requires_grad_()
        found = attention(x, packing, x, packing).square().mean()
        found.backward()
        return found.item()

    def step() -> float:
        loss = learner.loss(batch).objective
        loss.backward()
        return loss.item()

    by_sequence = GatedAttention.forward
    for what, call in (("self attention", attend), ("a whole step", step)):
        for how, forward in (("padded", padded), ("by sequence", by_sequence)):
            GatedAttention.forward = forward  # type: ignore[method-assign]
            torch.manual_seed(1)
            value = call()  # the weights' gradients are there from now on
            print(f"  {what:14} {how:12} {peak_bytes(call, torch.empty(0)) / 2**20:6.0f} MB ({value:.6f})")


if __name__ == "__main__":
    main()
