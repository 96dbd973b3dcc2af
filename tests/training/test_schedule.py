"""Optimizers and schedules by name, against their formulas."""

import math
from dataclasses import asdict

import pytest
import torch

from lrn.training import schedule
from lrn.training.config import OPTIMIZERS, TrainConfig
from lrn.training.schedule import Plateau, chen, factor


@pytest.mark.parametrize("name", [*OPTIMIZERS, "asgd"])
def test_what_an_optimizer_gathers(name):
    weight = torch.nn.Parameter(torch.ones(3))
    made = schedule.optimizer(name, [weight], TrainConfig(lr=0.1))
    weight.sum().backward()
    made.step()
    gathered = set(made.state[weight])
    assert gathered <= schedule.state_names(made)
    assert gathered == schedule.state_names(made) or name == "sgd"  # which gathers only with a momentum


def test_adadelta_is_tensorflows():
    """With its constants: what it has gathered of squared gradients and of squared steps decays by 0.95."""
    draw = torch.Generator().manual_seed(1)
    weight = torch.nn.Parameter(torch.randn(4, generator=draw, dtype=torch.float64))
    made = schedule.optimizer("adadelta", [weight], TrainConfig(lr=0.5))
    expected, squares, steps = weight.detach().clone(), torch.zeros(4).double(), torch.zeros(4).double()
    for _ in range(5):
        gradient = torch.randn(4, generator=draw, dtype=torch.float64)
        weight.grad = gradient.clone()
        made.step()
        squares = 0.95 * squares + 0.05 * gradient**2
        step = torch.sqrt(steps + 1e-6) / torch.sqrt(squares + 1e-6) * gradient
        steps = 0.95 * steps + 0.05 * step**2
        expected -= 0.5 * step
    torch.testing.assert_close(weight.detach(), expected, rtol=0, atol=1e-14)


def seen(losses, patience=3, decay=0.5):
    plateau, factors = Plateau(), []
    for loss in losses:
        plateau.see(loss, patience, decay)
        factors.append(plateau.factor)
    return factors


@pytest.mark.parametrize(
    ("losses", "factors"),
    [
        ([5, 4, 3, 2], [1, 1, 1, 1]),
        ([5, 6, 7, 8], [1, 1, 1, 0.5]),
        ([5, 5, 5, 5], [1, 1, 1, 0.5]),  # not below is not better
        ([5, 6, 7, 4, 6, 7, 8], [1, 1, 1, 1, 1, 1, 0.5]),
        ([5, 6, 7, 8, 7.5, 9, 9, 9], [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25]),  # 8 is stored, and 7.5 below it
    ],
)
def test_the_rate_falls_when_patience_is_at_its_end(losses, factors):
    assert seen(losses) == factors


def test_what_is_saved_comes_back():
    plateau = Plateau(0.25, 3.5, 2)
    assert Plateau.load(asdict(plateau)) == plateau
    assert Plateau.load(asdict(Plateau())) == Plateau()


@pytest.mark.parametrize(
    "state",
    [
        None,
        3,
        {},
        {"factor": "1", "stored": 3.0, "worn": 0},
        {"factor": 0.0, "stored": 3.0, "worn": 0},
        {"factor": 2.0, "stored": 3.0, "worn": 0},
        {"factor": 1.0, "stored": math.nan, "worn": 0},
        {"factor": 1.0, "stored": "low", "worn": 0},
        {"factor": 1.0, "stored": 3.0, "worn": -1},
        {"factor": 1.0, "stored": 3.0, "worn": 1.0},
        {"factor": 1.0, "stored": 3.0, "worn": 0, "more": 1},
    ],
    ids=str,
)
def test_a_state_that_was_never_saved(state):
    with pytest.raises(ValueError, match="the saved state says of the falling rate"):
        Plateau.load(state)


def test_by_epochs():
    assert factor(TrainConfig(), 3.5, 700) == 1
    assert factor(TrainConfig(schedule="linear", epochs=10), 2.5, 5) == 0.75
    assert factor(TrainConfig(schedule="exponential", decay=0.5), 2.9, 5) == 0.25


def test_chen():
    """The paper's values: up to 4 within 1,600 steps, from step 150,000 down to 1/2 at 300,000."""
    config = TrainConfig(schedule="chen")
    found = [factor(config, 0.0, step) for step in (0, 800, 1600, 150_000, 225_000, 300_000, 450_000)]
    assert found == pytest.approx([1, 2.5, 4, 4, 2**0.5, 0.5, 0.0625])


def test_chen_is_written_as_the_authors_do():
    n, p, s, e = 3, 70, 900, 2_000
    for step in range(0, 1_000, 37):
        expected = min(1 + step * (n - 1) / (n * p), n, n * (2 * n) ** ((s - n * step) / (e - s)))
        assert chen(step, n, p, s, e) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"decay_from": 5, "decay_to": 5}, "decay_from must be at least 0 and below decay_to, 5, got 5"),
        ({"warmup": 0}, "warmup must be at least 1, got 0"),
        ({"replicas": 0}, "replicas must be at least 1, got 0"),
    ],
)
def test_schedules_that_cannot_be(given, said):
    with pytest.raises(ValueError, match=said):
        TrainConfig(schedule="chen", **given)


# Adam in one pass ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "fused"), [("32", True), ("bf16", True), ("16", None)])
def test_adam_goes_over_the_weights_once(precision, fused):
    """But for half precision, where gradients are scaled back before they are clipped."""
    config = TrainConfig(precision=precision)
    found = schedule.optimizer("adam", iter([torch.nn.Parameter(torch.ones(3))]), config, eps=1e-7)
    (group,) = found.param_groups
    assert (group["fused"], group["eps"], len(group["params"])) == (fused, 1e-7, 1)


@pytest.mark.parametrize("grouped", [False, True])
def test_adam_where_there_is_no_such_kernel(grouped):
    """On a type of device without it, torch would refuse the first step."""
    weight = torch.nn.Parameter(torch.ones(3, device="meta"))
    made = schedule.optimizer("adam", [{"params": [weight]}] if grouped else iter([weight]), TrainConfig())
    weight.grad = torch.ones_like(weight)
    made.step()
    (group,) = made.param_groups
    assert not group["fused"]
    assert len(group["params"]) == 1
