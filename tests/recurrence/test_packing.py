"""Which batches are packed, and where their tokens are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence

from lrn.recurrence import Rows, packing
from lrn.recurrence.packing import Packing

lists = st.lists(st.integers(0, 7), min_size=1, max_size=6).filter(any)


@given(lengths=lists, extra=st.integers(0, 2), batch_first=st.booleans())
def test_packs_as_torch_does(lengths, extra, batch_first):
    """Tokens, sizes and order are those of a PackedSequence of the rows that have any."""
    steps = max(lengths) + extra
    shape = (len(lengths), steps) if batch_first else (steps, len(lengths))
    x = torch.arange(len(lengths) * steps).view(shape)
    found = Packing.of(Rows(len(lengths), batch_first, host_lengths=lengths), steps)
    full = [b for b, length in enumerate(lengths) if length]
    rows = x[full] if batch_first else x[:, full]
    known = pack_padded_sequence(rows, torch.tensor(lengths)[full], batch_first, enforce_sorted=False)
    assert found.sizes.tolist() == known.batch_sizes.tolist()
    steps_of = (part.split(found.sizes.tolist()) for part in (x.flatten()[found.places], known.data))
    for ours, theirs in zip(*steps_of, strict=True):
        assert sorted(ours.tolist()) == sorted(theirs.tolist())
    ordered = [lengths[b] for b in found.order.tolist()]
    assert ordered == sorted((n for n in lengths if n), reverse=True)


@given(lengths=lists, batch_first=st.booleans())
def test_there_and_back(lengths, batch_first):
    """What is done to a token is found where the token was; padding is zero."""
    steps = max(lengths)
    shape = (len(lengths), steps) if batch_first else (steps, len(lengths))
    x, state = torch.rand(*shape, 3) + 1, torch.rand(1, 1, len(lengths), 3)
    found = Packing.of(Rows(len(lengths), batch_first, host_lengths=lengths), steps)
    output, final = found.run(lambda x, state, rows: (2 * x, state + 1), x, state)
    time, size = torch.arange(steps), torch.tensor(lengths)
    real = time < size[:, None] if batch_first else time[:, None] < size
    assert torch.equal(output, 2 * x * real[..., None])
    assert torch.equal(final, state + (size > 0)[:, None])


@pytest.mark.parametrize(
    ("steps", "lengths", "expected"),
    [
        (64, [64] * 16 + [8] * 48, True),
        (64, [64] * 60 + [8] * 4, False),  # little to save
        (8, [8] * 2 + [1] * 6, False),  # too small for it to matter
        (64, [0] * 64, False),  # nothing to run
        (64, None, False),
    ],
)
def test_pays(steps, lengths, expected):
    batch = len(lengths or [0] * 64)
    x = torch.zeros(steps, batch, 2)
    assert packing.pays(x, Rows(batch, host_lengths=lengths)) is expected


def test_without_a_gradient_memory_counts():
    """Training keeps every token's projection in any case; inference would not."""
    x = torch.zeros(40_000, 2, 1)
    rows = Rows(2, host_lengths=[40_000, 10])
    assert packing.pays(x, rows)
    with torch.no_grad():
        assert not packing.pays(x, rows)
        assert packing.pays(x[:30_000], Rows(2, host_lengths=[30_000, 10]))


def test_not_where_torch_has_plans_of_its_own():
    """Transforms, autocast and devices other than the host's see the batch as it is."""
    rows = Rows(64, host_lengths=[64] * 16 + [8] * 48)
    x = torch.zeros(64, 64, 2)
    assert packing.pays(x, rows)
    with torch.autocast("cpu", torch.bfloat16):
        assert not packing.pays(x, rows)
    assert not packing.pays(x.to("meta"), rows)
    assert torch.func.vmap(lambda x: x * packing.pays(x, rows))(x[None]).eq(0).all()
