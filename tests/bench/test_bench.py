"""The benchmark measures what it says; how fast things are is not tested here."""

import json
import time

import pytest
import torch

from lrn.bench import Settings, run, show, tables
from lrn.bench.peers import FLOOR, PEERS, SRU_PACKAGE, available
from lrn.bench.timing import alternate

pytest.importorskip("rich")


def test_a_shape_of_ones_own(tmp_path, capsys):
    """Ratios on the terminal, JSON and a picture in the folder."""
    result = run(Settings(shapes=((5, 2, 8),), seconds=0.05, out=tmp_path))
    written = json.loads((tmp_path / "bench.json").read_text())
    assert written == json.loads(json.dumps(result))
    for mode in ("training", "inference"):
        row = written[mode]["5,2,8"]
        assert {"lrn", "olrn", "sru", "atr", "nn.LSTM", "nn.GRU", FLOOR} <= set(row)
        for measured in row.values():
            assert 0 < measured["low"] <= measured["median"] <= measured["high"]
            assert measured["rounds"] >= 7
    assert written["machine"]["torch"] == torch.__version__
    said = capsys.readouterr().out
    assert "training: time relative to LRN" in said
    assert "5,2,8" in said
    assert (tmp_path / "bench.png").stat().st_size > 5_000
    assert not list(tmp_path.glob("*.part*"))


def test_alternation_takes_turns():
    order = []
    times = alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 0, least=4)
    assert times["a"].rounds == times["b"].rounds == 4
    assert sorted(order[4:6]) == ["a", "b"]  # after two warm-up calls each


def test_times_are_seconds():
    times = alternate({"nap": lambda: time.sleep(0.01)}, 0, least=3)
    assert 0.01 <= times["nap"].median < 1


@pytest.mark.parametrize("name", [name for name in PEERS if name != SRU_PACKAGE])
def test_every_peer_does_the_same_kind_of_work(name):
    output = PEERS[name](8)(torch.randn(5, 2, 8))
    assert output.shape == (5, 2, 24 if name == FLOOR else 8)


def test_a_missing_peer_is_a_note(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    names, notes = available(list(PEERS))
    assert SRU_PACKAGE not in names
    assert "pip install 'lrn[peers]'" in notes[0]


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


def test_peak_memory_counts_what_a_call_holds():
    x = torch.zeros(1, requires_grad=True)
    peak = tables.peak_bytes(lambda: torch.empty(1000) + torch.empty(1000), x)
    assert 8_000 <= peak < 20_000


def test_ratios_and_means():
    assert show.ratios({"lrn": {"median": 2.0}, "x": {"median": 5.0}}) == {"lrn": 1.0, "x": 2.5}
    assert show.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_further_tables_run():
    row = tables.streaming(8, 0.05)
    assert set(row) == {"lrn", "nn.LSTM", "nn.GRU"}
    row = tables.packed(0.05, batch=6, width=8)
    assert row["real_tokens"] < row["padded_tokens"]
    before = torch.get_num_threads()
    assert "1" in tables.threads((4, 2, 8), 0.05)
    assert torch.get_num_threads() == before
