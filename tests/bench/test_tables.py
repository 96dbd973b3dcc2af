"""What each table measures, on small problems."""

import pytest
import torch

from lrn.bench import tables


def test_sentence_lengths_are_like_snli():
    lengths = tables.snli_lengths(2000)
    assert lengths.min() >= 5
    assert lengths.max() <= 60
    assert 13 < lengths.float().mean() < 15
    assert torch.equal(lengths, tables.snli_lengths(2000))


def test_saved_numbers_of_lrn():
    """The projection and h: four numbers a channel."""
    numbers = tables.saved_numbers(steps=64, batch=2, width=32)
    assert numbers["lrn"] <= 4 * 32 + 64
    assert numbers["lrn, Python loop"] > numbers["lrn"]


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="oneDNN runs nn.LSTM")
def test_saved_numbers_count_what_is_not_kept_as_numbers():
    """Of LSTM at least four gates and two states for every channel, which oneDNN keeps as bytes."""
    assert tables.saved_numbers(steps=64, batch=2, width=32)["nn.LSTM"] >= 6 * 32


def test_peak_memory_counts_what_a_call_holds():
    x = torch.zeros(1, requires_grad=True)
    peak = tables.peak_bytes(lambda: torch.empty(1000) + torch.empty(1000), x)
    assert 8_000 <= peak < 20_000


def test_streaming_hands_the_state_on():
    seen = []

    def step(state):
        seen.append(state)
        return None, (state or 0) + 1

    call = tables._stream(step)
    for _ in range(3):
        call()
    assert seen == [None, 1, 2]
    assert set(tables.streaming(8, 0.05)) == {"lrn", "nn.LSTM", "nn.GRU"}


def test_packed():
    row = tables.packed(0.05, batch=6, width=8)
    assert row.real_tokens < row.padded_tokens
    assert row.share == row.real_tokens / row.padded_tokens
    assert row.ratio == row.packed.median / row.padded.median


def test_threads_are_given_back():
    before = torch.get_num_threads()
    assert "1" in tables.threads((4, 2, 8), 0.05)
    assert torch.get_num_threads() == before


def test_import_takes_time():
    taken = tables.import_seconds(rounds=1)
    assert taken.torch > 0
    assert taken.lrn > 0
