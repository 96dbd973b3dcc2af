"""What processes learn from their shares of a batch adds up to what one learns from all of it."""

from types import SimpleNamespace

import pytest
import torch

from lrn.tasks.ner.config import NERConfig
from lrn.tasks.ner.data import Codes, read_builtin
from lrn.tasks.ner.task import NERTrainee
from lrn.training.trainee import Step

SMALL = {"word_width": 6, "char_width": 3, "char_hidden": 4, "hidden": 5, "dense": 4, "dropout": 0.0}


def gradients(work, rank, world):
    """Of one process's step."""
    dataset = read_builtin(20)
    student = NERTrainee(NERConfig(**SMALL), dataset, Codes.of(dataset.train), 6).double()
    found = []
    student._trainer = SimpleNamespace(world_size=world, global_rank=rank)
    student.optimizers = lambda: None
    student.manual_backward = lambda loss: loss.backward()
    student.take_step = lambda optimizer, rate: found.extend(
        p.grad.clone() for p in student.model.parameters()
    )
    student.learn(Step(0, 0, 1, work))
    return found


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_processes_average_to_the_gradient_of_one(world, count):
    work = list(range(count))
    expected = gradients(work, 0, 1)
    shares = [gradients(work, rank, world) for rank in range(world)]
    for parts in zip(expected, *shares, strict=True):
        torch.testing.assert_close(sum(parts[1:]) / world, parts[0], rtol=0, atol=1e-12)
