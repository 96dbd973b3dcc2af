"""Words that have a vector, and the vectors that a run keeps."""

import pytest
import torch

from lrn.text.spelt import SpeltWords, load_given, read_given, save_given
from lrn.text.store import Folder


def quiet(share):
    pass


def codes(words=("dog", "Paris")):
    return SpeltWords(*SpeltWords.vocabularies(["dog", "dig", "xylo"], [5, 4, 1], words))


def test_words_go_by_their_own_form_or_their_lower_case():
    known = codes()
    assert [known.number(word) for word in ("dog", "Dog", "Paris", "paris", "cat")] == [3, 3, 4, 1, 1]


def test_rare_characters_are_unknown():
    """Those seen three times or less."""
    assert codes().characters.words == ("<pad>", "<unk>", "<eos>", "d", "g", "i", "o")


def test_given_vectors(tmp_path):
    (tmp_path / "vectors.txt").write_text("dog 1 2\nunneeded 3 4\nparis 5 6\n")
    words, vectors = read_given(str(tmp_path / "vectors.txt"), ["dog", "Paris", "<unk>"], quiet)
    assert words == ["dog", "paris"]
    save_given(tmp_path, vectors)
    again = load_given(Folder(tmp_path), codes(words))
    assert torch.equal(again, torch.tensor([[1.0, 2.0], [5.0, 6.0]]))
    with pytest.raises(ValueError, match="does not hold the vectors of 1 words"):
        load_given(Folder(tmp_path), codes(["dog"]))
