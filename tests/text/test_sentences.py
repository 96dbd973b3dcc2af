"""Many sentences as numbers."""

import numpy as np
import pytest

from lrn.text.batches import Packing
from lrn.text.sentences import Sentences, pack_types


def test_each_sentence_comes_back():
    rows = [[3, 1], [], [2, 2, 7]]
    sentences = Sentences.of(rows)
    assert [sentences[number].tolist() for number in range(3)] == rows
    assert sentences.lengths.tolist() == [2, 0, 3]
    assert sentences.tokens.dtype == np.int32


def test_none_at_all():
    assert Sentences.of([]).lengths.tolist() == []


@pytest.mark.parametrize("lengths", [[1], [2, 4, 1, 4]])
def test_packed_as_the_packing_says(lengths):
    rows = [np.arange(length, dtype=np.int32) + 10 * number for number, length in enumerate(lengths)]
    packing = Packing.of(lengths)
    padded = np.zeros(packing.mask.shape, np.int32)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    assert pack_types(rows, packing).tolist() == padded.reshape(-1)[packing.places.numpy()].tolist()
