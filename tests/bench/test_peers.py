"""The contestants do the same kind of work; one that is missing is a note."""

import pytest
import torch

from lrn.bench.peers import FLOOR, PEERS, SRU_PACKAGE, available


@pytest.mark.parametrize("name", [name for name in PEERS if name != SRU_PACKAGE])
def test_every_peer_does_the_same_kind_of_work(name):
    output = PEERS[name](8)(torch.randn(5, 2, 8))
    assert output.shape == (5, 2, 24 if name == FLOOR else 8)


def test_a_missing_peer_is_a_note(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    names, notes = available(list(PEERS))
    assert SRU_PACKAGE not in names
    assert "pip install 'lrn-torch[peers]'" in notes[0]
