"""A linear-chain conditional random field over tags (Lafferty et al., 2001)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FORBIDDEN = -1e6  # the score of what must not be: finite, so that no gradient is ever NaN


class CRF(nn.Module):
    """A linear-chain CRF: how likely each sequence of tags is, given scores of each word's tags.

    The score of tags y is ``start[y_1] + Σ emission_t[y_t] + Σ transition[y_t, y_{t+1}] + end[y_T]``.
    Everything is batched: emissions ``[B, T, tags]``, tags ``[B, T]``, mask ``[B, T]`` (True where a word is;
    a sentence's words come first, and there is at least one).

    Args:
        tags: number of tags.
        allowed: which tag may follow which, bool ``[tags + 1, tags + 1]``: the last row says which tags may
            begin a sentence, the last column which may end it. None allows everything.

    >>> import torch
    >>> crf = CRF(3)
    >>> emissions, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])
    >>> crf.log_likelihood(emissions, torch.zeros(2, 4, dtype=torch.long), mask).shape
    torch.Size([2])
    >>> crf.decode(emissions, mask).shape
    torch.Size([2, 4])
    """

    barred: Tensor

    def __init__(self, tags: int, allowed: Tensor | None = None) -> None:
        super().__init__()
        if tags < 1:
            raise ValueError(f"a CRF needs at least one tag, got {tags}")
        self.tags = tags
        self.transition = nn.Parameter(torch.empty(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))
        nn.init.orthogonal_(self.transition)
        barred = torch.zeros(tags + 1, tags + 1)
        if allowed is not None:
            if allowed.shape != barred.shape:
                raise ValueError(f"allowed must be {list(barred.shape)}, got {list(allowed.shape)}")
            barred = barred.masked_fill(~allowed.bool(), FORBIDDEN)
        self.register_buffer("barred", barred, persistent=False)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return start, transition and end scores, with what is forbidden far below all else."""
        barred = self.barred.to(self.transition.dtype)
        return self.start + barred[-1, :-1], self.transition + barred[:-1, :-1], self.end + barred[:-1, -1]

    def log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return ``log P(tags | emissions)`` of each sentence, ``[B]``."""
        self._check(emissions, mask, tags)
        return self._score(emissions, tags, mask) - self.log_partition(emissions, mask)

    def _score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return the score of each sentence's tags, ``[B]``."""
        start, transition, end = self._scores()
        tags = tags.masked_fill(~mask, 0)
        chosen = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)  # [B, T]
        steps = transition[tags[:, :-1], tags[:, 1:]]  # [B, T - 1]
        last = tags.gather(1, (mask.sum(1, keepdim=True) - 1)).squeeze(1)  # [B]
        return (
            start[tags[:, 0]]
            + chosen.masked_fill(~mask, 0).sum(1)
            + steps.masked_fill(~mask[:, 1:], 0).sum(1)
            + end[last]
        )

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return the logarithm of the sum of ``exp(score)`` over all tag sequences, ``[B]``."""
        forward = self._forward(emissions, mask)[-1]  # [B, tags]
        return torch.logsumexp(forward + self._scores()[2], 1)

    def _forward(self, emissions: Tensor, mask: Tensor) -> list[Tensor]:
        """Return, step by step, the log of the sum over all beginnings that end in a tag, ``[B, tags]``."""
        start, transition, _ = self._scores()
        now = start + emissions[:, 0]  # [B, tags]
        sums = [now]
        for t in range(1, emissions.shape[1]):
            paths = now.unsqueeze(2) + transition  # [B, from, to]
            then = torch.logsumexp(paths, 1) + emissions[:, t]  # [B, tags]
            now = torch.where(mask[:, t].unsqueeze(1), then, now)
            sums.append(now)
        return sums

    def _backward(self, emissions: Tensor, mask: Tensor) -> list[Tensor]:
        """Return, step by step, the log of the sum over all ends that follow a tag, ``[B, tags]``.

        A step's own emission is not in it.
        """
        _, transition, end = self._scores()
        now = end.expand(emissions.shape[0], -1)  # [B, tags]
        sums = [now]
        for t in range(emissions.shape[1] - 1, 0, -1):
            paths = transition + (now + emissions[:, t]).unsqueeze(1)  # [B, from, to]
            before = torch.logsumexp(paths, 2)  # [B, tags]
            now = torch.where(mask[:, t].unsqueeze(1), before, now)
            sums.append(now)
        return sums[::-1]

    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return ``P(y_t = tag | emissions)``, ``[B, T, tags]``, with zeros beyond a sentence's end."""
        self._check(emissions, mask)
        forward, backward = self._forward(emissions, mask), self._backward(emissions, mask)
        both = torch.stack(forward, 1) + torch.stack(backward, 1)  # [B, T, tags]
        return torch.softmax(both, 2).masked_fill(~mask.unsqueeze(2), 0)

    def decode(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Find the best tag sequence of each sentence (Viterbi), ``[B, T]``, with 0 beyond its end."""
        self._check(emissions, mask)
        start, transition, end = self._scores()
        now = start + emissions[:, 0]  # [B, tags]
        stay = torch.arange(self.tags, device=emissions.device).expand_as(now)
        pointers = []
        for t in range(1, emissions.shape[1]):
            best, pointer = (now.unsqueeze(2) + transition).max(1)  # [B, from, to] -> [B, to]
            real = mask[:, t].unsqueeze(1)
            now = torch.where(real, best + emissions[:, t], now)
            pointers.append(torch.where(real, pointer, stay))
        tag = (now + end).argmax(1)  # [B]
        tags = [tag]
        for pointer in reversed(pointers):
            tag = pointer.gather(1, tag.unsqueeze(1)).squeeze(1)  # [B]
            tags.append(tag)
        return torch.stack(tags[::-1], 1).masked_fill(~mask, 0)  # [B, T]

    def _check(self, emissions: Tensor, mask: Tensor, tags: Tensor | None = None) -> None:
        if emissions.dim() != 3 or emissions.shape[2] != self.tags or emissions.shape[1] < 1:
            raise ValueError(f"emissions must be [B, T >= 1, {self.tags}], got {list(emissions.shape)}")
        for name, value in (("mask", mask), ("tags", tags)):
            if value is not None and value.shape != emissions.shape[:2]:
                raise ValueError(f"{name} must be {list(emissions.shape[:2])}, got {list(value.shape)}")
        if mask.dtype != torch.bool:
            raise TypeError(f"mask must be bool, got {mask.dtype}")

    def extra_repr(self) -> str:
        return f"{self.tags}"
