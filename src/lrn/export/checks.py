"""Whether graphs that have left a run still say what the run says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lrn.tasks.portable import Graph

TOLERANCE = 1e-5
"""How far numbers may be off, relative to the largest of their output."""

Runner = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def difference(found: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest number that is expected; infinite for what cannot be.

    >>> difference(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0]))
    0.25
    >>> difference(torch.tensor([1, 2]), torch.tensor([1, 3]))
    inf
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not expected.is_floating_point():
        return 0.0 if torch.equal(found, expected) else float("inf")
    found, expected = found.double(), expected.double()
    same = found == expected  # infinities among them
    if bool(same.all()):
        return 0.0
    off = torch.where(same, 0.0, (found - expected).abs())
    largest = torch.where(expected.isfinite(), expected.abs(), 0.0).max().item()
    worst = off.max().item() / (largest or 1.0)
    return worst if worst == worst else float("inf")


def compare(graph: Graph, run: Runner, where: str) -> float:
    """Run all examples of a graph; returns the largest difference, which is an error if it is too large."""
    worst = 0.0
    for example in graph.examples:
        for port, found, expected in zip(graph.outputs, run(example.inputs), example.outputs, strict=True):
            off = difference(found, expected)
            if not off <= TOLERANCE:
                raise ValueError(
                    f"{where}: {port.name} is not what the run says: it differs by {off:.1e}, "
                    f"allowed are {TOLERANCE:.0e}; nothing was written"
                )
            worst = max(worst, off)
    return worst
