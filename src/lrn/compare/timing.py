"""The time of training steps, taking turns in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

from lrn.progress import lines
from lrn.report.results import Timing

if TYPE_CHECKING:
    from lrn.tasks.base import TaskLearner

    AnyLearner = TaskLearner[Any, Any, Any, Any, Any]


def taking_turns(learners: Mapping[str, AnyLearner], seconds: float) -> dict[str, Timing]:
    """The time of a training step of each, on a few batches, for about so many seconds in all."""
    import torch

    from lrn.bench.timing import alternate

    threads = max(learner.config.threads for learner in learners.values())
    if threads:
        torch.set_num_threads(threads)
    steps = {name: _step(learner) for name, learner in learners.items()}
    return alternate(steps, seconds, progress=lines("measuring the time of training steps"))


def _step(learner: AnyLearner) -> Callable[[], object]:
    """A call that takes a training step, on a few batches in turn."""
    from lrn.training import device
    from lrn.training.loop import Loop

    loop = Loop(learner, device.fabric(learner.config))
    steps = learner.steps(0)
    work = cycle(steps[1:9] or steps)  # not the first, which begins an epoch, unless there is no other
    learner.model.train()
    return lambda: loop.take(next(work))
