"""The output of a language model: a mixture of softmaxes (Yang et al., 2018), a few tokens at a time.

``p = Σ_k π_k softmax(W z_k + b)``; with one expert this is the plain softmax. The K·V numbers of a token are
never there for all tokens: the loss is worked out chunk by chunk, and while a chunk's numbers are at hand its
gradient is worked out too, so that backward has nothing left to compute.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn.dropout import LockedDropout
from lrn.nn.linear import Linear
from lrn.recurrence import products

EPSILON = 1e-8  # inside the logarithm, as in the paper's code, also in evaluation
CHUNK = 1 << 22  # logits at a time
_BLOCK = 1 << 18  # of them that stay in the cache while they are gone over several times


class MixtureOfSoftmaxes(nn.Module):
    """A mixture of softmaxes over all words, given the last layer's output ``[T, B, hidden]``.

    The matrix of the decoder belongs to the caller, who may tie it to the word vectors.

    Args:
        hidden: width of the input.
        embedding: width of the word vectors, that is of the decoder matrix ``[words, embedding]``.
        words: size of the vocabulary.
        experts: softmaxes to mix, K.
        dropout: locked dropout on the K latent vectors.

    >>> import torch
    >>> head, table = MixtureOfSoftmaxes(hidden=4, embedding=3, words=10, experts=2), torch.randn(10, 3)
    >>> log_probabilities = head(torch.randn(5, 1, 4), table)
    >>> bool((log_probabilities.exp().sum(-1) - 1).abs().max() < 1e-5)
    True
    """

    def __init__(
        self, hidden: int, embedding: int, words: int, experts: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.experts, self.embedding = experts, embedding
        self.latent = Linear(hidden, experts * embedding)
        self.prior = Linear(hidden, experts, bias=False) if experts > 1 else None
        self.bias = nn.Parameter(torch.zeros(words))
        self.dropout = LockedDropout(dropout)

    def _experts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return latent vectors ``[N, K, e]`` and log priors ``[N, K]`` of the N = T * B positions."""
        latent = self.dropout(torch.tanh(self.latent(x)))  # [T, B, K * e]
        latent = latent.view(-1, self.experts, self.embedding)  # [N, K, e]
        if self.prior is None:
            return latent, latent.new_zeros(latent.shape[0], 1)
        return latent, F.log_softmax(self.prior(x), -1).view(-1, self.experts)

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        """Return the log-probabilities of all words, ``[T, B, words]``: for few positions only.

        ``x`` is ``[T, B, hidden]``, ``table`` the matrix of the decoder, ``[words, embedding]``.
        """
        latent, log_prior = self._experts(x)
        each = F.log_softmax(F.linear(latent, table, self.bias), -1)  # [N, K, words]
        mixed = torch.logsumexp(each + log_prior.unsqueeze(-1), 1).exp()  # [N, words]
        return torch.log(mixed + EPSILON).view(*x.shape[:-1], -1)

    def loss(self, x: Tensor, table: Tensor, target: Tensor) -> Tensor:
        """Return the mean negative log-probability of ``target [T, B]``, worked out in chunks."""
        total, _ = self._run(x, table, target, torch.is_grad_enabled())
        return total / target.numel()

    @torch.no_grad()
    def losses(self, x: Tensor, table: Tensor, target: Tensor) -> Tensor:
        """Return the negative log-probability of every token of ``target [T, B]``, without a gradient."""
        _, each = self._run(x, table, target, False)
        return each.view_as(target)

    def _run(self, x: Tensor, table: Tensor, target: Tensor, wanted: bool) -> tuple[Tensor, Tensor]:
        """Work out both losses in the table's precision, whatever the rest of the model runs in."""
        latent, log_prior = self._experts(x)
        with without_autocast(x.device.type):
            latent, log_prior = latent.to(table.dtype), log_prior.to(table.dtype)
            return _Loss.apply(  # type: ignore[no-any-return, no-untyped-call]
                latent, log_prior, table, self.bias, _flat(target, x), CHUNK, wanted
            )


def without_autocast(device: str) -> AbstractContextManager[object]:
    """Open a block in which autocast is off; a kind of device that knows no autocast is left alone."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def exponentiate(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Replace scores ``[N, words]`` by the powers ``exp(score − top)`` with top the largest of the row.

    Returns top and the sums of the powers, both ``[N, 1]``: the softmax is powers / sums, and the logarithm
    of a score's softmax is ``score − top − log(sums)``. (torch's own softmax takes three times as long.)

    >>> scores = torch.randn(2, 5)
    >>> powers = scores.clone()
    >>> top, sums = exponentiate(powers)
    >>> torch.allclose(powers / sums, scores.softmax(1))
    True
    """
    tops, sums = [], []
    for block in scores.split(max(1, _BLOCK // scores.shape[1])):
        top = block.amax(1, keepdim=True)
        tops.append(top)
        sums.append(block.sub_(top).exp_().sum(1, keepdim=True))
    return torch.cat(tops), torch.cat(sums)


def _flat(target: Tensor, x: Tensor) -> Tensor:
    if target.numel() != x.shape[:-1].numel():
        raise ValueError(
            f"target must have one word a position of x, {list(x.shape[:-1])}, got {list(target.shape)}"
        )
    return target.reshape(-1)


class _Loss(torch.autograd.Function):
    """The sum of all tokens' negative log-probabilities, and each of them.

    With ``z_k`` the logits of expert k, ``p_k`` its softmax, ``y`` the target and
    ``r_k = π_k p_k(y) / (Σ_j π_j p_j(y) + ε)``, the expert's share in the target's probability, the gradients
    are ``∂/∂z_k = r_k (p_k − 1_y)`` and ``∂/∂log π_k = −r_k``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        latent: Tensor,
        log_prior: Tensor,
        table: Tensor,
        bias: Tensor,
        target: Tensor,
        chunk: int,
        wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        wanted = wanted and any(ctx.needs_input_grad[:4])  # which are True under no_grad too
        tokens, experts, width = latent.shape
        words = table.shape[0]
        losses = latent.new_empty(tokens)
        gradients = [torch.empty_like(latent), torch.empty_like(log_prior)] if wanted else []
        if wanted:
            gradients += [torch.zeros_like(table), torch.zeros_like(bias)]
        size = max(1, chunk // (experts * words))
        for start in range(0, tokens, size):
            part = slice(start, min(start + size, tokens))
            vectors = latent[part].reshape(-1, width)  # [tokens of the chunk * K, e]
            powers = products.linear(vectors, table, bias)  # [tokens of the chunk * K, words]
            _, total = exponentiate(powers)
            goal = target[part].repeat_interleave(experts)
            at_goal = (powers.gather(1, goal.unsqueeze(1)) / total).view(-1, experts)  # [tokens, K]
            share = at_goal * log_prior[part].exp()
            probability = share.sum(1, keepdim=True) + EPSILON
            losses[part] = -probability.squeeze(1).log()
            if not wanted:
                continue
            share = share / probability
            torch.neg(share, out=gradients[1][part])
            # r (p − 1_y), without ever writing it down: p and 1_y go into the products one after the other
            share = share.view(-1, 1)
            scale = share / total  # p is powers / total
            grad = gradients[0][part].view(-1, width)
            products.product_into(grad, powers, table).mul_(scale).sub_(table[goal] * share)
            products.add_product(gradients[2], powers.t(), vectors * scale)
            gradients[2].index_add_(0, goal, vectors * share, alpha=-1)
            gradients[3].addmv_(powers.t(), scale.squeeze(1)).index_add_(0, goal, share.squeeze(1), alpha=-1)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(losses)
        return losses.sum(), losses

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
        return *(value * grad for value in ctx.saved_tensors), None, None, None
