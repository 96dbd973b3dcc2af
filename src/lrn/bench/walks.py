"""The walk over time alone, on a device: what its memory traffic allows at best, and what is measured.

The floors are computed, from the bytes that a kernel must move and what a GPU's data sheet says; they need
none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.bench.results import Times, Walk
from lrn.bench.timing import alternate
from lrn.recurrence import CELLS, Rows, scan

STEP = 1e-6  # seconds: what a step takes at least where there is too little work to hide its latency, about


@dataclass(frozen=True)
class Chip:
    """A GPU by its data sheet: bytes a second of its memory, float32 operations a second (without TF32)."""

    name: str
    bandwidth: float
    operations: float


CHIPS = (Chip("A100 80GB", 2.04e12, 19.5e12), Chip("H100 SXM", 3.35e12, 67e12))


def numbers_a_token(cell: str) -> tuple[int, int]:
    """How many numbers of a column the kernels read and write for each token, forward and backward.

    Forward the gates and h; SRU's memory c as well, which backward needs and h does not tell. Backward the
    gates, the memory, the gradient of h, and the gates' gradients.

    >>> numbers_a_token("lrn_tanh")
    (4, 8)
    """
    about = CELLS[cell]
    return about.gates + about.parts, 2 * about.gates + 2


def floors(cell: str, shape: tuple[int, int, int], chip: Chip, size: int = 4) -> tuple[float, float]:
    """Seconds of the walk over T, B, H, forward and backward, that nothing on that chip can beat.

    Traffic over bandwidth or, where that is less, the steps' latency.
    """
    steps, batch, hidden = shape
    forward, backward = (
        max(count * steps * batch * hidden * size / chip.bandwidth, steps * STEP)
        for count in numbers_a_token(cell)
    )
    return forward, backward


def product(cell: str, shape: tuple[int, int, int], chip: Chip) -> float:
    """Seconds of the projection beside it, forward, at the chip's full speed in float32."""
    steps, batch, hidden = shape
    return 2 * steps * batch * hidden * CELLS[cell].gates * hidden / chip.operations


def walk(cell: str, shape: tuple[int, int, int], device: torch.device, seconds: float) -> Walk:
    """Measure the walk and the projection beside it, float32, input size = hidden size."""
    steps, batch, hidden = shape
    about = CELLS[cell]
    with device:
        x = torch.randn(steps, batch, 1, about.gates, hidden, requires_grad=True)
        state = torch.zeros(about.parts, 1, batch, hidden)
        weight = torch.randn(1, about.vectors, hidden) / 2 if about.vectors else None
        given, matrix = torch.randn(steps, batch, hidden), torch.randn(about.gates * hidden, hidden)
    output, _ = scan(cell, x, state, weight, Rows(batch))
    gradient = torch.ones_like(output)

    def forward() -> None:
        with torch.no_grad():
            scan(cell, x, state, weight, Rows(batch))

    def backward() -> None:
        torch.autograd.grad(output, x, gradient, retain_graph=True)

    def project() -> None:
        with torch.no_grad():
            F.linear(given, matrix)

    calls = {"forward": forward, "backward": backward, "projection": project}
    times: Times = alternate({name: synchronous(call, x) for name, call in calls.items()}, seconds)
    return Walk(times["forward"], times["backward"], times["projection"])


def synchronous(call: Callable[[], object], x: Tensor) -> Callable[[], object]:
    """A call that ends when the device of ``x`` is done with it."""
    if x.is_cpu:
        return call

    def wait() -> None:
        call()
        torch.accelerator.synchronize(x.device)

    return wait
