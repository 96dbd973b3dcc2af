"""Which characters count, and the table that spells every word once."""

import numpy as np
import pytest
import torch

from lrn.text.spelling import SpellingTable, frequent_characters
from lrn.text.vocabulary import Vocabulary

CHARACTERS = Vocabulary(["<pad>", "<unk>", "a", "b", "c"])
TYPES = ["ab", "cabbage", "b", "é"]


def table(longest=5):
    return SpellingTable(TYPES, number, CHARACTERS, longest)


def number(word):
    return {"ab": 7, "b": 8}.get(word, 1)


def test_frequent_characters():
    types, counts = ["abc", "aab", "zzzz"], [1, 2, 1]
    assert frequent_characters(types, counts, above=0, longest=9) == ["a", "b", "c", "z"]
    assert frequent_characters(types, counts, above=3, longest=9) == ["a", "z"]
    assert frequent_characters(types, counts, above=2, longest=2) == ["a"]  # b stands third in aab
    assert frequent_characters([], [], above=0, longest=9) == []


def test_table():
    found = table()
    assert found.words.tolist() == [7, 1, 8, 1]
    assert found.characters.tolist() == [[2, 3, 0, 0, 0], [4, 2, 3, 3, 2], [3, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


@pytest.mark.parametrize("types", [[2], [0, 2, 0], [1, 1, 3, 0], [[2, 0], [1, 2]]])
def test_tokens(types):
    types = np.array(types)
    found = table().tokens(types)
    assert found.words.tolist() == table().words[types].tolist()
    assert found.words.shape == found.spellings.shape == types.shape
    assert len(found.characters) == len(set(types.ravel().tolist()))  # each is spelt once
    width = found.characters.shape[1]
    spelt = found.characters[found.spellings]
    assert torch.equal(spelt, torch.from_numpy(table().characters[types].astype(np.int64))[..., :width])
    assert not table().characters[types][..., width:].any()
    assert all(tensor.dtype == torch.int64 for tensor in (found.words, found.spellings, found.characters))


def test_a_place_behind_the_last_character():
    """As long as there is one."""
    assert table().tokens(np.array([2])).characters.tolist() == [[3, 0]]
    assert table().tokens(np.array([0, 2])).characters.shape == (2, 3)
    assert table().tokens(np.array([1])).characters.shape == (1, 5)


def test_more_characters_than_two_bytes_count():
    many = Vocabulary([chr(n) for n in range(0x10000, 0x20001)])
    found = SpellingTable([chr(0x20000)], lambda word: 0, many, 1)
    assert found.characters.tolist() == [[0x10000]]
