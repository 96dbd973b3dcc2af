"""The mixture of softmaxes, in chunks or in one piece, is its formula; so are its gradients."""

import json
from itertools import accumulate

import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import says
from torch.profiler import ProfilerActivity, profile

from lrn.nn import MixtureOfSoftmaxes, softmax

STEPS, BATCH, HIDDEN, EMBEDDING, WORDS = 5, 3, 6, 4, 11
EXACT = {"rtol": 0, "atol": 1e-10}
# Logits at a time. In the middle: 4 + 4 + 4 + 3 tokens with three experts, 12 + 3 with one.
CHUNKS = {"tokens": 1, "uneven": 12 * WORDS + 5, "whole": 1 << 40, "as it is": softmax.CHUNK}

mixtures = pytest.mark.parametrize("experts", [1, 3])
# Ordinary logits; then logits so far apart that many a target has less than the formula's 1e-8.
scales = pytest.mark.parametrize("scale", [1, 30])


def problem(experts, scale=1, dropout=0.0, dtype=torch.float64):
    torch.manual_seed(1)
    head = MixtureOfSoftmaxes(HIDDEN, EMBEDDING, WORDS, experts, dropout).to(dtype)
    with torch.no_grad():
        for parameter in head.parameters():  # so that no bias hides behind its default
            parameter.normal_()
    x = torch.randn(STEPS, BATCH, HIDDEN, dtype=dtype, requires_grad=True)
    table = (scale * torch.randn(WORDS, EMBEDDING, dtype=dtype)).requires_grad_()
    return head, x, table, torch.randint(WORDS, (STEPS, BATCH))


def by_definition(head, x, table):
    """``log(Σ_k prior_k softmax_k + 1e-8)``, expert by expert."""
    latent = torch.tanh(x @ head.latent.weight.T + head.latent.bias).split(EMBEDDING, -1)
    prior = [torch.ones_like(x[..., 0])]
    if len(latent) > 1:
        prior = torch.softmax(x @ head.prior.weight.T, -1).unbind(-1)
    each = [torch.softmax(z @ table.T + head.bias, -1) for z in latent]
    return torch.log(sum(w.unsqueeze(-1) * p for w, p in zip(prior, each, strict=True)) + 1e-8)


def at(log_probabilities, target):
    return -log_probabilities.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def leaves(head, x, table):
    return {"x": x, "table": table, **dict(head.named_parameters())}


def gradients(value, head, x, table, **options):
    """By name: x, table, bias, latent.weight, latent.bias and, in a mixture, prior.weight."""
    wanted = leaves(head, x, table)
    return dict(zip(wanted, torch.autograd.grad(value, list(wanted.values()), **options), strict=True))


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        torch.testing.assert_close(
            value, expected[name], msg=lambda text, name=name: f"{name}: {text}", **EXACT
        )


# The formula --------------------------------------------------------------------------------------


@scales
@mixtures
def test_forward_is_the_formula(experts, scale):
    head, x, table, _ = problem(experts, scale)
    found, expected = head(x, table), by_definition(head, x, table)
    assert found.shape == (STEPS, BATCH, WORDS)
    torch.testing.assert_close(found, expected, **EXACT)
    above = torch.randn_like(found)
    assert_same(
        gradients(found, head, x, table, grad_outputs=above),
        gradients(expected, head, x, table, grad_outputs=above),
    )


@scales
@mixtures
def test_probabilities_sum_to_one(experts, scale):
    head, x, table, _ = problem(experts, scale)
    total = (head(x, table).exp() - softmax.EPSILON).sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), **EXACT)


@mixtures
def test_parameters(experts):
    """The matrix is the caller's; one softmax needs no prior."""
    shapes = {
        "bias": (WORDS,),
        "latent.weight": (experts * EMBEDDING, HIDDEN),
        "latent.bias": (experts * EMBEDDING,),
    }
    if experts > 1:
        shapes["prior.weight"] = (experts, HIDDEN)
    assert {n: tuple(p.shape) for n, p in problem(experts)[0].named_parameters()} == shapes


# The loss -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", CHUNKS)
@scales
@mixtures
def test_loss_and_all_gradients_are_those_of_the_formula(experts, scale, chunk, monkeypatch):
    monkeypatch.setattr(softmax, "CHUNK", CHUNKS[chunk])
    head, x, table, target = problem(experts, scale)
    expected = at(by_definition(head, x, table), target)
    found = head.loss(x, table, target)
    torch.testing.assert_close(found, expected.mean(), **EXACT)
    torch.testing.assert_close(found, at(head(x, table), target).mean(), **EXACT)
    assert_same(gradients(found, head, x, table), gradients(expected.mean(), head, x, table))
    each = head.losses(x, table, target)
    assert not each.requires_grad
    torch.testing.assert_close(each, expected.detach(), **EXACT)


@mixtures
def test_the_scales_reach_both_sides_of_epsilon(experts):
    """Or the tests above would not see whether it is there."""
    head, x, table, target = problem(experts, scale=30)
    probability = torch.exp(-head.losses(x, table, target)) - softmax.EPSILON
    assert probability.min() < softmax.EPSILON < 1e-3 < probability.max()


@mixtures
def test_the_loss_in_a_larger_sum(experts):
    """The gradient was there before backward knew its factor."""
    head, x, table, target = problem(experts)
    alone = gradients(head.loss(x, table, target), head, x, table)
    doubled = gradients(-2.5 * head.loss(x, table, target), head, x, table)
    assert_same(doubled, {name: -2.5 * value for name, value in alone.items()})


def test_a_graph_that_is_kept_gives_the_same_again():
    head, x, table, target = problem(3)
    loss = head.loss(x, table, target)
    first = gradients(loss, head, x, table, retain_graph=True)
    for name, value in gradients(loss, head, x, table).items():
        assert torch.equal(value, first[name])


@pytest.mark.parametrize("frozen", ["x", "table", "bias", "latent.weight", "latent.bias", "prior.weight"])
def test_what_needs_no_gradient_gets_none(frozen):
    head, x, table, target = problem(3)
    expected = gradients(at(by_definition(head, x, table), target).mean(), head, x, table)
    leaves(head, x, table)[frozen].requires_grad_(False)
    head.loss(x, table, target).backward()
    found = {name: value.grad for name, value in leaves(head, x, table).items()}
    assert found.pop(frozen) is None
    assert_same(found, {name: value for name, value in expected.items() if name != frozen})


def test_only_the_input_needs_a_gradient():
    head, x, table, target = problem(3)
    expected = gradients(head.loss(x, table, target), head, x, table)["x"]
    head.requires_grad_(False)
    (found,) = torch.autograd.grad(head.loss(x, table.detach(), target), x)
    torch.testing.assert_close(found, expected, **EXACT)


@mixtures
def test_batch_first_data_turned_to_time_first(experts):
    head, x, table, target = problem(experts)
    turned = x.detach().transpose(0, 1).contiguous().transpose(0, 1)
    target_turned = target.t().contiguous().t()
    assert not turned.is_contiguous()
    torch.testing.assert_close(head(turned, table), head(x, table), **EXACT)
    torch.testing.assert_close(head.loss(turned, table, target_turned), head.loss(x, table, target), **EXACT)
    torch.testing.assert_close(
        head.losses(turned, table, target_turned), head.losses(x, table, target), **EXACT
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@mixtures
def test_extreme_logits(experts, dtype):
    """Logits of about ±1e4, a prior of nothing but zeros and ones: finite, and never worse than -log 1e-8."""
    head, x, table, target = problem(experts, dtype=dtype)
    with torch.no_grad():
        table.copy_(1e4 * table.sign())
        head.bias.copy_(1e4 * head.bias.sign())
        if head.prior is not None:
            head.prior.weight.mul_(1e4)
    each, loss = head.losses(x, table, target), head.loss(x, table, target)
    assert each.min() >= -1e-6
    assert each.max() <= 18.4207  # -log 1e-8
    assert each.max() > 18.42  # some target has no probability at all
    tolerance = {"rtol": 0, "atol": 1e-10 if dtype == torch.float64 else 1e-2}
    torch.testing.assert_close(loss, at(head(x, table), target).mean(), **tolerance)
    assert all(value.isfinite().all() for value in gradients(loss, head, x, table).values())
    assert head(x, table).isfinite().all()


@pytest.mark.parametrize("method", ["loss", "losses"])
@pytest.mark.parametrize("steps", [1, STEPS - 1, STEPS + 1, 2 * STEPS])
def test_as_many_targets_as_positions(steps, method):
    head, x, table, _ = problem(3)
    with pytest.raises(ValueError, match=says(f"[{STEPS}, {BATCH}]", f"[{steps}, {BATCH}]")):
        getattr(head, method)(x, table, torch.zeros(steps, BATCH, dtype=torch.long))


# Dropout ------------------------------------------------------------------------------------------


@mixtures
def test_no_dropout_in_evaluation(experts):
    head, x, table, target = problem(experts, dropout=0.5)
    head.eval()
    torch.testing.assert_close(head(x, table), by_definition(head, x, table), **EXACT)
    expected = at(by_definition(head, x, table), target)
    torch.testing.assert_close(head.loss(x, table, target), expected.mean(), **EXACT)
    torch.testing.assert_close(head.losses(x, table, target), expected.detach(), **EXACT)


@mixtures
def test_the_mask_is_locked_over_time(experts):
    """The same input at all steps of all rows: the mask is what makes a difference."""
    head, x, table, _ = problem(experts, dropout=0.5)
    y = head(x[:1, :1].expand(STEPS, 8, HIDDEN), table)
    torch.testing.assert_close(y, y[:1].expand_as(y), **EXACT)
    assert y[0].detach().unique(dim=0).shape[0] > 1
    assert not torch.equal(head(x, table), head(x, table))


@mixtures
def test_the_loss_drops_as_forward_does(experts):
    head, x, table, target = problem(experts, dropout=0.5)
    values = []
    for run in (
        lambda: head.loss(x, table, target),
        lambda: at(head(x, table), target).mean(),
    ):
        torch.manual_seed(2)
        value = run()
        values.append({"loss": value.detach(), **gradients(value, head, x, table)})
    assert_same(*values)
    assert abs(values[0]["loss"] - head.eval().loss(x, table, target)) > 1e-3


# Memory -------------------------------------------------------------------------------------------


def peak_bytes(run, folder):
    """The most that was allocated at once while ``run`` ran."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    trace = json.loads((folder / "trace.json").read_text())["traceEvents"]
    events = sorted((event for event in trace if event["name"] == "[memory]"), key=lambda event: event["ts"])
    return max(accumulate(event["args"]["Bytes"] for event in events))


def share_of_everything(tokens, folder):
    """The peak of loss and gradient, as a share of all logits of all tokens."""
    experts, words = 4, 5000
    head = MixtureOfSoftmaxes(HIDDEN, EMBEDDING, words, experts)
    x, table = torch.randn(tokens, 1, HIDDEN), torch.randn(words, EMBEDDING, requires_grad=True)
    target = torch.randint(words, (tokens, 1))
    peak = peak_bytes(lambda: head.loss(x, table, target).backward(), folder)
    return peak / (tokens * experts * words * 4)


def test_memory_is_that_of_a_chunk(tmp_path, monkeypatch):
    assert share_of_everything(2000, tmp_path) < 1 / 3
    monkeypatch.setattr(softmax, "CHUNK", 1 << 17)
    assert share_of_everything(400, tmp_path) < 1 / 10
    monkeypatch.setattr(softmax, "CHUNK", 1 << 40)
    assert share_of_everything(400, tmp_path) > 1  # the meter sees what there is


@pytest.mark.parametrize("method", ["losses", "loss"])
def test_no_gradient_is_worked_out_that_nobody_wants(method, tmp_path):
    """A few tokens and a large table: its gradient would be most of the memory."""
    words = 20_000
    head = MixtureOfSoftmaxes(HIDDEN, 64, words)
    x, table, target = (
        torch.randn(2, 1, HIDDEN),
        torch.randn(words, 64).requires_grad_(),
        torch.tensor([[1], [2]]),
    )

    def run():
        with torch.no_grad():
            getattr(head, method)(x, table, target)

    assert peak_bytes(run, tmp_path) < table.numel() * 4 / 2
    with_gradient = peak_bytes(lambda: head.loss(x, table, target), tmp_path)
    assert with_gradient > table.numel() * 4


@pytest.mark.accelerator
@pytest.mark.parametrize("experts", [1, 3])
def test_on_another_device(experts):
    with elsewhere():
        with DEVICE:
            head = MixtureOfSoftmaxes(4, 3, 10, experts, dropout=0.5)
            x, table = torch.randn(5, 2, 4, requires_grad=True), torch.randn(10, 3, requires_grad=True)
            target = torch.zeros(5, 2, dtype=torch.long)
        loss = head.loss(x, table, target)
        loss.backward()
        results = (loss, x.grad, table.grad, head.losses(x, table, target), head(x, table))
    assert all(result.device == DEVICE for result in results)
