"""Which sequences go together, and how they lie in a batch."""

import random
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import randn
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lrn.text import batches
from lrn.text.batches import Batch, Packing, RowPacking, Tokens, by_length, by_tokens, in_buckets, padded

LENGTHS = [7 * n % 11 + 1 for n in range(24)]
SOME = np.array([n for n in range(24) if n % 4])


# What goes together -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "epoch", "expected"),
    [
        (1, 0, "16 5 2 13 21 / 12 1 23 9 20 / 10 18 7 4 15 / 17 6 14 3 / 22 0 11 19 8"),
        (1, 1, "0 11 22 19 8 / 6 17 14 3 / 23 12 1 20 9 / 10 7 18 15 4 / 5 16 13 2 21"),
        (2, 0, "5 16 13 2 21 / 10 7 18 4 15 / 1 12 23 20 9 / 11 0 22 19 8 / 6 17 3 14"),
    ],
)
def test_by_length_stays_what_it_is(seed, epoch, expected):
    """An interrupted training goes on in the same order, also after an update."""
    assert written(by_length(LENGTHS, 5, seed=seed, epoch=epoch)) == expected


@pytest.mark.parametrize(
    ("seed", "epoch", "bucket", "expected"),
    [
        (1, 0, 50, "9 1 23 15 / 2 13 5 19 / 14 3 17 6 / 7 18 21 10 / 22 11"),
        (1, 1, 50, "13 2 5 19 / 22 11 / 3 14 6 17 / 7 18 10 21 / 9 23 1 15"),
        (2, 0, 50, "13 2 5 19 / 14 3 17 6 / 22 11 / 7 18 10 21 / 9 1 23 15"),
        (1, 0, 2, "10 2 19 22 / 7 13 5 11 / 14 17 15 21 / 3 6 1 23 / 9 18"),
    ],
)
def test_in_buckets_stays_what_it_is(seed, epoch, bucket, expected, monkeypatch):
    monkeypatch.setattr(batches, "BUCKET", bucket)
    assert written(in_buckets(SOME, np.array(LENGTHS), 4, seed=seed, epoch=epoch)) == expected


def written(cut):
    return " / ".join(" ".join(str(number) for number in batch) for batch in cut)


def test_by_length_has_everything_once_and_of_like_length():
    draw = random.Random(1)
    lengths = [draw.randint(1, 50) for _ in range(333)]
    cut = by_length(lengths, 16, seed=1, epoch=0)
    assert sorted(n for batch in cut for n in batch) == list(range(333))
    assert all(max(lengths[n] for n in b) - min(lengths[n] for n in b) <= 6 for b in cut)
    assert by_length(lengths, 16, seed=1, epoch=0) == cut
    assert by_length(lengths, 16, seed=1, epoch=1) != cut
    assert by_length(lengths, 16, seed=2, epoch=0) != cut


def test_in_buckets_has_everything_once_and_of_like_length():
    draw = np.random.default_rng(1)
    lengths = draw.integers(1, 400, 1000)
    numbers = np.sort(draw.permutation(1000)[:900])
    cut = in_buckets(numbers, lengths, 16, seed=1, epoch=0)
    assert sorted(n for batch in cut for n in batch) == numbers.tolist()
    assert sorted(map(len, cut)) == [4] + [16] * 56
    spread = [np.ptp(lengths[batch]) for batch in cut]
    assert np.mean(spread) < 20
    assert max(spread) < 80
    starts = [lengths[batch].max() for batch in cut]
    assert starts not in (sorted(starts), sorted(starts, reverse=True))


def test_in_buckets_is_a_function_of_seed_and_epoch():
    lengths = np.arange(1, 101)

    def cut(**options):
        return [batch.tolist() for batch in in_buckets(np.arange(100), lengths % 9, 8, **options)]

    assert cut(seed=1, epoch=0) == cut(seed=1, epoch=0)
    assert cut(seed=1, epoch=0) != cut(seed=1, epoch=1)
    assert cut(seed=1, epoch=0) != cut(seed=2, epoch=0)


def test_no_batches_of_nothing():
    assert in_buckets(np.arange(0), np.arange(0), 8, seed=1, epoch=0) == []
    assert by_length([], 8, seed=1, epoch=0) == []


def test_padded():
    assert padded([[5], [1, 2, 3], [4, 4]]).tolist() == [[5, 0, 0], [1, 2, 3], [4, 4, 0]]
    assert padded([[1]]).dtype == torch.int64


# What goes to the device --------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs(Batch):
    host: ClassVar[tuple[str, ...]] = ("counts",)

    left: Tokens
    counts: Tensor
    right: Tensor
    name: str


def pairs():
    left = Tokens(
        torch.zeros(2, 2).long(), torch.zeros(2, 2).long(), torch.ones(1, 3).long(), Packing.of([3])
    )
    return Pairs(left, torch.tensor([1]), torch.ones(2), "some")


def test_a_batch_goes_to_a_device():
    """All of it, also what is a batch in it, but for what the host reads."""
    batch = pairs()
    moved = batch.to("meta")
    assert type(moved) is Pairs
    assert moved.counts is batch.counts
    assert moved.name == "some"
    assert moved.right.device.type == moved.left.words.device.type == "meta"
    packing = moved.left.character_packing
    on_host = [f.name for f in fields(packing) if getattr(packing, f.name).device.type == "cpu"]
    assert on_host == ["lengths", "batch_sizes"]
    assert batch.right.device.type == "cpu"


def test_how_a_batch_is_moved_and_pinned(monkeypatch):
    """Pinned and moved without waiting; what the host reads is left alone."""
    done = []
    batch = pairs()
    monkeypatch.setattr(Tensor, "to", lambda tensor, *how, **more: done.append((how, more)) or tensor)
    batch.to("cpu", non_blocking=True)
    assert done == [(("cpu",), {"non_blocking": True})] * 8
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: done.append(tensor) or tensor)
    done.clear()
    pinned = batch.pin_memory()
    assert len(done) == 8
    assert pinned.counts is batch.counts
    assert not any(tensor is batch.counts for tensor in done)


def test_a_batch_without_characters_to_pack():
    tokens = Tokens(torch.zeros(3), torch.zeros(3), torch.zeros(1, 2))
    assert tokens.to("meta").character_packing is None


@pytest.mark.parametrize("lengths", [[3, 9, 1, 9, 5], [4, 4, 4], [1], [1, 2, 3, 4]])
def test_packing_against_torch(lengths):
    packing = Packing.of(lengths)
    x = randn(len(lengths), max(lengths), 2, 3).requires_grad_()
    packed = packing.pack(x)
    expected = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    for ours, theirs in zip(packed, expected, strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(packing.packed(packed.data).data, expected.data)
    weights = randn(*expected.data.shape, seed=2)
    ours, theirs = (torch.autograd.grad((p.data * weights).sum(), x)[0] for p in (packed, expected))
    assert torch.equal(ours, theirs)

    steps = packed.data.detach().requires_grad_()
    back = packing.pad(steps)
    again, same_lengths = pad_packed_sequence(packing.packed(steps), batch_first=True)
    assert torch.equal(back, again)
    assert same_lengths.tolist() == packing.lengths.tolist() == lengths
    weights = randn(*back.shape, seed=3)
    ours, theirs = (torch.autograd.grad((p * weights).sum(), steps)[0] for p in (back, again))
    assert torch.equal(ours, theirs)
    assert torch.equal(packing.mask, (x != 0).all(-1).all(-1) & (back != 0).all(-1).all(-1))


def test_packing_in_another_order():
    """Any that has the longest first; what comes back does not depend on it."""
    packing = Packing.of([2, 1, 2], np.array([2, 0, 1]))
    x = torch.tensor([[1, 2], [3, 0], [4, 5]])
    assert packing.pack(x).data.tolist() == [4, 1, 3, 5, 2]
    assert packing.back.tolist() == [1, 2, 0]
    assert torch.equal(packing.pad(packing.pack(x).data), x)


@pytest.mark.parametrize("lengths", [[], [2, 0], [-1]])
def test_sequences_that_cannot_be_packed(lengths):
    with pytest.raises(ValueError, match="at least one step"):
        Packing.of(lengths)


@pytest.mark.accelerator
def test_on_another_device():
    """To and from packed form nothing is read back, and nothing of the host's is mixed in."""
    packing, x = Packing.of([3, 1, 2]), randn(3, 3, 4)
    with elsewhere() as move:
        moved, steps = move(packing), move(x).requires_grad_()
        packed = moved.pack(steps)
        back = moved.pad(packed.data)
        back.sum().backward()
    assert packed.data.shape == (6, 4)
    assert packed.batch_sizes is packing.batch_sizes
    assert back.shape == x.shape
    assert back.device == steps.grad.device == packed.sorted_indices.device == DEVICE


# Packings that know whose a step is ---------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[1], [3, 1, 4, 1, 5], [2, 2], [1, 7]])
def test_rows_of_a_packing(lengths):
    packing, plain = RowPacking.of(lengths), Packing.of(lengths)
    for name in ("lengths", "batch_sizes", "order", "back", "places", "mask"):
        assert torch.equal(getattr(packing, name), getattr(plain, name))
    names = [[(row, step) for step in range(length)] for row, length in enumerate(lengths)]
    numbers = padded([[100 * row + step for row, step in each] for each in names])
    packed = packing.pack(numbers).data
    assert packing.rows.tolist() == (packed // 100).tolist()
    assert packed[packing.by_row].tolist() == [100 * row + step for each in names for row, step in each]
    assert torch.equal(packed[packing.by_row][packing.from_row], packed)
    turned = packing.pad(packed[packing.flip])
    for row, length in enumerate(lengths):
        assert turned[row, :length].tolist() == numbers[row, :length].flip(0).tolist()
    assert torch.equal(packing.flip[packing.flip], torch.arange(len(packed)))


# By tokens ----------------------------------------------------------------------------------------


def test_batches_of_so_many_tokens():
    """Every sequence once, none of the batches too large, and little of them padding."""
    lengths = np.random.default_rng(1).integers(1, 40, 3000)
    cut = by_tokens(lengths, 200, seed=1, epoch=0)
    assert sorted(np.concatenate(cut).tolist()) == [*range(3000)]
    assert all(len(batch) * lengths[batch].max() <= 200 for batch in cut)
    padding = sum(len(batch) * lengths[batch].max() for batch in cut) / lengths.sum()
    assert padding < 1.1


def test_a_sequence_that_is_longer_than_a_batch():
    cut = by_tokens(np.array([500, 3, 2]), 100, seed=1, epoch=0)
    assert sorted(batch.tolist() for batch in cut) == [[0], [1, 2]]


def test_batches_of_tokens_are_drawn_anew():
    lengths = np.arange(1, 200)
    first, again = (by_tokens(lengths, 100, seed=1, epoch=0) for _ in range(2))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    for other in (by_tokens(lengths, 100, seed=2, epoch=0), by_tokens(lengths, 100, seed=1, epoch=1)):
        assert [batch.tolist() for batch in first] != [batch.tolist() for batch in other]
