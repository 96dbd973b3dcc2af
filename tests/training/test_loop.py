"""The loop: steps in turn or by hand, losses read when asked for, states with and without a loss scale."""

import io
import math
from contextlib import nullcontext

import pytest
import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision
from runs import TINY, same, without_times, write_text

from lrn import cli, tasks
from lrn.training import checkpoint, device, show
from lrn.training.loop import Loop

SMALL = {"embedding": 8, "hidden": 12, "last": 8, "layers": 2, "batch_size": 4, "bptt": 10, "delta": 4}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return str(write_text(tmp_path_factory.mktemp("text")))


def learner(data, **own):
    known = tasks.settings("lm")
    return tasks.load("lm").prepare(known.train(data=data, epochs=2, valid_columns=2, **SMALL, **own))


def scaled():
    """Float16 with a loss scale, which Fabric itself would give a GPU alone."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=4)
    return Fabric(accelerator="cpu", plugins=[MixedPrecision("16-mixed", "cpu", scaler)])


def loop_on(data, fabric=None, **own):
    made = learner(data, **own)
    return Loop(made, fabric or device.fabric(made.config))


def weights(loop):
    return {name: value.clone() for name, value in loop.learner.model.state_dict().items()}


def test_steps_by_hand_are_the_steps_of_a_training(data):
    one, other = loop_on(data, ema=0.9), loop_on(data, ema=0.9)
    count = sum(1 for _ in one.run())
    steps = [step for epoch in (0, 1) for step in other.learner.steps(epoch)]
    losses = [float(other.take(step)) for step in steps]
    assert count == len(steps) == one.learner.progress.step
    same(weights(one), weights(other))
    same(one.learner.average, other.learner.average)
    assert one.read_losses() == losses


def test_losses_wait_until_they_are_read(data):
    loop = loop_on(data)
    assert math.isnan(loop.latest_loss())
    taken = [float(loop.take(step)) for step in loop.learner.steps(0)[:3]]
    assert loop.learner.progress.losses == []
    assert loop.latest_loss() == taken[-1]
    assert loop.read_losses() == loop.learner.progress.losses == taken
    assert loop.latest_loss() == taken[-1]


def test_a_loss_that_is_not_finite_is_named_when_it_is_read(data):
    loop = loop_on(data, optimizer="sgd", lr=1e38)
    for step in loop.learner.steps(0)[:4]:
        loop.take(step)
    with pytest.raises(
        ValueError, match=r"the loss at epoch 1, step \d is (nan|inf): .* --lr \(now 1e\+38\)"
    ):
        loop.state()


@pytest.mark.parametrize(
    ("first", "losses", "diverged"),
    [
        (2.0, [12.1] * 3, True),
        (2.0, [11.9] * 3, False),
        (2.0, [12.1] * 2, False),  # too few to tell
        (2.0, [1.0] * 9 + [1e9] * 8, False),  # mostly good
        (2.0, [1.0] * 8 + [1e9] * 9, True),
        (0.1, [5.0] * 9, False),  # many times, but little: a training that began with good weights
        (0.1, [5.2] * 9, True),
        (None, [1e9] * 9, False),  # a state from before it was kept
    ],
)
def test_losses_that_are_hopeless(data, first, losses, diverged):
    loop = loop_on(data)
    loop.learner.largest_loss = math.inf
    loop.learner.first_loss, loop.learner.progress.losses = first, losses
    if not diverged:
        loop.check_losses()
        return
    with pytest.raises(ValueError, match=r"was .* at first: training has diverged; try a smaller --lr"):
        loop.check_losses()


@pytest.mark.parametrize(("loss", "diverged"), [(13.1, False), (13.3, True)])
def test_hopeless_where_losses_are_bounded(data, loss, diverged):
    """Six times the first loss would never be seen."""
    loop = loop_on(data)
    loop.learner.first_loss, loop.learner.progress.losses = 8.0, [loss] * 3
    assert loop.learner.largest_loss == pytest.approx(18.42, abs=0.01)  # a language model's
    with pytest.raises(ValueError, match="diverged") if diverged else nullcontext():
        loop.check_losses()


def test_the_first_loss_is_kept(data):
    loop, other = loop_on(data), loop_on(data)
    assert loop.state()["extra"] == [loop.learner.extra_state()]
    assert loop.learner.first_loss is None
    first, *_ = [float(loop.take(step)) for step in loop.learner.steps(0)[:3]]
    state = loop.state()
    assert loop.learner.first_loss == first
    other.restore(checkpoint.TrainingState(**roundtrip(state)))
    assert other.learner.first_loss == first


@pytest.mark.parametrize("own", [{}, {"clip": 0.25}, {"optimizer": "sgd", "lr": 0.1}])
def test_float16_with_a_loss_scale(data, own):
    """It learns, the scale changes, and a state taken in between leads to the same weights."""
    loop = loop_on(data, scaled(), precision="16", drop_input=0.2, **own)
    steps = loop.learner.steps(0)
    losses = [float(loop.take(step)) for step in steps[:6]]
    assert all(map(math.isfinite, losses))
    state = roundtrip(loop.state())
    scale = state["precision"]["scale"]
    assert scale != 2.0**20
    rest = [float(loop.take(step)) for step in steps[6:]]

    again = loop_on(data, scaled(), precision="16", drop_input=0.2, **own)
    again.restore(checkpoint.TrainingState(**state))
    assert again.state()["precision"]["scale"] == scale
    assert [float(again.take(step)) for step in steps[6:]] == rest
    same(weights(again), weights(loop))
    same(without_times(again.state()), without_times(loop.state()))


def roundtrip(state):
    """As through a file: the state that a loop gives shares its tensors with the model."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def test_gradients_are_clipped_at_their_own_scale(data):
    """The norm of a clipped gradient is what was asked for, whatever the loss was multiplied by."""
    plain, half = loop_on(data, clip=1e-3), loop_on(data, scaled(), precision="16", clip=1e-3)
    seen = []

    for loop in (plain, half):
        original = loop._stepper.step

        def spy(loop=loop, original=original):
            parameters = list(loop.learner.model.parameters())
            seen.append(float(torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in parameters]))))
            return original()

        loop._stepper.step = spy
        loop.take(loop.learner.steps(0)[0])
    assert seen == pytest.approx([1e-3, 1e-3], rel=1e-3)


def test_the_loss_that_is_shown_is_always_a_number(text, tmp_path, monkeypatch, capsys):
    """Also right after the losses have been read for the log."""
    monkeypatch.setattr(show, "QUIET_SECONDS", 0.0)  # a line for every step
    words = ["train", "lm", "--data", str(text), "--out", str(tmp_path / "run"), *TINY]
    assert cli.main([*words, "--max_steps", "25"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "tokens/s" in line]
    assert len(lines) == 25
    assert all(" loss " in line and "nan" not in line for line in lines)
