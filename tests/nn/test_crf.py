"""The CRF against brute force over all tag sequences, and against pytorch-crf."""

import itertools

import pytest
import torch
from accelerator import DEVICE, elsewhere

from lrn.nn.crf import CRF


def problem(batch=3, steps=4, tags=3, seed=1, allowed=None):
    torch.manual_seed(seed)
    crf = CRF(tags, allowed).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    emissions = torch.randn(batch, steps, tags, dtype=torch.float64)
    lengths = torch.tensor([steps, 1, steps - 1][:batch])
    mask = torch.arange(steps) < lengths[:, None]
    return crf, emissions, mask, lengths


def all_scores(crf, emissions):
    """Every tag sequence of one unpadded sentence, and its score."""
    steps, tags = emissions.shape
    start, transition, end = crf._scores()
    scored = {}
    for path in itertools.product(range(tags), repeat=steps):
        score = start[path[0]] + end[path[-1]] + sum(emissions[t, y] for t, y in enumerate(path))
        scored[path] = score + sum(transition[a, b] for a, b in itertools.pairwise(path))
    return scored


def test_likelihoods_against_brute_force():
    crf, emissions, mask, lengths = problem()
    tags = torch.randint(3, mask.shape)
    found = crf.log_likelihood(emissions, tags, mask)
    for row, length in enumerate(lengths.tolist()):
        scored = all_scores(crf, emissions[row, :length])
        total = torch.stack(list(scored.values())).logsumexp(0)
        expected = scored[tuple(tags[row, :length].tolist())] - total
        torch.testing.assert_close(found[row], expected, rtol=1e-12, atol=1e-12)


def test_marginals_and_best_path_against_brute_force():
    crf, emissions, mask, lengths = problem(tags=4)
    marginals, best = crf.marginals(emissions, mask), crf.decode(emissions, mask)
    for row, length in enumerate(lengths.tolist()):
        scored = all_scores(crf, emissions[row, :length])
        total = torch.stack(list(scored.values())).logsumexp(0)
        expected = torch.zeros_like(marginals[row])
        for path, score in scored.items():
            for t, y in enumerate(path):
                expected[t, y] += (score - total).exp()
        torch.testing.assert_close(marginals[row], expected, rtol=1e-12, atol=1e-12)
        assert tuple(best[row, :length].tolist()) == max(scored, key=lambda path: scored[path])
        assert not best[row, length:].any()


def test_against_pytorch_crf():
    torchcrf = pytest.importorskip("torchcrf")
    crf, emissions, mask, _ = problem(batch=3, steps=7, tags=5)
    theirs = torchcrf.CRF(5, batch_first=True).double()
    with torch.no_grad():
        theirs.transitions.copy_(crf.transition)
        theirs.start_transitions.copy_(crf.start)
        theirs.end_transitions.copy_(crf.end)
    tags = torch.randint(5, mask.shape)
    expected = theirs(emissions, tags, mask=mask, reduction="none")
    torch.testing.assert_close(crf.log_likelihood(emissions, tags, mask), expected, rtol=1e-12, atol=1e-12)
    paths = [row[row_mask].tolist() for row, row_mask in zip(crf.decode(emissions, mask), mask, strict=True)]
    assert paths == theirs.decode(emissions, mask)


def test_gradient():
    crf, emissions, mask, _ = problem()
    tags = torch.randint(3, mask.shape)
    emissions.requires_grad_()
    assert torch.autograd.gradcheck(lambda e: crf.log_likelihood(e, tags, mask), (emissions,))
    crf.log_likelihood(emissions, tags, mask).sum().backward()
    assert not emissions.grad[~mask].any()
    assert all(p.grad is not None and p.grad.any() for p in crf.parameters())


def test_padding_does_not_matter():
    crf, emissions, mask, _ = problem()
    tags = torch.randint(3, mask.shape)
    other = emissions.masked_fill(~mask.unsqueeze(2), 1e3)
    assert torch.equal(crf.log_likelihood(emissions, tags, mask), crf.log_likelihood(other, tags, mask))
    assert torch.equal(crf.decode(emissions, mask), crf.decode(other, mask))


def test_long_sentences_in_single_precision():
    """500 words with large scores: float32 stays with float64."""
    torch.manual_seed(1)
    crf = CRF(9)
    emissions, mask = 20 * torch.randn(2, 500, 9), torch.ones(2, 500, dtype=torch.bool)
    tags = torch.randint(9, (2, 500))
    single = crf.log_likelihood(emissions, tags, mask)
    double = crf.double().log_likelihood(emissions.double(), tags, mask)
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-3)


def test_what_is_forbidden_does_not_happen():
    allowed = torch.ones(4, 4, dtype=torch.bool)
    allowed[0, 1] = allowed[3, 2] = allowed[2, 3] = False  # 0 before 1; beginning with 2; ending in 2
    crf, emissions, mask, lengths = problem(allowed=allowed)
    for row, length in zip(crf.decode(emissions, mask).tolist(), lengths.tolist(), strict=True):
        path = row[:length]
        assert path[0] != 2
        assert path[-1] != 2
        assert (0, 1) not in itertools.pairwise(path)
    assert crf.marginals(emissions, mask)[:, 0, 2].max() == 0
    loss = -crf.log_likelihood(
        emissions.requires_grad_(), torch.ones_like(mask, dtype=torch.long), mask
    ).sum()
    loss.backward()
    assert emissions.grad.isfinite().all()


@pytest.mark.slow
def test_compiled():
    torch._dynamo.reset()
    crf, emissions, mask, _ = problem()
    tags = torch.randint(3, mask.shape)
    for method, args in ((crf.log_likelihood, (emissions, tags, mask)), (crf.decode, (emissions, mask))):
        compiled = torch.compile(method, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(*args), method(*args), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("emissions", "mask", "error", "said"),
    [
        (torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), ValueError, "emissions"),
        (torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool), ValueError, "emissions"),
        (torch.zeros(2, 3, 3), torch.ones(2, 4, dtype=torch.bool), ValueError, "mask"),
        (torch.zeros(2, 3, 3), torch.ones(2, 3), TypeError, "bool"),
    ],
)
def test_wrong_arguments(emissions, mask, error, said):
    with pytest.raises(error, match=said):
        CRF(3).decode(emissions, mask)


def test_wrong_settings():
    with pytest.raises(ValueError, match="at least one tag"):
        CRF(0)
    with pytest.raises(ValueError, match=r"\[4, 4\]"):
        CRF(3, torch.ones(3, 3, dtype=torch.bool))


@pytest.mark.accelerator
def test_on_another_device():
    """Nothing is made here, and nothing is read back."""
    with elsewhere():
        with DEVICE:
            crf = CRF(3, torch.ones(4, 4, dtype=torch.bool))
            emissions, mask = torch.randn(2, 5, 3, requires_grad=True), torch.ones(2, 5, dtype=torch.bool)
            tags = torch.zeros(2, 5, dtype=torch.long)
        likelihood = crf.log_likelihood(emissions, tags, mask)
        likelihood.sum().backward()
        results = (likelihood, crf.marginals(emissions, mask), crf.decode(emissions, mask), emissions.grad)
    assert all(result.device == DEVICE for result in results)
