"""A training by Lightning is the training that the specification writes, step for step."""

import copy

import pytest
import torch
from helpers import assert_same, says
from tasks.lm.cases import corpus, log_probabilities_of, small, trained

from lrn.tasks.lm.data import batchify, segments
from lrn.tasks.lm.evaluate import mean_loss
from lrn.tasks.lm.model import detach, regularisation
from lrn.tasks.lm.task import LMTrainee, no_progress

PAPERS_WAY = {"clip": 0.25, "ar": 2.0, "tar": 1.0, "weight_decay": 1e-3}


class Watched(LMTrainee):
    """Writes down what happens; with ``curve`` it is told its validation losses."""

    def __init__(self, config, curve=()):
        super().__init__(config, corpus())
        self.language_model.double()
        self.curve = list(curve)
        self.rates, self.optimizers_used, self.scales, self.validated = [], [], [], []
        self.iterates = []
        self.states_at_start = []

    def weights(self):
        return [parameter.detach().clone() for parameter in self.model.parameters()]

    def learn(self, step):
        self.states_at_start.append(copy.deepcopy(self.states))
        optimizer = self.optimizers().optimizer
        done = super().learn(step)
        self.optimizers_used.append(type(optimizer))
        self.rates.append(optimizer.param_groups[0]["lr"])
        self.scales.append(step.work.scale)
        self.iterates.append(self.weights())
        return done

    def validate(self):
        self.validated.append(self.weights())
        figures = super().validate()
        return figures | {"loss": self.curve.pop(0)} if self.curve else figures


def by_hand(trainee, config, text, steps):
    """SGD: the weights after each step. ``trainee`` only gives the weights to start from."""
    model = copy.deepcopy(trainee.model).train()
    parameters = list(model.parameters())
    columns = batchify(text.train, config.batch_size)
    weights = []
    for epoch in range(config.epochs):
        state = None
        plan = segments(len(columns), base=config.bptt, delta=config.delta, seed=config.seed, epoch=epoch)
        for s in plan[: steps - len(weights)]:
            words = columns[s.start : s.start + s.length + 1]
            features, _ = model(words[:-1], state)
            each, after = log_probabilities_of(model, words[:-1], words[1:], state)
            o, r = features.dropped, features.raw
            loss = -each.mean() + config.ar * (o**2).mean() + config.tar * ((r[1:] - r[:-1]) ** 2).mean()
            gradients = torch.autograd.grad(loss, parameters)
            norm = torch.sqrt(sum((g**2).sum() for g in gradients))
            factor = min(1.0, config.clip / (float(norm) + 1e-6)) if config.clip else 1.0
            with torch.no_grad():
                for p, g in zip(parameters, gradients, strict=True):
                    p -= config.lr * s.scale * (factor * g + config.weight_decay * p)
            state = detach(after)
            weights.append([p.detach().clone() for p in parameters])
    return weights


# Steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["lrn", "sru"])
def test_training_is_what_one_writes_by_hand(tmp_path, unit):
    """SGD, segment's learning rate, clipping, decay, AR and TAR, carried state, new at each epoch."""
    config = small(unit=unit, experts=2, epochs=2, **PAPERS_WAY)
    trainee = Watched(config)
    expected = by_hand(trainee, config, corpus(), steps=100)
    trained(trainee, tmp_path / "run")
    assert len(trainee.iterates) == len(expected) > 6
    assert len({round(scale, 3) for scale in trainee.scales}) > 2
    for actual, wanted in zip(trainee.iterates, expected, strict=True):
        assert_same(actual, wanted, atol=1e-10)


def test_state_is_carried_within_an_epoch_and_new_in_the_next(tmp_path):
    trainee = trained(Watched(small(epochs=2)), tmp_path / "run")
    first = len(trainee.plan(0))
    fresh = [not states for states in trainee.states_at_start]
    assert fresh == [number in (0, first) for number in range(len(fresh))]


def test_begin_epoch_forgets_the_state():
    trainee = LMTrainee(small(), corpus())
    trainee.states = [[torch.ones(1, 4, 5)]]
    trainee.begin_epoch()
    assert trainee.states == []


@pytest.mark.parametrize("unit", ["lrn", "lstm"])
@pytest.mark.parametrize("small_batch", [1, 2, 4])
def test_groups_of_columns_add_up_to_the_whole(tmp_path, unit, small_batch):
    config = small(unit=unit, clip=0.25, epochs=1)
    whole = trained(Watched(config), tmp_path / "whole")
    groups = trained(Watched(small(unit=unit, clip=0.25, small_batch=small_batch)), tmp_path / "groups")
    assert len(groups.states) == 4 // small_batch
    for actual, wanted in zip(groups.iterates, whole.iterates, strict=True):
        assert_same(actual, wanted, atol=1e-10)
    assert groups.recent_loss == pytest.approx(whole.recent_loss, rel=1e-10)


def test_uneven_groups_count_by_their_columns(tmp_path):
    """Four columns in groups of three, as happens where several processes share a batch."""
    whole = trained(Watched(small(clip=0.25)), tmp_path / "whole")
    config = small(clip=0.25)
    config.small_batch = 3  # which divides the whole batch, but not a process's part of it
    groups = trained(Watched(config), tmp_path / "groups")
    for actual, wanted in zip(groups.iterates, whole.iterates, strict=True):
        assert_same(actual, wanted, atol=1e-10)


def test_regularisation_is_learnt_from_but_not_reported(tmp_path):
    plain = trained(Watched(small(max_steps=1)), tmp_path / "plain")
    regular = trained(Watched(small(max_steps=1, ar=2.0, tar=1.0)), tmp_path / "regular")
    assert plain.recent_loss == regular.recent_loss
    assert not torch.equal(plain.iterates[0][0], regular.iterates[0][0])


def test_tokens_are_counted(tmp_path):
    trainee = trained(Watched(small(epochs=2, small_batch=2)), tmp_path / "run")
    assert trainee.progress.tokens == 4 * sum(s.length for epoch in (0, 1) for s in trainee.plan(epoch))


def test_linear_schedule_falls_to_nothing(tmp_path):
    config = small(optimizer="adam", schedule="linear", epochs=3, lr=0.01)
    trainee = trained(Watched(config), tmp_path / "run")
    shares = [rate / 0.01 / scale for rate, scale in zip(trainee.rates, trainee.scales, strict=True)]
    plans = [len(trainee.plan(epoch)) for epoch in range(3)]
    expected = [1 - (epoch + n / plans[epoch]) / 3 for epoch in range(3) for n in range(plans[epoch])]
    assert shares == pytest.approx(expected)
    assert shares[0] == 1
    assert 0 < shares[-1] <= 1 / 3 / plans[2] + 1e-9
    assert set(trainee.optimizers_used) == {torch.optim.Adam}


def test_constant_schedule(tmp_path):
    trainee = trained(Watched(small(epochs=2)), tmp_path / "run")
    assert trainee.rates == pytest.approx([0.5 * scale for scale in trainee.scales])


# Plan ------------------------------------------------------------------------------------------------


def test_plan_is_a_function_of_settings_and_epoch():
    one, other = LMTrainee(small(), corpus()), LMTrainee(small(), corpus())
    first, second = one.plan(0), one.plan(1)
    assert other.plan(1) == second
    assert other.plan(0) == first
    assert one.plan(0) == first
    assert first != second
    assert LMTrainee(small(seed=2), corpus()).plan(0) != first


def test_fraction_is_the_beginning_of_the_text():
    trainee = LMTrainee(small(fraction=0.5), corpus())
    assert torch.equal(trainee.text, batchify(corpus().train[:80], 4))


def test_weights_are_a_function_of_the_seed():
    one, same, other = (LMTrainee(small(seed=seed), corpus()) for seed in (1, 1, 2))
    assert torch.equal(one.model.embedding.weight, same.model.embedding.weight)
    assert not torch.equal(one.model.embedding.weight, other.model.embedding.weight)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"batch_size": 100}, ("160 words", "100 columns")),
        ({"batch_size": 80}, ("too short", "2 steps")),
        ({"fraction": 0.05}, ("too short", "2 steps")),
        ({"fraction": 0.01}, ("2 words", "4 columns")),
        ({"valid_columns": 40}, ("60 words", "40 columns")),
    ],
)
def test_too_little_text_is_said_before_training(own, said):
    with pytest.raises(ValueError, match=says(*said)):
        LMTrainee(small(**own), corpus())


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
    trainee = trained(Watched(config, curve=[3, 4, 5, 6, 7, 8]), tmp_path / "run")
    counts = [len(trainee.plan(epoch)) for epoch in range(6)]
    before = sum(counts[:3])
    sgd, asgd = trainee.optimizers_used[:before], trainee.optimizers_used[before:]
    assert set(sgd) == {torch.optim.SGD}
    assert set(asgd) == {torch.optim.ASGD}
    assert trainee.rates == pytest.approx([0.5 * scale for scale in trainee.scales])
    group = trainee.optimizers().param_groups[0]
    assert (group["t0"], group["lambd"], group["weight_decay"]) == (0, 0.0, 1e-3)
    # Validation: of the current weights before, of the average after
    for epoch in range(6):
        done = sum(counts[: epoch + 1])
        expected = mean_of(trainee.iterates[before:done]) if epoch > 2 else trainee.iterates[done - 1]
        assert_same(trainee.validated[epoch], expected, atol=1e-8)  # torch keeps 1/n in float32
    # and training goes on from the current ones
    assert_same(trainee.averaged(), mean_of(trainee.iterates[before:]), atol=1e-8)
    assert_same(trainee.weights(), trainee.iterates[-1])


def mean_of(iterates):
    """torch's average leaves out the first iterate: its weight is 1 at the second step still."""
    return [torch.stack(values).mean(0) for values in zip(*iterates[1:], strict=True)]


def test_averaged_sgd_steps_like_sgd_with_the_scale_of_the_step_before(tmp_path):
    """torch's ASGD works out a step's size at the end of the step before."""
    config = small(epochs=4, nonmono=1, clip=0.25, ar=2.0, tar=1.0)
    trainee = trained(Watched(config, curve=[3, 4, 5, 6]), tmp_path / "run")
    before = sum(len(trainee.plan(epoch)) for epoch in range(3))
    model, columns = trainee.model, trainee.text
    scales = trainee.scales[before:]
    state = None
    for number, s in enumerate(trainee.plan(3)):
        for parameter, value in zip(model.parameters(), trainee.iterates[before + number - 1], strict=True):
            parameter.data.copy_(value)
        words = columns[s.start : s.start + s.length + 1]
        features, after = model(words[:-1], state)
        loss = model.loss(features, words[1:]) + regularisation(features, 2.0, 1.0)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))
        factor = min(1.0, 0.25 / (float(norm) + 1e-6))
        rate = 0.5 * scales[max(0, number - 1)]
        pairs = zip(trainee.iterates[before + number - 1], gradients, strict=True)
        assert_same(trainee.iterates[before + number], [p - rate * factor * g for p, g in pairs], atol=1e-9)
        state = detach(after)


def test_switch_happens_once(tmp_path):
    trainee = Watched(small(epochs=6, nonmono=1), curve=[3, 4, 5, 6, 7, 8])
    made = []
    make = trainee.make_optimizer
    trainee.make_optimizer = lambda: made.append(1) or make()
    trained(trainee, tmp_path / "run")
    assert len(made) == 2


def test_adam_does_not_switch(tmp_path):
    config = small(epochs=5, nonmono=1, optimizer="adam", lr=0.01)
    trainee = trained(Watched(config, curve=[3, 4, 5, 6, 7]), tmp_path / "run")
    assert set(trainee.optimizers_used) == {torch.optim.Adam}
    assert trainee.averaged() == []


# Finetuning ------------------------------------------------------------------------------------------


def finetuning(**own):
    return small(stage="finetune", start="a run", nonmono=1, **own)


def test_finetune_averages_from_the_first_step(tmp_path):
    trainee = trained(Watched(finetuning(epochs=2, schedule="linear")), tmp_path / "run")
    assert set(trainee.optimizers_used) == {torch.optim.ASGD}
    assert trainee.rates == pytest.approx([0.5 * scale for scale in trainee.scales])
    assert_same(trainee.validated[-1], mean_of(trainee.iterates), atol=1e-8)


def test_finetune_stops_by_the_rule(tmp_path):
    trainee = Watched(finetuning(epochs=9), curve=[3, 4, 5, 6, 7, 8, 9, 9, 9])
    trained(trainee, tmp_path / "run")
    assert trainee.losses == [3, 4, 5]
    assert trainee.progress.finished


def test_finetune_goes_on_while_it_improves(tmp_path):
    trainee = trained(Watched(finetuning(epochs=4), curve=[3, 2.5, 2, 1]), tmp_path / "run")
    assert trainee.losses == [3, 2.5, 2, 1]


@pytest.mark.parametrize(("curve", "best", "epoch"), [([3, 3], 2.0, -1), ([3, 1], 1, 2)])
def test_finetune_has_to_beat_its_start(tmp_path, curve, best, epoch):
    trainee = Watched(finetuning(epochs=2), curve=curve)
    trainee.progress.best = 2.0
    trained(trainee, tmp_path / "run")
    assert (trainee.progress.best, trainee.progress.best_epoch) == (best, epoch)
    assert (tmp_path / "run" / "best.ckpt").exists() == (epoch == 2)


# Validation and saving -------------------------------------------------------------------------------


def test_validation():
    trainee = Watched(small())
    figures = trainee.validate()
    loss = mean_loss(trainee.model, corpus().valid, 2)
    assert figures["loss"] == pytest.approx(loss, rel=1e-10)
    assert figures["perplexity"] == pytest.approx(2.718281828459045**loss)


@pytest.mark.parametrize("unit", ["lrn", "lstm"])
@pytest.mark.parametrize("steps", [2, 13, 15])
def test_what_is_carried_is_enough_to_go_on(tmp_path, unit, steps):
    """In the middle of an epoch, with groups of columns, before and after the switch."""
    own = {"unit": unit, "small_batch": 2, "nonmono": 1, "epochs": 5, "drop_output": 0.3}
    curve = [3, 4, 5, 6, 7]
    whole = trained(Watched(small(**own), curve=curve), tmp_path / "whole")
    half = trained(Watched(small(**own, max_steps=steps), curve=curve), tmp_path / "half")
    state = copy.deepcopy(half.state())
    rest = Watched(small(**own), curve=curve[len(half.losses) :])
    rest.restore(state)
    rest.progress.finished = False
    trained(rest, tmp_path / "rest")
    assert len(half.iterates) + len(rest.iterates) == len(whole.iterates)
    assert all(map(torch.equal, rest.weights(), whole.weights()))
    assert all(map(torch.equal, rest.averaged(), whole.averaged()))
    assert rest.losses == whole.losses
