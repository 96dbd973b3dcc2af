"""A training step of every task on a device that is not there: nothing is mixed, nothing is read back.

The device has shapes and places but no numbers (see ``accelerator``), so that this runs without a GPU.
"""

from __future__ import annotations

import copy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from accelerator import DEVICE, elsewhere
from lightning.fabric import Fabric
from lightning.fabric.accelerators import Accelerator
from lightning.fabric.strategies import SingleDeviceStrategy
from tasks.rc.cases import write_short
from torch._subclasses.fake_tensor import DataDependentOutputException

from lrn import tasks
from lrn.names import TASKS, UNITS
from lrn.training.learner import Place
from lrn.training.loop import Loop

pytestmark = pytest.mark.accelerator

SMALL = {
    "lm": {"embedding": 8, "hidden": 12, "last": 8, "layers": 2, "batch_size": 4, "fraction": 0.02},
    "ner": {"word_width": 8, "char_width": 4, "char_hidden": 4, "hidden": 8, "dense": 8, "sentences": 60},
    "doc": {"word_width": 8, "char_width": 4, "hidden": 8, "batch_size": 8, "documents": 100},
    "nli": {"word_width": 8, "char_width": 4, "hidden": 8, "heads": 2, "batch_size": 8, "pairs": 100},
    "rc": {"word_width": 8, "char_width": 4, "char_hidden": 4, "hidden": 8, "batch_size": 4, "held_out": 1},
    "mt": {"hidden": 8, "heads": 2, "merges": 60, "batch_tokens": 200, "pairs": 100},
}
SETTINGS = {
    "plain": {},
    "regularised": {"clip": 0.25, "ema": 0.9, "accumulate": 2, "weight_decay": 1e-5},
    "sgd": {"optimizer": "sgd"},
    "adadelta": {"optimizer": "adadelta", "schedule": "plateau"},
}
OWN = {
    "lm": {"experts": 2, "drop_weights": 0.3, "drop_words": 0.1, "ar": 2.0, "tar": 1.0, "small_batch": 2},
    "ner": {"drop_words": 0.3},
    "doc": {"drop_words": 0.1, "smoothing": 0.1, "l2": 1e-5},
    "nli": {"dropout": 0.3, "smoothing": 0.1, "l2": 1e-5, "norm": "rms"},
    "rc": {"dropout": 0.3},
    "mt": {"dropout": 0.3, "smoothing": 0.1, "norm": "rms"},
}


class There(Accelerator):
    """The made-up device for Fabric."""

    def setup_device(self, device):
        pass

    def teardown(self):
        pass

    @staticmethod
    def parse_devices(devices):
        return [0]

    @staticmethod
    def get_parallel_devices(devices):
        return [DEVICE]

    @staticmethod
    def auto_device_count():
        return 1

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def name():
        return "accel"


class InPlace(SingleDeviceStrategy):
    """Models are made on the device: torch cannot move what has no numbers."""

    def module_to_device(self, module):
        pass


def fabric():
    return Fabric(accelerator=There(), strategy=InPlace(device=DEVICE), devices=1)


def take_steps(name, unit, **own):
    """Two steps of a task's training; returns the losses, and the loop that took them."""
    known, task = tasks.settings(name), tasks.load(name)
    values = known.presets["quick"] | {"unit": unit, "threads": 1} | SMALL[name] | own
    with TemporaryDirectory() as folder:
        if name == "rc":  # whose own texts are long: every step of a walk is many calls of Python here
            values["data"] = str(write_short(Path(folder)))
        host = task.prepare(known.train(**values))
    steps = host.steps(0)[:2]
    batches = [[host.batch(piece, Place()) for piece in step.pieces] for step in steps]
    with elsewhere() as move:
        with torch.device(DEVICE):
            model = task.build(host.config, host.kept)
        there = copy.copy(host)
        there.model, there.loaded = model, copy.copy(host.loaded)
        object.__setattr__(there.loaded, "model", model)
        loop = Loop(there, fabric())
        losses = [
            loop.take(step, [move(batch) for batch in made])
            for step, made in zip(steps, batches, strict=True)
        ]
    return losses, loop


def check(losses, loop):
    model = loop.learner.model
    assert {loss.device for loss in losses} == {DEVICE}
    assert {parameter.device for parameter in model.parameters()} == {DEVICE}
    assert {average.device for average in loop.learner.average} <= {DEVICE}
    gathered = [value for entry in loop.optimizer.state.values() for value in entry.values()]
    assert {value.device for value in gathered if isinstance(value, torch.Tensor) and value.dim()} <= {DEVICE}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", TASKS)
def test_every_unit(name, unit):
    check(*take_steps(name, unit))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", TASKS)
def test_every_way_to_train(name, settings):
    check(*take_steps(name, "lrn", **SETTINGS[settings], **OWN[name]))


@pytest.mark.parametrize("name", TASKS)
def test_a_read_back_would_be_noticed(name, monkeypatch):
    """Or the tests above show nothing."""
    learner = type(tasks.load(name)).learner_type
    loss = learner.loss

    def careless(self, batch):
        found = loss(self, batch)
        found.reported.item()
        return found

    monkeypatch.setattr(learner, "loss", careless)
    with pytest.raises(DataDependentOutputException):
        take_steps(name, "lrn")


@pytest.mark.parametrize("name", TASKS)
def test_a_mixture_would_be_noticed(name, monkeypatch):
    learner = type(tasks.load(name)).learner_type
    loss = learner.loss

    def careless(self, batch):
        found = loss(self, batch)
        return found._replace(objective=found.objective + torch.ones(1))

    monkeypatch.setattr(learner, "loss", careless)
    with pytest.raises(RuntimeError, match=r"(?i)device"):
        take_steps(name, "lrn")
