"""Attentive pooling against a plain loop over the states of one sequence at a time."""

import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import randn

from lrn.nn import AttentivePooling, LockedPooling, SelfPooling
from lrn.text.batches import Packing, RowPacking

WIDTH, HIDDEN = 6, 4
LENGTHS = [5, 1, 3, 5]
EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.fixture
def pool():
    """With large weights, or every state would count nearly the same."""
    pool = AttentivePooling(WIDTH, HIDDEN).double()
    with torch.no_grad():
        for number, parameter in enumerate(pool.parameters()):
            parameter.copy_(2 * randn(*parameter.shape, seed=number))
    return pool


def problem():
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return randn(len(LENGTHS), max(LENGTHS), WIDTH), randn(len(LENGTHS), WIDTH, seed=2), mask


def plainly(pool, states, summary):
    """``[T, W]`` and ``[W]`` of one sequence to its pooled ``[W]`` and the list of weights."""
    scores = []
    for u in states:
        m = torch.tanh(
            pool.state.weight @ u + pool.state.bias + pool.summary.weight @ summary + pool.summary.bias
        )
        scores.append((pool.score.weight[0] * m).sum().exp())
    weights = [score / sum(scores) for score in scores]
    return sum(weight * u for weight, u in zip(weights, states, strict=True)), torch.stack(weights)


def test_against_a_loop(pool):
    states, summary, mask = problem()
    pooled, weights = pool(states, summary, mask)
    assert pooled.shape == (4, WIDTH)
    assert weights.shape == (4, 5)
    for row, length in enumerate(LENGTHS):
        expected, shares = plainly(pool, states[row, :length], summary[row])
        torch.testing.assert_close(pooled[row], expected, **EXACT)
        torch.testing.assert_close(weights[row, :length], shares, **EXACT)


def test_weights_are_shares_of_what_is_there(pool):
    states, summary, mask = problem()
    weights = pool(states, summary, mask)[1]
    beyond = ~mask
    torch.testing.assert_close(weights.sum(1), torch.ones(4, dtype=torch.float64), **EXACT)
    assert not weights[beyond].any()
    assert (weights[~beyond] > 0).all()
    assert weights[1, 0] == 1  # of one state there is nothing to choose from
    assert weights[0].max() > 0.3  # and otherwise some are preferred


@pytest.mark.parametrize("padding", [1e4, -1e4, 1e30])
def test_padding_does_not_matter(pool, padding):
    states, summary, mask = problem()
    beyond = ~mask
    other = states.masked_fill(beyond.unsqueeze(2), padding)
    for ours, theirs in zip(pool(other, summary, mask), pool(states, summary, mask), strict=True):
        assert torch.equal(ours, theirs)


def test_more_padding_does_not_matter(pool):
    states, summary, mask = problem()
    longer = torch.cat([states, randn(4, 3, WIDTH, seed=5)], 1)
    more = torch.cat([mask, torch.zeros(4, 3, dtype=torch.bool)], 1)
    torch.testing.assert_close(pool(longer, summary, more)[0], pool(states, summary, mask)[0], **EXACT)


def test_the_summary_matters(pool):
    states, summary, mask = problem()
    moved = pool(states, -summary, mask)[0] - pool(states, summary, mask)[0]
    assert moved[[0, 2, 3]].abs().amax(1).min() > 1e-3


def test_dropout_in_training_only():
    states, summary, mask = problem()
    pool = AttentivePooling(WIDTH, HIDDEN, dropout=0.5).double()
    without = AttentivePooling(WIDTH, HIDDEN).double()
    without.load_state_dict(pool.state_dict())
    torch.manual_seed(1)
    assert not torch.equal(pool(states, summary, mask)[0], pool(states, summary, mask)[0])
    for ours, theirs in zip(pool.eval()(states, summary, mask), without(states, summary, mask), strict=True):
        assert torch.equal(ours, theirs)


def test_the_summary_is_dropped_out_anew_at_every_step():
    """Equal states differ in weight only by what they are compared to."""
    pool = AttentivePooling(64, 8, dropout=0.5)
    torch.nn.init.zeros_(pool.state.weight)
    torch.manual_seed(1)
    weights = pool(
        torch.ones(1, 6, 64), randn(1, 64, dtype=torch.float32), torch.ones(1, 6, dtype=torch.bool)
    )[1]
    assert weights.unique().numel() == 6


def test_what_is_pooled_is_what_was_dropped_out():
    """Twice the state or nothing, the same in the sum as in the scores."""
    pool = AttentivePooling(200, 4, dropout=0.5)
    torch.manual_seed(1)
    pooled, _ = pool(torch.ones(1, 1, 200), torch.zeros(1, 200), torch.ones(1, 1, dtype=torch.bool))
    assert sorted(pooled.unique().tolist()) == [0, 2]


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_wrong_dropout(dropout):
    with pytest.raises(ValueError, match="dropout"):
        AttentivePooling(WIDTH, HIDDEN, dropout)


def test_gradient(pool):
    states, summary, mask = (tensor[:3] for tensor in problem())
    beyond = ~mask
    states.requires_grad_()
    summary.requires_grad_()
    pooled, weights = pool(states, summary, mask)
    (pooled.sin().sum() + (weights**2).sum()).backward()
    assert not states.grad[beyond].any()
    assert states.grad[~beyond].any(1).all()
    assert all(parameter.grad.any() for parameter in pool.parameters())
    short = (states[1:, :3].detach().requires_grad_(), summary[1:].detach().requires_grad_())
    assert torch.autograd.gradcheck(lambda u, s: pool(u, s, mask[1:, :3]), short)


@pytest.mark.accelerator
def test_on_another_device():
    with elsewhere():
        with DEVICE:
            pool = AttentivePooling(WIDTH, HIDDEN, dropout=0.5)
            states, summary = torch.randn(2, 5, WIDTH, requires_grad=True), torch.randn(2, WIDTH)
            mask = torch.ones(2, 5, dtype=torch.bool)
        pooled, weights = pool(states, summary, mask)
        pooled.sum().backward()
    assert pooled.device == weights.device == states.grad.device == DEVICE


# By itself ----------------------------------------------------------------------------------------


@pytest.fixture
def by_itself():
    pool = SelfPooling(WIDTH, HIDDEN).double()
    with torch.no_grad():
        for number, parameter in enumerate(pool.parameters()):
            parameter.copy_(2 * randn(*parameter.shape, seed=number))
    return pool


def test_states_that_say_how_much_they_count(by_itself):
    packing = Packing.of(LENGTHS)
    states = randn(len(LENGTHS), max(LENGTHS), WIDTH)
    pooled, weights = by_itself(packing.pack(states).data, packing)
    for n, length in enumerate(LENGTHS):
        scores = [by_itself.score(torch.tanh(by_itself.state(u)))[0].exp() for u in states[n, :length]]
        shares = torch.stack(scores) / sum(scores)
        torch.testing.assert_close(weights[n, :length], shares, **EXACT)
        torch.testing.assert_close(pooled[n], shares @ states[n, :length], **EXACT)
        assert not weights[n, length:].any()


def test_what_is_dropped_of_them():
    """The mean is of the states as they are after dropout."""
    pool, packing = SelfPooling(WIDTH, HIDDEN, dropout=0.5).double(), Packing.of([1])
    pooled, _ = pool(torch.ones(1, WIDTH, dtype=torch.float64), packing)
    assert set(pooled[0].tolist()) <= {0.0, 2.0}


def test_gradients_by_itself(by_itself):
    packing = Packing.of(LENGTHS)
    states = randn(sum(LENGTHS), WIDTH).requires_grad_()
    torch.autograd.gradcheck(lambda *given: by_itself(given[0], packing), (states, *by_itself.parameters()))


# Whole states, weights of dropped ones --------------------------------------------------------------


def locked_pool(dropout=0.0):
    pool = LockedPooling(WIDTH, HIDDEN, dropout).double()
    with torch.no_grad():
        for number, parameter in enumerate(pool.parameters()):
            parameter.copy_(2 * randn(*parameter.shape, seed=number))
    return pool


def test_locked_against_a_loop():
    pool, packing = locked_pool(), RowPacking.of(LENGTHS)
    states = randn(len(LENGTHS), max(LENGTHS), WIDTH)
    pooled, weights = pool(packing.pack(states).data, packing)
    for row, length in enumerate(LENGTHS):
        own = states[row, :length]
        scores = torch.tanh(own @ pool.state.weight.t() + pool.state.bias) @ pool.score.weight[0]
        torch.testing.assert_close(pooled[row], scores.softmax(0) @ own, **EXACT)
        torch.testing.assert_close(weights[row, :length], scores.softmax(0), **EXACT)
        assert not weights[row, length:].any()


def test_locked_gradients():
    pool, packing = locked_pool(), RowPacking.of([3, 1])
    assert torch.autograd.gradcheck(lambda x: pool(x, packing)[0], randn(4, WIDTH).requires_grad_())


def test_locked_dropout_spares_what_is_pooled():
    torch.manual_seed(1)
    pool, packing = locked_pool(0.5).train(), RowPacking.of([1, 1])
    states = randn(2, WIDTH)
    pooled, _ = pool(states, packing)
    torch.testing.assert_close(pooled, packing.pad(states)[:, 0], **EXACT)  # one state each: the weight is 1
    several = RowPacking.of([4])
    _, once = pool(randn(4, WIDTH), several)
    _, again = pool(randn(4, WIDTH), several)
    assert not torch.equal(once, again)
