"""Languages as numbers and back."""

import json

import pytest

from lrn.tasks.mt.codes import Codes
from lrn.text.store import Folder
from lrn.text.vocabulary import SPECIALS

pytest.importorskip("sacremoses")

ENGLISH = ["The lamp costs $5.", "The lamps cost $15.", "A lamp."] * 4
GERMAN = ["Die Lampe kostet 5 Dollar.", "Die Lampen kosten 15 Dollar.", "Eine Lampe."] * 4


def learn(text="raw", merges=40, threshold=1, lines=(ENGLISH, GERMAN)):
    return Codes.learn(lines, ("en", "de"), text, merges, threshold)


def test_raw_text_there_and_back():
    codes = learn()
    for side, lines in ((codes.source, ENGLISH), (codes.target, GERMAN)):
        for line in lines:
            numbers = side.encode(line)
            assert min(numbers) >= len(SPECIALS)
            assert side.plain(side.words(numbers)) == line == side.plain_line(f" {line} ")
            assert side.words(numbers) == side.words_of_line(line)


def test_merges_are_common_and_vocabularies_are_not():
    codes = learn()
    assert codes.source.subwords is codes.target.subwords
    assert "lam@@" in codes.source.vocabulary or "lamp" in codes.source.vocabulary
    assert "Dollar" in codes.target.vocabulary
    assert "Dollar" not in codes.source.vocabulary
    for side in (codes.source, codes.target):
        assert side.vocabulary.words[:3] == SPECIALS


def test_the_most_frequent_come_first():
    words = learn(merges=1000).target.vocabulary.words
    assert words[3:5] == (".", "Die")


def test_rare_pieces_are_cut_further():
    """What German has often enough may be too rare in English."""
    english, german = ["aab"] + ["xy"] * 9, ["aab"] * 9
    whole, cut = (learn("tokenised", 10, threshold, (english, german)) for threshold in (1, 3))
    assert whole.source.pieces("aab") == ["aab"]
    assert cut.source.pieces("aab") == ["a@@", "a@@", "b"]
    assert cut.target.pieces("aab") == ["aab"]
    assert "aab" not in cut.source.vocabulary


def test_letters_that_are_unknown():
    side = learn().source
    assert side.encode("☃") == [SPECIALS.index("<unk>")]
    assert side.encode("") == side.encode("  ") == []


def test_tokenised_text():
    lines = (["the lamp &apos;s ( old )"] * 3, ["die Lampe ist ( alt )"] * 3)
    side = learn("tokenised", lines=lines).source
    assert side.words_of_line(lines[0][0]) == ["the", "lamp", "&apos;s", "(", "old", ")"]
    assert side.plain(side.words(side.encode(lines[0][0]))) == "the lamp's (old)"


def test_segmented_text_is_taken_as_it_is():
    lines = (["the l@@ amp ."] * 3 + ["once"], ["die L@@ ampe ."] * 3)
    codes = learn("segmented", threshold=2, lines=lines)
    assert codes.source.subwords is None
    assert set(codes.source.vocabulary.words) == {*SPECIALS, "the", "l@@", "amp", "."}
    assert codes.source.pieces("the once amp") == ["the", "<unk>", "amp"]
    assert codes.target.words(codes.target.encode("die L@@ ampe .")) == ["die", "Lampe", "."]
    assert codes.target.plain_line("die L@@ ampe .") == "die Lampe."


@pytest.mark.parametrize("text", ["raw", "segmented"])
def test_kept_in_a_folder(text, tmp_path):
    codes = learn(text)
    codes.save(tmp_path)
    assert (tmp_path / "bpe.json").exists() == (text == "raw")
    again = Codes.load(Folder(tmp_path), ("en", "de"), text)
    for line in (*ENGLISH, "Lamps cost $51."):
        assert again.source.encode(line) == codes.source.encode(line)
    assert again.target.vocabulary == codes.target.vocabulary


def test_a_damaged_vocabulary(tmp_path):
    learn().save(tmp_path)
    (tmp_path / "target.json").write_text(json.dumps({"words": ["a", "b"]}))
    with pytest.raises(ValueError, match=r"target.json does not begin with <pad>, <unk>, <eos>"):
        Codes.load(Folder(tmp_path), ("en", "de"), "raw")
