"""The benchmark measures what it says; how fast things are is not tested here."""

import json

import pytest
import torch

from lrn.bench import Settings, run
from lrn.bench.peers import FLOOR
from lrn.bench.results import Bench
from lrn.bench.run import _further, _layers, find, machine

pytest.importorskip("rich")


def test_a_shape_of_ones_own(tmp_path, capsys):
    """Ratios on the terminal, JSON and a picture in the folder."""
    result = run(Settings(shapes=((5, 2, 8),), seconds=0.05, out=tmp_path))
    assert Bench.read(tmp_path / "bench.json") == result
    for rows in (result.training, result.inference):
        assert list(rows) == ["5,2,8"]
        times = rows["5,2,8"]
        assert {"lrn", "olrn", "sru", "atr", "nn.LSTM", "nn.GRU", FLOOR} <= set(times)
        for measured in times.values():
            assert 0 < measured.low <= measured.median <= measured.high
            assert measured.rounds >= 7
    assert result.streaming == {}
    said = capsys.readouterr().out
    assert "training: time relative to LRN" in said
    assert "5,2,8" in said
    assert (tmp_path / "bench.png").stat().st_size > 5_000
    assert not list(tmp_path.glob("*.part*"))


def test_the_machine_is_this_one():
    assert machine().torch == torch.__version__
    assert machine().threads == torch.get_num_threads()
    assert "torch" in machine().engines


def test_every_table_has_its_job(monkeypatch):
    """What a job measures lands in the table that it is named after."""
    for name in ("layer", "streaming", "packed", "threads", "long_sequences", "saved_numbers"):
        monkeypatch.setattr(f"lrn.bench.tables.{name}", lambda *args, name=name: name)
    monkeypatch.setattr("lrn.bench.tables.import_seconds", lambda: "import_seconds")
    result = Bench(machine(), 1)
    jobs = [*_layers(result, ["lrn"], Settings(shapes=((2, 1, 4),)), find("cpu")), *_further(result, 1.0)]
    for _, measure in jobs:
        measure()
    assert result.training == result.inference == {"2,1,4": "layer"}
    assert list(result.streaming.values()) == ["streaming"]
    assert list(result.packed.values()) == ["packed"]
    assert result.threads == {"32,128,300": "threads", "400,32,64": "threads"}
    assert list(result.long.values()) == ["long_sequences"]
    assert list(result.saved.values()) == ["saved_numbers"]
    assert result.import_seconds == "import_seconds"


def test_what_was_measured_is_written_at_once(tmp_path, monkeypatch):
    """A benchmark that is stopped leaves the tables that it had."""

    def stop(names, shape, mode, seconds, device):
        if mode == "inference":
            raise KeyboardInterrupt
        return {}

    monkeypatch.setattr("lrn.bench.tables.layer", stop)
    with pytest.raises(KeyboardInterrupt):
        run(Settings(shapes=((5, 2, 8),), out=tmp_path))
    written = json.loads((tmp_path / "bench.json").read_text())
    assert written["training"] == {"5,2,8": {}}
    assert written["inference"] == {}
