"""Byte-pair encoding: what is learnt, cut, kept and put together again."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrn.text.subwords import Subwords, is_cut, joined

pytest.importorskip("tokenizers")

COUNTS = Counter({"low": 5, "lower": 2, "newest": 6, "widest": 3})
LETTERS = "lowernstid"


@pytest.fixture(scope="module")
def subwords():
    return Subwords.learn(COUNTS, 8)


def test_the_first_merges():
    """The most frequent pairs, at the ends of words and elsewhere: by hand."""
    assert len(Subwords.learn(COUNTS, 3)) == 3
    assert Subwords.learn(COUNTS, 1).cut("newest") == ("n@@", "e@@", "w@@", "es@@", "t")
    assert Subwords.learn(COUNTS, 2).cut("newest") == ("n@@", "e@@", "w@@", "est")
    assert Subwords.learn(COUNTS, 0).cut("low") == ("l@@", "o@@", "w")


def test_no_more_merges_than_there_are():
    learnt = Subwords.learn(COUNTS, 1000)
    assert len(learnt) < 1000
    assert learnt.cut("newest") == ("newest",)


@given(st.lists(st.text(LETTERS, min_size=1, max_size=9), max_size=6))
def test_pieces_make_the_words_again(words):
    subwords = Subwords.learn(COUNTS, 8)
    pieces = [piece for word in words for piece in subwords.cut(word) if piece != "<unk>"]
    if all("<unk>" not in subwords.cut(word) for word in words):
        assert joined(pieces) == words


def test_a_letter_that_training_did_not_have(subwords):
    assert subwords.cut("l☃w") == ("l@@", "<unk>", "w")


def test_pieces_that_are_not_known(subwords):
    """They fall into those that they were joined of, down to letters."""
    assert len(subwords.cut("newest")) < 6
    cut = subwords.cut("newest", known=set())
    assert cut == ("n@@", "e@@", "w@@", "e@@", "s@@", "t")
    assert subwords.cut("newest", known={"est"})[-1] == "est"
    assert joined(subwords.cut("newest", known={"est"})) == ["newest"]


def test_kept_in_a_file(subwords, tmp_path):
    subwords.save(tmp_path / "bpe.json")
    again = Subwords.read((tmp_path / "bpe.json").read_text(), "bpe.json")
    for word in ("lowest", "widen", "slow", "newer"):
        assert again.cut(word) == subwords.cut(word)
        assert again.cut(word, {"es@@"}) == subwords.cut(word, {"es@@"})


def bpe(vocabulary, merges=(), kind="BPE"):
    return json.dumps({"model": {"type": kind, "vocab": vocabulary, "merges": merges}})


WORDS = {"<unk>": 0, "a": 1, "b": 2, "ab": 3}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not JSON"),
        ("no json", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "expected"),
        ("{}", "expected"),
        (bpe(WORDS, kind="Unigram"), "expected"),
        (bpe([]), "lacks"),
        (bpe(WORDS, {}), "lacks"),
        (bpe({"<unk>": 0, "a": 2}), "numbered from 0"),
        (bpe({"<unk>": 0, "a": 10**30}), "numbered from 0"),
        (bpe({"<unk>": 0, "a": "1"}), "numbered from 0"),
        (bpe({"a": 0}), "no <unk>"),
        (bpe(WORDS, ["a b"]), "'a b' is no pair"),
        (bpe(WORDS, [["a", "b", "c"]]), "is no pair"),
        (bpe(WORDS, [["a", 1]]), "is no pair"),
        (bpe(WORDS, [["a", "c"]]), "cannot be joined"),
        (bpe(WORDS, [["b", "a"]]), "cannot be joined"),
        (bpe(WORDS | {"": 4}, [["a", ""]]), "one is empty"),
    ],
)
def test_a_file_that_is_none(content, says):
    with pytest.raises(ValueError, match=f"^bpe.json holds no merges: .*{says}"):
        Subwords.read(content, "bpe.json")


def test_a_file_that_says_more_than_it_should(subwords, tmp_path):
    """Only pieces and merges count: no pattern of somebody else's is run."""
    subwords.save(tmp_path / "bpe.json")
    content = json.loads((tmp_path / "bpe.json").read_text())
    content["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Removed"}
    content["model"]["dropout"] = 1.0
    assert Subwords.read(json.dumps(content), "bpe.json").cut("newest") == subwords.cut("newest")


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([], []),
        (["a"], ["a"]),
        (["a@@", "b"], ["ab"]),
        (["a@@"], ["a"]),
        (["a@@", "b@@", "c", "d"], ["abc", "d"]),
    ],
)
def test_joined(pieces, words):
    assert joined(pieces) == words


def test_text_that_is_cut_already():
    assert is_cut(["nothing here", "a g@@ lass"])
    assert not is_cut(["mail a@@b.org", "two @@ alone", "the end@@"])
