"""Sentences in one array, and packed."""

import numpy as np
import pytest

from lrn.text.batches import Packing
from lrn.text.sentences import Sentences, packed_rows

ROWS = [[5, 6], [], [7, 8, 9], [4]]


def test_sentences():
    sentences = Sentences.of(ROWS)
    assert len(sentences) == 4
    assert [sentences[n].tolist() for n in range(4)] == ROWS
    assert sentences.lengths.tolist() == [2, 0, 3, 1]
    assert len(Sentences.of([])) == 0


def test_some_of_them():
    some = Sentences.of(ROWS).where(np.array([True, True, False, True]))
    assert [some[n].tolist() for n in range(len(some))] == [[5, 6], [], [4]]
    assert len(Sentences.of(ROWS).where(np.zeros(4, bool))) == 0


def test_packed():
    rows = [np.array(row) for row in ROWS if row]
    packing = Packing.of([len(row) for row in rows])
    assert packed_rows(rows, packing).tolist() == [7, 5, 4, 8, 6, 9]


@pytest.mark.parametrize("order", [None, [2, 0, 1]])
def test_one_by_one(order):
    import torch

    rows = [np.array(row) for row in ROWS if row]
    packing = Packing.of([len(row) for row in rows])
    steps = torch.from_numpy(packed_rows(rows, packing))
    places, starts = packing.one_by_one(None if order is None else torch.tensor(order))
    found = steps[places].split(starts.diff().tolist())
    assert [row.tolist() for row in found] == [rows[n].tolist() for n in order or range(3)]


def test_backwards():
    import torch

    rows = [np.array(row) for row in ROWS if row]
    packing = Packing.of([len(row) for row in rows])
    steps = torch.from_numpy(packed_rows(rows, packing))
    turned = steps[packing.backwards()]
    expected = packed_rows([row[::-1] for row in rows], packing)
    assert turned.tolist() == expected.tolist()
    assert torch.equal(turned[packing.backwards()], steps)
