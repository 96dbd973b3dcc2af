"""A training of the language model is what the specification writes, step for step."""

import copy
import math

import pytest
import torch
from helpers import assert_same
from tasks.lm.cases import (
    corpus,
    learner,
    log_probabilities_of,
    small,
)
from tasks.trainings import loop_of, train

from lrn.tasks.lm.data import batchify, segments
from lrn.tasks.lm.evaluate import mean_loss
from lrn.tasks.lm.model import detach, regularisation
from lrn.tasks.lm.task import LMLearner, no_progress
from lrn.training.checkpoint import BestState, TrainingState
from lrn.training.loop import Loop
from lrn.training.schedule import averaged

PAPERS_WAY = {"clip": 0.25, "ar": 2.0, "tar": 1.0, "weight_decay": 1e-3}


class Told(LMLearner):
    """With a ``curve`` it is told its validation losses; writes down what it validates, and its states."""

    def __init__(self, *args):
        super().__init__(*args)
        self.model.double()
        self.curve = []
        self.validated, self.states_at_start = [], []

    def weights(self):
        return [parameter.detach().clone() for parameter in self.model.parameters()]

    def loss(self, batch):
        self.states_at_start.append(copy.deepcopy(self.states))
        return super().loss(batch)

    def validate(self):
        self.validated.append(self.weights())
        figures = super().validate()
        return figures | {"loss": self.curve.pop(0)} if self.curve else figures


class Watched(Loop):
    """Writes down every step."""

    def __init__(self, *args):
        super().__init__(*args)
        self.rates, self.optimizers, self.scales, self.losses, self.iterates = [], [], [], [], []

    def take(self, step, *args):
        loss = super().take(step, *args)
        self.losses.append(loss.item())
        self.optimizers.append(type(self.optimizer))
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        self.scales.append(step.pieces[0].segment.scale)
        self.iterates.append(self.learner.weights())
        return loss

    def averaged(self):
        return averaged(self.optimizer, self.learner.model.parameters())


def watched(config, curve=()):
    loop = loop_of(learner(config, Told), Watched)
    loop.learner.curve = list(map(float, curve))
    return loop


def trained(config, folder, curve=()):
    return train(watched(config, curve), folder)


def by_hand(first, config, text, steps):
    """SGD: the weights after each step, from those of the model ``first`` on.

    A step is of as many segments as ``config.accumulate`` says; each counts by its words, and the learning
    rate is the mean of theirs.
    """
    model = copy.deepcopy(first).train()
    parameters = list(model.parameters())
    columns = batchify(text.train, config.batch_size)
    weights = []
    for epoch in range(config.epochs):
        state = None
        plan = segments(len(columns), base=config.bptt, delta=config.delta, seed=config.seed, epoch=epoch)
        size = config.accumulate
        for start in range(0, len(plan), size)[: steps - len(weights)]:
            several = plan[start : start + size]
            objective = 0.0
            for s in several:
                words = columns[s.start : s.start + s.length + 1]
                features, _ = model(words[:-1], state)
                each, after = log_probabilities_of(model, words[:-1], words[1:], state)
                o, r = features.dropped, features.raw
                loss = -each.mean() + config.ar * (o**2).mean() + config.tar * ((r[1:] - r[:-1]) ** 2).mean()
                objective += loss * s.length / sum(other.length for other in several)
                state = detach(after)
            gradients = torch.autograd.grad(objective, parameters)
            norm = torch.sqrt(sum((g**2).sum() for g in gradients))
            factor = min(1.0, config.clip / (float(norm) + 1e-6)) if config.clip else 1.0
            scale = sum(s.scale for s in several) / len(several)
            with torch.no_grad():
                for p, g in zip(parameters, gradients, strict=True):
                    p -= config.lr * scale * (factor * g + config.weight_decay * p)
            weights.append([p.detach().clone() for p in parameters])
    return weights


# Steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["lrn", "sru"])
@pytest.mark.parametrize("own", [{}, {"accumulate": 2}, {"accumulate": 3, "small_batch": 2}])
def test_training_is_what_one_writes_by_hand(tmp_path, unit, own):
    """SGD, segment's learning rate, clipping, decay, AR and TAR, carried state, new at each epoch."""
    config = small(unit=unit, experts=2, epochs=2, **PAPERS_WAY, **own)
    loop = watched(config)
    expected = by_hand(loop.learner.model, config, corpus(), steps=100)
    train(loop, tmp_path / "run")
    plans = [len(loop.learner.plan(epoch)) for epoch in (0, 1)]
    assert len(loop.iterates) == len(expected) == sum(math.ceil(n / config.accumulate) for n in plans)
    assert sum(plans) > 6
    assert len({round(scale, 3) for scale in loop.scales}) > 2
    for actual, wanted in zip(loop.iterates, expected, strict=True):
        assert_same(actual, wanted, atol=1e-10)


def test_state_is_carried_within_an_epoch_and_new_in_the_next(tmp_path):
    student = trained(small(epochs=2), tmp_path / "run").learner
    first = len(student.plan(0))
    fresh = [not states for states in student.states_at_start]
    assert fresh == [number in (0, first) for number in range(len(fresh))]


def test_begin_epoch_forgets_the_state():
    student = learner(small())
    student.states = [[torch.ones(1, 4, 5)]]
    student.begin_epoch()
    assert student.states == []


@pytest.mark.parametrize("unit", ["lrn", "lstm"])
@pytest.mark.parametrize("small_batch", [1, 2, 4])
def test_groups_of_columns_add_up_to_the_whole(tmp_path, unit, small_batch):
    own = {"unit": unit, "clip": 0.25, "epochs": 1}
    whole = trained(small(**own), tmp_path / "whole")
    groups = trained(small(**own, small_batch=small_batch), tmp_path / "groups")
    assert len(groups.learner.states) == 4 // small_batch
    for actual, wanted in zip(groups.iterates, whole.iterates, strict=True):
        assert_same(actual, wanted, atol=1e-10)
    assert groups.losses == pytest.approx(whole.losses, rel=1e-10)


def test_uneven_groups_count_by_their_columns(tmp_path):
    """Four columns in groups of three, as happens where several processes share a batch."""
    whole = trained(small(clip=0.25), tmp_path / "whole")
    config = small(clip=0.25)
    config.small_batch = 3  # which divides the whole batch, but not a process's part of it
    groups = trained(config, tmp_path / "groups")
    for actual, wanted in zip(groups.iterates, whole.iterates, strict=True):
        assert_same(actual, wanted, atol=1e-10)


def test_regularisation_is_learnt_from_but_not_reported(tmp_path):
    plain = trained(small(max_steps=1), tmp_path / "plain")
    regular = trained(small(max_steps=1, ar=2.0, tar=1.0), tmp_path / "regular")
    assert plain.losses == regular.losses
    assert not torch.equal(plain.iterates[0][0], regular.iterates[0][0])


def test_tokens_are_counted(tmp_path):
    student = trained(small(epochs=2, small_batch=2), tmp_path / "run").learner
    assert student.progress.tokens == 4 * sum(s.length for epoch in (0, 1) for s in student.plan(epoch))


def test_linear_schedule_falls_to_nothing(tmp_path):
    config = small(optimizer="adam", schedule="linear", epochs=3, lr=0.01)
    loop = trained(config, tmp_path / "run")
    shares = [rate / 0.01 / scale for rate, scale in zip(loop.rates, loop.scales, strict=True)]
    plans = [len(loop.learner.plan(epoch)) for epoch in range(3)]
    expected = [1 - (epoch + n / plans[epoch]) / 3 for epoch in range(3) for n in range(plans[epoch])]
    assert shares == pytest.approx(expected)
    assert shares[0] == 1
    assert 0 < shares[-1] <= 1 / 3 / plans[2] + 1e-9
    assert set(loop.optimizers) == {torch.optim.Adam}


def test_constant_schedule(tmp_path):
    loop = trained(small(epochs=2), tmp_path / "run")
    assert loop.rates == pytest.approx([0.5 * scale for scale in loop.scales])


# Plan ------------------------------------------------------------------------------------------------


def test_plan_is_a_function_of_settings_and_epoch():
    one, other = learner(small()), learner(small())
    first, second = one.plan(0), one.plan(1)
    assert other.plan(1) == second
    assert other.plan(0) == first
    assert one.plan(0) == first
    assert first != second
    assert learner(small(seed=2)).plan(0) != first


def test_fraction_is_the_beginning_of_the_text():
    assert torch.equal(learner(small(fraction=0.5)).text, batchify(corpus().train[:80], 4))


def test_weights_are_a_function_of_the_seed():
    one, same, other = (learner(small(seed=seed)) for seed in (1, 1, 2))
    assert torch.equal(one.model.embedding.weight, same.model.embedding.weight)
    assert not torch.equal(one.model.embedding.weight, other.model.embedding.weight)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"batch_size": 100}, "training text has 160 words, and 100 columns need 300: lower --batch_size"),
        ({"batch_size": 54}, "training text has 160 words, and 54 columns need 162: lower --batch_size"),
        ({"fraction": 0.05}, "training text with --fraction 0.05 has 8 words, and 4 columns need 12"),
        (
            {"valid_columns": 40},
            "validation text has 60 words, and 40 columns need 80: lower --valid_columns",
        ),
    ],
)
def test_too_little_text_is_said_before_training(own, said):
    with pytest.raises(ValueError, match=f"^made: the {said}"):
        learner(small(**own))
    learner(small(batch_size=53))


# The switch to averaged SGD --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "patience", "epoch"),
    [
        ([9, 8, 7, 6, 5, 4, 3, 2], 5, None),
        ([5, 6, 6, 6, 6, 6, 6, 6], 5, 6),  # the seventh is the first with more than five before it
        ([5, 6, 6, 6, 6, 6, 5, 6], 5, 7),  # as good as is not worse
        ([5, 4, 6, 6, 6, 6, 6, 6], 5, 6),
        ([6, 5, 4, 3, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5], 5, 9),
        ([6, 5, 4, 3, 2.9, 2.8, 2.7, 2.9, 2.9, 2.9, 2.9, 2.6], 5, None),
        ([5, 4, 4.5, 4.5, 4.5], 2, 4),
        ([5, 4], 1, None),
        ([5, 4, 4.5], 1, None),
        ([5, 4, 4.5, 4.6], 1, 3),
    ],
)
def test_trigger(curve, patience, epoch):
    told = [no_progress(curve[:n], loss, patience) for n, loss in enumerate(curve)]
    assert (told.index(True) if True in told else None) == epoch


def test_switch(tmp_path):
    """After the third epoch: averaged SGD with the first learning rate; from then on the average counts."""
    config = small(epochs=6, nonmono=1, **PAPERS_WAY)
    loop = trained(config, tmp_path / "run", curve=[3, 4, 5, 6, 7, 8])
    student = loop.learner
    counts = [len(student.plan(epoch)) for epoch in range(6)]
    before = sum(counts[:3])
    sgd, asgd = loop.optimizers[:before], loop.optimizers[before:]
    assert set(sgd) == {torch.optim.SGD}
    assert set(asgd) == {torch.optim.ASGD}
    assert loop.rates == pytest.approx([0.5 * scale for scale in loop.scales])
    group = loop.optimizer.param_groups[0]
    assert (group["t0"], group["lambd"], group["weight_decay"]) == (0, 0.0, 1e-3)
    # Validation: of the current weights before, of the average after
    for epoch in range(6):
        done = sum(counts[: epoch + 1])
        expected = mean_of(loop.iterates[before:done]) if epoch > 2 else loop.iterates[done - 1]
        assert_same(student.validated[epoch], expected, atol=1e-8)  # torch keeps 1/n in float32
    # and training goes on from the current ones
    assert_same(loop.averaged(), mean_of(loop.iterates[before:]), atol=1e-8)
    assert_same(student.weights(), loop.iterates[-1])


def mean_of(iterates):
    """torch's average leaves out the first iterate: its weight is 1 at the second step still."""
    return [torch.stack(values).mean(0) for values in zip(*iterates[1:], strict=True)]


def test_averaged_sgd_steps_like_sgd_with_the_scale_of_the_step_before(tmp_path):
    """torch's ASGD works out a step's size at the end of the step before."""
    config = small(epochs=4, nonmono=1, clip=0.25, ar=2.0, tar=1.0)
    loop = trained(config, tmp_path / "run", curve=[3, 4, 5, 6])
    before = sum(len(loop.learner.plan(epoch)) for epoch in range(3))
    model, columns = loop.learner.model, loop.learner.text
    scales = loop.scales[before:]
    state = None
    for number, s in enumerate(loop.learner.plan(3)):
        for parameter, value in zip(model.parameters(), loop.iterates[before + number - 1], strict=True):
            parameter.data.copy_(value)
        words = columns[s.start : s.start + s.length + 1]
        features, after = model(words[:-1], state)
        loss = model.loss(features, words[1:]) + regularisation(features, 2.0, 1.0)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))
        factor = min(1.0, 0.25 / (float(norm) + 1e-6))
        rate = 0.5 * scales[max(0, number - 1)]
        pairs = zip(loop.iterates[before + number - 1], gradients, strict=True)
        assert_same(loop.iterates[before + number], [p - rate * factor * g for p, g in pairs], atol=1e-9)
        state = detach(after)


def test_switch_happens_once(tmp_path):
    loop = watched(small(epochs=6, nonmono=1), curve=[3, 4, 5, 6, 7, 8])
    made = []
    make = loop.learner.optimizer
    loop.learner.optimizer = lambda: made.append(1) or make()
    train(loop, tmp_path / "run")
    assert len(made) == 1


def test_adam_does_not_switch(tmp_path):
    config = small(epochs=5, nonmono=1, optimizer="adam", lr=0.01)
    loop = trained(config, tmp_path / "run", curve=[3, 4, 5, 6, 7])
    assert set(loop.optimizers) == {torch.optim.Adam}
    assert loop.averaged() == []


# Finetuning ------------------------------------------------------------------------------------------


def finetuning(**own):
    return small(stage="finetune", start="a run", nonmono=1, **own)


def test_finetune_averages_from_the_first_step(tmp_path):
    loop = trained(finetuning(epochs=2, schedule="linear"), tmp_path / "run")
    assert set(loop.optimizers) == {torch.optim.ASGD}
    assert loop.rates == pytest.approx([0.5 * scale for scale in loop.scales])
    assert_same(loop.learner.validated[-1], mean_of(loop.iterates), atol=1e-8)


def test_finetune_stops_by_the_rule(tmp_path):
    student = trained(finetuning(epochs=9), tmp_path / "run", curve=[3, 4, 5, 6, 7, 8, 9, 9, 9]).learner
    assert student.losses == [3, 4, 5]
    assert student.progress.finished


def test_finetune_goes_on_while_it_improves(tmp_path):
    student = trained(finetuning(epochs=4), tmp_path / "run", curve=[3, 2.5, 2, 1]).learner
    assert student.losses == [3, 2.5, 2, 1]


@pytest.mark.parametrize(("curve", "best", "epoch"), [([3, 3], 2.0, -1), ([3, 1], 1, 2)])
def test_finetune_has_to_beat_its_start(tmp_path, curve, best, epoch):
    """What it starts from stays the best until it is beaten."""
    loop = watched(finetuning(epochs=2), curve)
    student = loop.learner
    student.progress.best = 2.0
    first = student.weights()
    train(loop, tmp_path / "run")
    assert (student.progress.best, student.progress.best_epoch) == (best, epoch)
    found = BestState.load(tmp_path / "run" / "best.ckpt", "lm")
    assert found.figures["loss"] == best
    assert found.epoch == (2 if epoch == 2 else 0)
    expected = student.validated[1] if epoch == 2 else first
    assert_same([found.model[name] for name, _ in student.model.named_parameters()], expected, atol=0)


# Validation and saving -------------------------------------------------------------------------------


def test_validation():
    student = learner(small(), Told)
    figures = student.validate()
    loss = mean_loss(student.model, corpus().valid, 2)
    assert figures["loss"] == pytest.approx(loss, rel=1e-10)
    assert figures["perplexity"] == pytest.approx(2.718281828459045**loss)


@pytest.mark.parametrize("unit", ["lrn", "lstm"])
@pytest.mark.parametrize("steps", [2, 13, 15])
def test_what_is_carried_is_enough_to_go_on(tmp_path, unit, steps):
    """In the middle of an epoch, with groups of columns, before and after the switch."""
    own = {"unit": unit, "small_batch": 2, "nonmono": 1, "epochs": 5, "drop_output": 0.3}
    curve = [3, 4, 5, 6, 7]
    whole = trained(small(**own), tmp_path / "whole", curve)
    half = trained(small(**own, max_steps=steps), tmp_path / "half", curve)
    rest = watched(small(**own), curve[len(half.learner.losses) :])
    rest.restore(TrainingState.load(tmp_path / "half" / "last.ckpt", "lm"))
    rest.learner.progress.finished = False
    train(rest, tmp_path / "rest")
    assert len(half.iterates) + len(rest.iterates) == len(whole.iterates)
    assert all(map(torch.equal, rest.learner.weights(), whole.learner.weights()))
    assert all(map(torch.equal, rest.averaged(), whole.averaged()))
    assert rest.learner.losses == whole.learner.losses
