"""Perplexity, plain and dynamic, against direct computations in a few lines."""

import copy
import json
import math
import shutil

import pytest
import torch
from helpers import assert_same, says
from tasks.lm.cases import best, log_probabilities_of, model, text
from tasks.trainings import lrn, metrics

from lrn.names import UNITS
from lrn.tasks.lm.data import batchify, read_folder
from lrn.tasks.lm.evaluate import Dynamic, dynamic_loss, gradient_statistics, in_eval, mean_loss
from lrn.tasks.lm.model import detach

DYNAMIC = Dynamic(rate=0.05, decay=0.1, epsilon=0.01, length=5, columns=3)
units = pytest.mark.parametrize("unit", UNITS)
DROPS = {"drop_words": 0.3, "drop_output": 0.3, "drop_weights": 0.3}


# The mean loss ---------------------------------------------------------------------------------------


@units
@pytest.mark.parametrize("columns", [1, 3])
def test_mean_loss_is_a_sum_over_words(unit, columns):
    """Column by column and in one go; the first word of each is read, not counted."""
    made, stream = model(unit=unit, experts=2), text(46)
    total = count = 0
    for column in batchify(stream, columns).t():
        each, _ = log_probabilities_of(made, column[:-1, None], column[1:, None])
        total, count = total - each.sum().item(), count + len(each)
    assert count == len(stream) // columns * columns - columns
    assert mean_loss(made, stream, columns, length=7) == pytest.approx(total / count, rel=1e-12)


def test_mean_loss_does_not_depend_on_the_segments():
    made, stream = model(), text(50)
    losses = [mean_loss(made, stream, 1, length=length) for length in (1, 7, 49, 70)]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-12)


def test_mean_loss_is_without_dropout_and_leaves_the_mode():
    made = model(**DROPS).train()
    assert mean_loss(made, text(50), 2) == pytest.approx(mean_loss(model(), text(50), 2), rel=1e-12)
    assert made.training
    assert not any(parameter.grad is not None for parameter in made.parameters())


def test_progress_ends_at_one():
    shares = []
    mean_loss(model(), text(50), 2, length=7, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_too_short_for_the_columns():
    with pytest.raises(ValueError, match=says("7 words", "4 columns")):
        mean_loss(model(), text(7), 4)


@pytest.mark.parametrize("before", [True, False])
def test_the_mode_comes_back_after_an_error(before):
    made = model().train(before)

    def fail():
        with in_eval(made):
            assert not made.training
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert made.training == before


# Dynamic evaluation: section 6 -----------------------------------------------------------------------


def gradients_of(made, words, state):
    """Mean loss of a piece ``[n + 1, B]``, its gradient, the state after."""
    each, after = log_probabilities_of(made, words[:-1], words[1:], state)
    loss = -each.mean()
    return loss.item(), torch.autograd.grad(loss, list(made.parameters())), detach(after)


def statistics_by_hand(made, stream, columns, length):
    words, state = batchify(stream, columns), None
    squares = [torch.zeros_like(p) for p in made.parameters()]
    for start in range(0, len(words) - 1, length):
        _, gradients, state = gradients_of(made, words[start : start + length + 1], state)
        squares = [s + g**2 for s, g in zip(squares, gradients, strict=True)]
    return [s.sqrt() for s in squares]


def dynamic_by_hand(made, stream, ms, dynamic):
    made = copy.deepcopy(made)
    scale = sum(m.mean() for m in ms)
    pull = [torch.clamp(m / scale, max=1 / dynamic.decay) for m in ms]
    first = [p.detach().clone() for p in made.parameters()]
    words, state = stream.unsqueeze(1), None
    total = weight = 0.0
    for start in range(0, len(words) - 1, dynamic.length):
        piece = words[start : start + dynamic.length + 1]
        loss, gradients, state = gradients_of(made, piece, state)
        share = (len(piece) - 1) / dynamic.length
        total, weight = total + share * loss, weight + share
        with torch.no_grad():
            for p, p0, d, m, g in zip(made.parameters(), first, pull, ms, gradients, strict=True):
                p += dynamic.decay * d * (p0 - p) - dynamic.rate * g / (m + dynamic.epsilon)
    return total / weight


@units
def test_statistics(unit):
    made, stream = model(unit=unit, experts=2), text(70)
    actual = gradient_statistics(made, stream, DYNAMIC)
    assert_same(actual, statistics_by_hand(made, stream, 3, 5))


@units
def test_dynamic_evaluation(unit):
    made, stream = model(unit=unit, experts=2), text(33, seed=5)  # six segments and one of two words
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    actual = dynamic_loss(made, stream, statistics, DYNAMIC)
    assert actual == pytest.approx(dynamic_by_hand(made, stream, statistics, DYNAMIC), rel=1e-10)
    assert abs(actual - mean_loss(made, stream, 1)) > 1e-3  # it does learn


def test_the_pull_is_limited():
    """With a decay so large that D must be clipped, weights go all the way back, not beyond."""
    dynamic = Dynamic(rate=0.05, decay=20.0, epsilon=0.01, columns=3)
    made, stream = model(), text(33, seed=5)
    statistics = gradient_statistics(made, text(70), dynamic)
    scale = sum(float(m.mean()) for m in statistics)
    assert max(float(m.max()) for m in statistics) / scale > 1 / dynamic.decay
    actual = dynamic_loss(made, stream, statistics, dynamic)
    assert actual == pytest.approx(dynamic_by_hand(made, stream, statistics, dynamic), rel=1e-10)


def test_a_segment_is_scored_before_it_is_learnt_from():
    made, stream = model(), text(6)
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    assert dynamic_loss(made, stream, statistics, DYNAMIC) == pytest.approx(mean_loss(made, stream, 1))


def test_learns_from_what_it_reads():
    """The same words again and again."""
    made, stream = model(), text(5).repeat(20)
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    assert dynamic_loss(made, stream, statistics, DYNAMIC) < mean_loss(made, stream, 1) - 0.5


def test_learns_in_bf16_too():
    """Autocast keeps a copy of every weight that it has cast: here they change under its eyes."""
    made, stream = model().float(), text(5).repeat(20)
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    losses = []
    for cached in (False, True):
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=cached):
            before = mean_loss(made, stream, 1)
            losses.append(dynamic_loss(made, stream, statistics, DYNAMIC))
            assert losses[-1] < before - 0.5
            assert mean_loss(made, stream, 1) == before  # the weights are back
    assert losses[1] == losses[0]


@pytest.mark.parametrize("training", [True, False])
def test_leaves_the_model_as_it_was(training):
    made = model(**DROPS).float().train(training)
    before = copy.deepcopy(made.state_dict())
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    dynamic_loss(made, text(33), statistics, DYNAMIC)
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict().items())
    assert all(parameter.grad is None for parameter in made.parameters())
    assert made.training == training


def test_is_without_dropout():
    made, plain = model(**DROPS).train(), model()
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    assert sorted(float(m.sum()) for m in statistics) == pytest.approx(
        sorted(float(m.sum()) for m in gradient_statistics(plain, text(70), DYNAMIC)), rel=1e-10
    )
    actual = dynamic_loss(made, text(33), statistics, DYNAMIC)
    expected = dynamic_loss(plain, text(33), gradient_statistics(plain, text(70), DYNAMIC), DYNAMIC)
    assert actual == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("rate", [1e30, math.inf])
def test_too_large_a_rate(rate):
    made = model().float()
    before = copy.deepcopy(made.state_dict())
    statistics = gradient_statistics(made, text(70), DYNAMIC)
    dynamic = Dynamic(rate=rate, decay=0.1, epsilon=1e-8)
    with pytest.raises(ValueError, match=says("diverged", str(rate), "smaller rate")):
        dynamic_loss(made, text(100), statistics, dynamic)
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict().items())


def test_works_where_gradients_are_off():
    made = model()
    expected = gradient_statistics(made, text(70), DYNAMIC)
    loss = dynamic_loss(made, text(33), expected, DYNAMIC)
    with torch.no_grad():
        assert_same(gradient_statistics(made, text(70), DYNAMIC), expected)
        assert dynamic_loss(made, text(33), expected, DYNAMIC) == loss


# `lrn evaluate` --------------------------------------------------------------------------------------


def evaluated(capsys, run, *words):
    capsys.readouterr()
    assert lrn("evaluate", run, "--threads", 1, *words) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_evaluate(run, data, capsys, part):
    before = metrics(run)
    figures = evaluated(capsys, run, "--part", part)
    stream = getattr(read_folder(data), part)
    loss = mean_loss(best(run), stream, 1)
    assert figures["loss"] == round(loss, 5)
    assert figures["perplexity"] == round(math.exp(loss), 4)
    assert figures["words"] == len(stream) - 1
    assert metrics(run) == before  # the run's own figures are those of its training


def test_evaluate_in_columns(run, data, capsys):
    figures = evaluated(capsys, run, "--columns", 3)
    stream = read_folder(data).test
    assert figures["loss"] == round(mean_loss(best(run), stream, 3), 5)
    assert figures["words"] == len(stream) // 3 * 3 - 3


def test_evaluate_dynamically(run, data, capsys):
    words = ("--dynamic", "--rate", 0.01, "--decay", 0.02, "--epsilon", 0.002)
    figures = evaluated(capsys, run, *words)
    corpus, dynamic = read_folder(data), Dynamic(0.01, 0.02, 0.002)
    statistics = gradient_statistics(best(run), corpus.train, dynamic)
    expected = dynamic_loss(best(run), corpus.test, statistics, dynamic)
    assert figures["loss"] == round(expected, 5)
    assert figures["dynamic"] == {"rate": 0.01, "decay": 0.02, "epsilon": 0.002}
    assert figures["perplexity"] != metrics(run)["test_perplexity"]


def test_a_part_of_the_text_is_not_its_figure(run, data, capsys):
    """Nor does it go into metrics.json."""
    before = metrics(run)
    figures = evaluated(capsys, run, "--words", 30)
    assert figures["words"] == 30
    assert figures["loss"] == round(mean_loss(best(run), read_folder(data).test[:31], 1), 5)
    assert metrics(run) == before


def test_evaluate_where_the_data_is_now(run, data, tmp_path, capsys):
    moved = shutil.copytree(data, tmp_path / "moved")
    assert evaluated(capsys, run, "--data", moved) == evaluated(capsys, run)


def test_evaluate_with_another_vocabulary(run, other_data, capsys):
    before = metrics(run)
    assert lrn("evaluate", run, "--data", other_data) == 2
    assert "another vocabulary" in capsys.readouterr().err
    assert metrics(run) == before
