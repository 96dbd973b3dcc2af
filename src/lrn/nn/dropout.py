"""Dropouts of sequence models: of numbers, of all of time at once, of whole words, of words for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.recurrence import modes

if TYPE_CHECKING:
    from lrn.text.batches import RowPacking


_DRAWS = 2**16  # different ones with 16 bits


def check_probability(name: str, value: float) -> float:
    """Return ``value`` as a float if it is a probability below 1, else raise a ``ValueError``."""
    if isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a probability from 0 to below 1, got {value!r}")
    return float(value)


class Dropout(nn.Dropout):
    """An ``nn.Dropout``, several times as fast on a CPU; it keeps a byte a number to go back, not a float.

    Whether a number is dropped is drawn with 16 bits, so that p is right to 1 in 65,536, and what is kept is
    scaled by exactly what that comes to.

    >>> import torch
    >>> Dropout(0.5)(torch.ones(2, 300)).unique().tolist()
    [0.0, 2.0]
    """

    def __init__(self, p: float) -> None:
        super().__init__(check_probability("dropout", p))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p or not x.numel():
            return x
        kept = round((1 - self.p) * _DRAWS)
        ours = x.is_cpu and modes.plain(x) and not modes.tracing()
        if not ours or kept in (0, _DRAWS):  # fewer than one in 65,536 is kept, or dropped
            return torch.native_dropout(x, self.p, True)[0]
        # four draws a random number; torch draws each by itself, and on some processors slowly
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        draws = bits.view(torch.int16)[: x.numel()].view(x.shape)
        return (x * (draws < kept - _DRAWS // 2)).mul_(_DRAWS / kept)


class LockedDropout(nn.Module):
    """Dropout of ``[T, B, ...]`` with one mask ``[1, B, ...]`` for all steps (Gal & Ghahramani, 2016).

    >>> import torch
    >>> y = LockedDropout(0.5)(torch.ones(3, 1, 8))
    >>> bool((y[0] == y[2]).all())
    True
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_probability("dropout", p)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p:
            return x
        return x * F.dropout(x.new_ones(1, *x.shape[1:]), self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class SequenceDropout(nn.Module):
    """Dropout of packed sequences with one mask a sequence for all of its steps (Gal & Ghahramani, 2016).

    >>> import torch
    >>> from lrn.text.batches import RowPacking
    >>> packing = RowPacking.of([1, 2])  # packed: the second sequence, the first, the second again
    >>> y = SequenceDropout(0.5)(torch.ones(3, 8), packing)
    >>> bool((y[0] == y[2]).all())
    True
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_probability("dropout", p)

    def forward(self, x: Tensor, packing: RowPacking) -> Tensor:
        """Drop out packed steps ``[N, ...]``."""
        mask = self.mask(len(packing.order), x)
        return x if mask is None else locked(x, mask, packing.rows)

    def mask(self, sequences: int, like: Tensor) -> Tensor | None:
        """Draw masks of steps like these for so many sequences, ``[B, ...]``; None if nothing is dropped."""
        if not self.training or not self.p:
            return None
        return F.dropout(like.new_ones(sequences, *like.shape[1:]), self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def locked(x: Tensor, mask: Tensor | None, rows: Tensor, order: Tensor | None = None) -> Tensor:
    """Multiply packed steps by their sequences' masks; nothing as large as the steps is kept to go back.

    Args:
        x: ``[N, ...]``.
        mask: ``[B, ...]``; None multiplies by nothing.
        rows: ``[N]``, the sequence of each step.
        order: takes the steps in another order first, one that undoes itself and keeps every sequence's steps
            at its own places.
    """
    if mask is None:
        return x if order is None else x.index_select(0, order)
    return _Locked.apply(x, mask, rows, order)  # type: ignore[no-any-return, no-untyped-call]


class _Locked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, rows: Tensor, order: Tensor | None) -> Tensor:
        ctx.save_for_backward(mask, rows, order)
        kept = mask.index_select(0, rows)
        return kept.mul_(x if order is None else x.index_select(0, order))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        mask, rows, order = ctx.saved_tensors
        gradient = mask.index_select(0, rows).mul_(grads[0])
        return gradient if order is None else gradient.index_select(0, order), None, None, None


class RowDropout(nn.Module):
    """A look-up of word vectors in which whole words are dropped: all occurrences of a word together.

    >>> import torch
    >>> words, table = torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 4)
    >>> vectors = RowDropout(0.5)(words, table)
    >>> bool((vectors[0, 0] == vectors[1, 1]).all())
    True
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_probability("dropout", p)

    def forward(self, words: Tensor, table: Tensor) -> Tensor:
        vectors = F.embedding(words, table)
        if not self.training or not self.p:
            return vectors
        kept = F.dropout(table.new_ones(table.shape[0]), self.p)
        return vectors * kept[words].unsqueeze(-1)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class WordDropout(nn.Module):
    """Replaces some tokens' words by another one in training: by the unknown word, or by padding.

    Padding, number 0, stays what it is.

    >>> words = torch.tensor([[5, 7, 0]])
    >>> WordDropout(0.999, becomes=1)(words)
    tensor([[1, 1, 0]])
    """

    def __init__(self, p: float, becomes: int) -> None:
        super().__init__()
        self.p = check_probability("dropout", p)
        self.becomes = becomes

    def forward(self, words: Tensor) -> Tensor:
        if not self.training or not self.p:
            return words
        dropped = torch.rand(words.shape, device=words.device) < self.p
        return words.masked_fill(dropped & (words != 0), self.becomes)

    def extra_repr(self) -> str:
        return f"p={self.p}, becomes={self.becomes}"
