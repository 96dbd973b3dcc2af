"""Fair timing on a noisy machine: contestants take turns, and medians are compared."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

from lrn.report.results import Timing


def alternate(
    calls: Mapping[str, Callable[[], object]],
    seconds: float,
    *,
    least: int = 7,
    most: int = 200,
    repeat: int = 1,
    progress: Callable[[float], object] = lambda share: None,
) -> dict[str, Timing]:
    """Time all calls in turn for about ``seconds``, at least ``least`` rounds; ``repeat`` calls a time.

    ``progress`` is told between rounds what share of the time is over.
    """
    for call in calls.values():
        call()
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for done in range(most):
            if done >= least and time.perf_counter() - start > seconds:
                break
            progress(min(1.0, (time.perf_counter() - start) / seconds) if seconds else 1.0)
            for name in order:
                call = calls[name]
                begin = time.perf_counter()
                for _ in range(repeat):
                    call()
                taken[name].append((time.perf_counter() - begin) / repeat)
            order.reverse()  # so that nobody always follows the same neighbour
    finally:
        gc.enable()
    return {name: _summary(values) for name, values in taken.items()}


def _summary(values: list[float]) -> Timing:
    low, median, high = statistics.quantiles(values, n=4)
    return Timing(median, low, high, len(values))
