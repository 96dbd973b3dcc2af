"""Trainings in this process, as ``lrn train`` does them."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lrn import cli
from lrn.tasks import load
from lrn.training import device, fit
from lrn.training.checkpoint import TrainingState
from lrn.training.learner import Place, Step
from lrn.training.loop import Loop
from lrn.training.run import Run


def loop_of(learner: Any, kind: type[Loop] = Loop) -> Any:
    """A loop that has not begun, on the devices that the learner's settings ask for."""
    return kind(learner, device.fabric(learner.config))


def begin(loop: Any, folder: Path) -> Run:
    """Make the run folder of a training, as it is before the first step."""
    learner, state = loop.learner, loop.state()
    learner.config.out = str(folder)
    task = learner.task
    return Run.create(task.name, learner.config, learner.about, lambda run: task.fill(learner, run, state))


def train(loop: Any, folder: Path) -> Any:
    """Train to the end, into a new run folder; returns the loop."""
    run = begin(loop, folder)
    try:
        fit.fit(loop, run)
    finally:
        run.release()
    return loop


def resumed(run: Run, kind: type[Loop] = Loop) -> Any:
    """The loop of a run, where its last saved state left it."""
    loop = loop_of(load(run.task).resume(run), kind)
    loop.restore(TrainingState.load(run.last, run.task))
    return loop


# One step -----------------------------------------------------------------------------------------

PLAIN = {"optimizer": "sgd", "schedule": "constant", "lr": 1.0}
"""With these settings a step changes the weights by its gradients."""

ALONE = Place()


@dataclass(frozen=True)
class Learnt:
    """What a process learns in a step."""

    gradients: list[Tensor]
    loss: float
    tokens: int


def learnt(learner: Any, *pieces: Any, place: Place = ALONE) -> Learnt:
    """What one process learns in a step of these pieces; the weights are afterwards what they were."""
    assert {name: getattr(learner.config, name) for name in PLAIN} == PLAIN
    parameters = list(learner.model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    learner.progress.tokens = 0
    loop = loop_of(learner)
    loop.place = place  # as if there were others
    loss = loop.take(Step(0, 0, 1, list(pieces)))
    changes = [old - new.detach() for old, new in zip(before, parameters, strict=True)]
    with torch.no_grad():
        torch._foreach_copy_(parameters, before)
    return Learnt(changes, loss.item(), learner.progress.tokens)


# Commands -----------------------------------------------------------------------------------------


def lrn(*words: object) -> int:
    """``lrn words…`` in this process."""
    return cli.main([str(word) for word in words])


def metrics(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    return found


def given(monkeypatch: Any, content: bytes) -> None:
    """As standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
