"""Words become numbers and come back; a file is whole or refused."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrn.text.vocabulary import Vocabulary


def test_order_of_first_appearance():
    assert Vocabulary.of([["b", "a", "b"], ["c", "a"]]).words == ("b", "a", "c")


def test_streams_may_be_generators():
    assert Vocabulary.of(iter(line.split()) for line in ["b a", "c"]).words == ("b", "a", "c")


def test_rare_words_make_room_for_unknown():
    vocabulary = Vocabulary.of([["a", "b", "a", "c", "c", "c"]], min_count=2)
    assert vocabulary.words == ("<unk>", "a", "c")
    assert vocabulary.encode(["c", "b", "never seen"]) == [2, 0, 0]


def test_unknown_in_the_text_keeps_its_place():
    assert Vocabulary.of([["a", "<unk>", "a", "b"]], min_count=2).words == ("a", "<unk>")


def test_unknown_word_without_unknown_mark():
    with pytest.raises(ValueError, match=r"'dog' is not in the vocabulary of 2 words, which has no <unk>"):
        Vocabulary(["a", "cat"]).encode(["a", "dog"])


@given(st.lists(st.lists(st.text())))
def test_there_and_back(streams):
    vocabulary = Vocabulary.of(streams)
    for stream in streams:
        assert vocabulary.decode(vocabulary.encode(stream)) == stream


@given(words=st.lists(st.text(st.characters()), unique=True))
def test_save_and_load(words, tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "words.json"
    Vocabulary(words).save(path)
    assert Vocabulary.load(path) == Vocabulary(words)
    assert list(path.parent.iterdir()) == [path]


def test_save_replaces(tmp_path):
    path = tmp_path / "words.json"
    Vocabulary(["old"]).save(path)
    Vocabulary(["new"]).save(str(path))
    assert Vocabulary.load(str(path)).words == ("new",)


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "words.json"
    Vocabulary(["old"]).save(path)

    def full(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        Vocabulary(["new"]).save(path)
    assert Vocabulary.load(path).words == ("old",)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b'{"words": ["a",', "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["a"]', r'expected \{"words": \[...\]\}'),
        (b"{}", "expected"),
        (b'{"words": "ab"}', "expected"),
        (b'{"words": ["a", 3]}', "made of strings, got 3 at 1"),
        (b'{"words": ["a", "b", "a"]}', "got 'a' 2 times"),
    ],
    ids=["empty", "cut", "bytes", "nested", "list", "no words", "text", "number", "twice"],
)
def test_malformed_files(content, message, tmp_path):
    path = tmp_path / "words.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"words\.json is no vocabulary: .*{message}"):
        Vocabulary.load(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Vocabulary.load(tmp_path / "nowhere.json")


def test_a_text_is_no_list_of_words():
    vocabulary = Vocabulary(["a", "cat"])
    for call in (Vocabulary, vocabulary.encode, Vocabulary.of, lambda text: Vocabulary.of([text])):
        with pytest.raises(TypeError, match="got the text 'a cat'; split it first"):
            call("a cat")


@pytest.mark.parametrize("number", [-1, 2])
def test_decode_out_of_range(number):
    with pytest.raises(ValueError, match=f"from 0 to 1, got {number}"):
        Vocabulary(["a", "b"]).decode([0, number])


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_min_count(count):
    with pytest.raises(ValueError, match="min_count must be a positive whole number"):
        Vocabulary.of([["a"]], min_count=count)


def test_protocol():
    vocabulary = Vocabulary(["a", "b"])
    assert len(vocabulary) == 2
    assert "a" in vocabulary
    assert "c" not in vocabulary
    assert vocabulary == Vocabulary(["a", "b"]) != Vocabulary(["b", "a"])
    assert hash(vocabulary) == hash(Vocabulary(["a", "b"]))
