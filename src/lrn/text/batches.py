"""Batches: which sequences go together, and the tensors that go to the device together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

BUCKET = 50  # batches whose sequences are sorted by length together


# What goes together -------------------------------------------------------------------------------


def by_length(lengths: Sequence[int], size: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Cut an epoch into batches: sequences sorted by length, the batches in random order; returns numbers.

    Sequences of one batch are of nearly equal length, so that little is padding.

    >>> sorted(sorted(batch) for batch in by_length([3, 9, 3, 9], 2, seed=1, epoch=0))
    [[0, 2], [1, 3]]
    """
    draw = np.random.default_rng([seed, epoch])
    noise = draw.random(len(lengths))
    order = sorted(range(len(lengths)), key=lambda n: (lengths[n], noise[n]))
    cut = [order[start : start + size] for start in range(0, len(order), size)]
    draw.shuffle(cut)
    return cut


def in_buckets(
    numbers: NDArray[np.int64], lengths: NDArray[np.int64], size: int, *, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Cut an epoch into batches: the sequences ``numbers`` shuffled, then sorted by length within buckets.

    A bucket is 50 batches long: less is padding than without sorting, and more is left to chance than when
    all are sorted. The batches come in random order.

    >>> cut = in_buckets(np.arange(5), np.array([9, 3, 9, 3, 1]), 2, seed=1, epoch=0)
    >>> sorted(sorted(batch.tolist()) for batch in cut)
    [[0, 2], [1, 3], [4]]
    """
    draw = np.random.default_rng([seed, epoch])
    order = numbers[draw.permutation(len(numbers))]
    cut = []
    for start in range(0, len(order), BUCKET * size):
        bucket = order[start : start + BUCKET * size]
        bucket = bucket[np.argsort(-lengths[bucket], kind="stable")]
        cut += [bucket[place : place + size] for place in range(0, len(bucket), size)]
    return [cut[place] for place in draw.permutation(len(cut))]


def by_tokens(lengths: NDArray[np.int64], tokens: int, *, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Cut an epoch into batches of at most so many ``tokens``: sequences times the length of the longest.

    The sequences are shuffled, then sorted by length within buckets of about 50 batches, and the batches come
    in random order. A sequence that is longer than all that is a batch of its own.

    >>> cut = by_tokens(np.array([9, 3, 9, 3, 1]), 10, seed=1, epoch=0)
    >>> sorted(sorted(batch.tolist()) for batch in cut)
    [[0], [1, 3, 4], [2]]
    """
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(lengths))
    size = max(1, int(BUCKET * tokens / max(1.0, float(lengths.mean()))))  # sequences
    cut = []
    for start in range(0, len(order), size):
        bucket = order[start : start + size]
        bucket = bucket[np.argsort(-lengths[bucket], kind="stable")]
        place = 0
        while place < len(bucket):
            count = max(1, tokens // max(1, int(lengths[bucket[place]])))
            cut.append(bucket[place : place + count])
            place += count
    return [cut[place] for place in draw.permutation(len(cut))]


def padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Lay sequences one below the other, int64 ``[B, T]``, with zeros behind the shorter ones.

    >>> padded([[1, 2, 3], [4]])
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    width = max(map(len, sequences))
    rows = np.zeros((len(sequences), width), dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


# What goes to the device --------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """The base class of every task's batch: tensors that go to the device together.

    Fields named in ``host`` stay where they are: what only describes shapes is read by the host. A field that
    is a batch itself goes along.
    """

    host: ClassVar[tuple[str, ...]] = ()

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """Return the same batch on a device."""
        return self._changed(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """Return the same batch in pages from which a copy to the device need not be waited for."""
        return self._changed(Tensor.pin_memory)

    def _changed(self, change: Callable[[Tensor], Tensor]) -> Self:
        changed: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Batch):
                changed[field.name] = value._changed(change)
            elif isinstance(value, Tensor) and field.name not in self.host:
                changed[field.name] = change(value)
        return replace(self, **changed)


@dataclass(frozen=True)
class Packing(Batch):
    """The way in which B sequences of different lengths are packed: first steps of all, then second ones, …

    Everything is worked out on the host when the batch is made, so that going to and from packed form neither
    sorts nor reads back what is on the device. N is the sum of all lengths, T the greatest.

    >>> packing = Packing.of([1, 3])
    >>> packed = packing.pack(torch.tensor([[1, 0, 0], [2, 3, 4]]))
    >>> packed.data, packed.batch_sizes
    (tensor([2, 1, 3, 4]), tensor([2, 1, 1]))
    >>> packing.pad(packed.data)
    tensor([[1, 0, 0],
            [2, 3, 4]])
    """

    host: ClassVar[tuple[str, ...]] = ("lengths", "batch_sizes")

    lengths: Tensor  # [B]
    batch_sizes: Tensor  # [T] how many sequences have a first, second, … step
    order: Tensor  # [B] the sequences, longest first
    back: Tensor  # [B] the place of each sequence in that order
    places: Tensor  # [N] of the packed steps in the padded form, among its B * T
    mask: Tensor  # [B, T] True where the padded form has a step

    @classmethod
    def of(cls, lengths: Sequence[int] | NDArray[Any], order: NDArray[np.int64] | None = None) -> Packing:
        """Work out the packing of sequences of these lengths.

        ``order`` has the longest sequences first; by default equally long ones stay in the order they are in.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        if not sizes.size or sizes.min() < 1:
            raise ValueError(f"a batch is of sequences of at least one step, got lengths {sizes.tolist()}")
        if order is None:
            order = np.argsort(-sizes, kind="stable")
        steps = np.arange(sizes.max())
        there = steps[:, None] < sizes[order]  # [T, B], longest first
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        places = (order * len(steps) + steps[:, None])[there]  # [N]
        arrays = (sizes, there.sum(1), order, back, places, steps < sizes[:, None])
        return cls(*map(torch.from_numpy, arrays))

    def one_by_one(self, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Where the packed steps of one sequence after the other are, ``[N]``, and where each begins there,
        ``[B + 1]``; the sequences in the ``order`` given, else as they came.

        >>> packing = Packing.of([1, 3])
        >>> packing.one_by_one()
        (tensor([1, 0, 2, 3]), tensor([0, 1, 4]))
        """
        back, lengths = self.back.numpy(), self.lengths.numpy()
        if order is not None:
            back, lengths = back[order.numpy()], lengths[order.numpy()]
        starts = np.cumsum([0, *lengths])
        steps = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)  # of each in its sequence
        places = self._before[steps] + np.repeat(back, lengths)
        return torch.from_numpy(places), torch.from_numpy(starts)

    def backwards(self) -> Tensor:
        """Where the packed steps are when every sequence is read from its end, ``[N]``.

        >>> Packing.of([1, 3]).backwards()
        tensor([3, 1, 2, 0])
        """
        sizes = self.batch_sizes.numpy()
        steps = np.repeat(np.arange(len(sizes)), sizes)  # [N]
        rows = np.arange(len(steps)) - self._before[steps]
        last = self.lengths.numpy()[self.order.numpy()][rows] - 1
        return torch.from_numpy(self._before[last - steps] + rows)

    @property
    def _before(self) -> NDArray[np.int64]:
        """How many steps are packed before the first, second, … ones."""
        found: NDArray[np.int64] = np.cumsum([0, *self.batch_sizes[:-1].tolist()])
        return found

    def packed(self, steps: Tensor) -> PackedSequence:
        """Wrap steps that are in packed order already, ``[N, ...]``, as recurrent layers take them."""
        return PackedSequence(steps, self.batch_sizes, self.order, self.back)

    def pack(self, steps: Tensor) -> PackedSequence:
        """Pack padded steps, ``[B, T, ...]`` to ``[N, ...]``."""
        return self.packed(steps.flatten(0, 1).index_select(0, self.places))

    def pad(self, steps: Tensor) -> Tensor:
        """Pad packed steps, ``[N, ...]`` to ``[B, T, ...]``, with zeros where there is none."""
        empty = steps.new_zeros(self.mask.numel(), *steps.shape[1:])  # [B * T, ...]
        return empty.index_copy_(0, self.places, steps).view(*self.mask.shape, *steps.shape[1:])


@dataclass(frozen=True)
class RowPacking(Packing):
    """A packing that also knows of each packed step whose it is, and the way to other orders of the steps.

    >>> packing = RowPacking.of([1, 3])
    >>> steps = packing.pack(torch.tensor([[1, 0, 0], [2, 3, 4]])).data
    >>> steps[packing.flip], steps[packing.by_row], steps[packing.by_row][packing.from_row].equal(steps)
    (tensor([4, 1, 3, 2]), tensor([1, 2, 3, 4]), True)
    """

    rows: Tensor  # [N] the sequence of each packed step
    flip: Tensor  # [N] the places that show every sequence from its end to its beginning
    by_row: Tensor  # [N] the places that show one whole sequence after the other
    from_row: Tensor  # [N] the way back from there

    @classmethod
    def of(cls, lengths: Sequence[int] | NDArray[Any], order: NDArray[np.int64] | None = None) -> RowPacking:
        """Work out the packing of sequences of these lengths; ``order`` as in :meth:`Packing.of`."""
        packing = Packing.of(lengths, order)
        rows = packing.places // packing.mask.shape[1]
        by_row, _ = packing.one_by_one()
        from_row = torch.empty_like(by_row)
        from_row[by_row] = torch.arange(len(by_row))
        known = {field.name: getattr(packing, field.name) for field in fields(packing)}
        return cls(**known, rows=rows, flip=packing.backwards(), by_row=by_row, from_row=from_row)


@dataclass(frozen=True)
class Tokens(Batch):
    """The tokens of a batch by word and by spelling, padded ``[B, T]`` or packed ``[N]``.

    Of W different spellings each is there once: what characters say does not depend on where a word stands.
    """

    words: Tensor  # [B, T] or [N] numbers of words
    spellings: Tensor  # the same shape: which of the W spellings a token has
    characters: Tensor  # [W, C] numbers of characters, 0 after the last
    character_packing: Packing | None = None  # of the W spellings, for a recurrent layer that reads them
