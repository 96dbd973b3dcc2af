"""Where documents come from, and what becomes of their words."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from lrn.tasks.doc import data, generator
from lrn.tasks.doc.config import DocConfig
from lrn.tasks.doc.data import (
    Codes,
    cut_lengths,
    encode,
    encode_texts,
    frequent_words,
    read_cues,
    read_docstrings,
    read_documents,
    split,
)
from lrn.tasks.doc.documents import Builder
from lrn.text.spelt import LONGEST_WORD, UNKNOWN
from lrn.text.store import Folder
from lrn.text.vocabulary import SPECIALS

LONG = "Donaudampfschifffahrtsgesellschaft"
assert len(LONG) > LONGEST_WORD


def built(*train, test=(("b", "z"),), classes=("no", "yes")):
    """Documents of these words, with the labels 0 and 1 in turn."""
    builder = Builder()
    for part, texts in (("train", train), ("test", test)):
        for number, words in enumerate(texts):
            builder.add(part, number % 2, words)
    return builder.build(classes, source="a test")


@pytest.fixture(scope="module")
def cues():
    return read_cues(300)


def texts_of(documents, part):
    found = getattr(documents, part)
    return [" ".join(documents.types[t] for t in found.document(n)) for n in range(len(found))]


# Where they come from -----------------------------------------------------------------------------


def test_cues(cues):
    """What the generator makes, word for word."""
    assert cues.classes == generator.CLASSES
    assert (len(cues.train), len(cues.test)) == (300, 200)
    for part, count in (("train", 300), ("test", 200)):
        made = list(generator.documents(count, part=part))
        assert texts_of(cues, part) == [" ".join(document.words) for document in made]
        assert getattr(cues, part).labels.tolist() == [document.label for document in made]
    assert cues.about["source"] == "builtin:cues"
    assert (cues.about["documents_made"], cues.about["seed"]) == (300, 1)
    assert len(read_cues(1500).test) == 300


def test_cues_are_a_function_of_count_and_seed(cues):
    prints = [read_cues(*given).about["fingerprint"] for given in ((300, 1), (300, 2), (301, 1))]
    assert prints[0] == cues.about["fingerprint"]
    assert len(set(prints)) == 3


def library(count=60, packages=("xml", "json", "email")):
    """Modules and their docstrings, as Python's library would have them."""
    for package in packages:
        for number in range(count):
            yield f"{package}.part{number % 7}", f"{package} text number {number} which says this and that"
    for package in packages:
        yield f"{package}.part", "what several packages say in the same words, more than eight"
        yield f"{package}.part", "too short to say anything"
    yield from ((package, f"not inside a package {n} but it, in eight words") for n in range(90))


def test_docstrings_by_package(monkeypatch):
    monkeypatch.setattr(data, "docstrings", lambda: library(60, ("xml", "json", "email")))
    documents = read_docstrings(most=2, least=50)
    assert documents.classes == ("email", "json")  # of equally many the first by name
    assert read_docstrings(most=10, least=50).classes == ("email", "json", "xml")
    counted = Counter(documents.train.labels.tolist()) + Counter(documents.test.labels.tolist())
    assert counted == {0: 61, 1: 61}
    whole = set(texts_of(documents, "train")) | set(texts_of(documents, "test"))
    assert not any("too short" in text or "not inside" in text for text in whole)


def test_the_same_docstring_laid_out_otherwise_is_in_the_same_part(monkeypatch):
    def twice():
        for name, text in library():
            yield name, text
            yield name, text.replace(" ", "\n    ")

    monkeypatch.setattr(data, "docstrings", twice)
    documents = read_docstrings()
    assert len(documents.test) > 20
    assert not set(texts_of(documents, "train")) & set(texts_of(documents, "test"))


@pytest.mark.parametrize("least", [62, 1000])
def test_too_few_docstrings(least, monkeypatch):
    monkeypatch.setattr(data, "docstrings", library)
    with pytest.raises(RuntimeError, match="--data"):
        read_docstrings(least=least)


@pytest.mark.slow
def test_docstrings_of_this_python():
    documents = read_documents(DocConfig(data="builtin:docstrings"))
    assert documents.about["source"] == "builtin:docstrings"
    assert 2 <= len(documents.classes) <= 10
    train, test = (texts_of(documents, part) for part in ("train", "test"))
    assert not set(train) & set(test)
    assert 0.1 < len(test) / (len(train) + len(test)) < 0.3
    counted = Counter(documents.train.labels.tolist()) + Counter(documents.test.labels.tolist())
    assert min(counted[label] for label in range(len(documents.classes))) >= 100
    assert set(documents.test.labels.tolist()) == set(range(len(documents.classes)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LRN_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "csv"
    folder.mkdir()
    (folder / "train.csv").write_text('"1","Bad.","Never again"\n"2","Good","Again!"\n')
    (folder / "test.csv").write_text('"2","So good"\n')
    return folder


def test_every_source(folder):
    config = DocConfig(documents=150, seed=3)
    assert read_documents(config).about == read_cues(150, 3).about
    assert read_documents(config, "builtin:cues").about == read_cues(150, 3).about
    told = []
    documents = read_documents(DocConfig(data=str(folder)), progress=told.append)
    assert texts_of(documents, "train") == ["Bad . Never again", "Good Again !"]
    assert documents.test.labels.tolist() == [1]
    assert told[-1] == pytest.approx(1)
    assert (folder.parent / "cache").is_dir()
    assert read_documents(config, str(folder)).about == documents.about


def test_a_source_that_there_is_not(tmp_path):
    with pytest.raises(ValueError, match=r"'builtin:ceus'; .*; did you mean 'builtin:cues'\?"):
        DocConfig(data="builtin:ceus")
    with pytest.raises(ValueError, match=r"'builtin:docstring'; .*; did you mean 'builtin:docstrings'\?"):
        read_documents(DocConfig(), "builtin:docstring")
    with pytest.raises(FileNotFoundError, match="no folder"):
        read_documents(DocConfig(), str(tmp_path / "absent"))


@pytest.mark.parametrize("count", [2, 19, 300])
def test_split(count):
    documents = built(*[("a", "b")] * count)
    train, valid = split(documents, seed=1)
    assert len(valid) == max(1, count // 10)
    assert sorted([*train, *valid]) == list(range(count))
    assert [*train] == sorted(train)
    again = split(documents, seed=1)
    assert np.array_equal(train, again[0])
    assert np.array_equal(valid, again[1])


def test_split_is_another_with_another_seed(cues):
    first, second = (split(cues, seed)[1] for seed in (1, 2))
    assert len(set(first) & set(second)) < 15
    assert 5 < cues.train.labels[first].sum() < 25  # and not the first or last ones


# Words and characters as numbers ------------------------------------------------------------------


def test_codes():
    documents = built(("aab", "A"), ("ab", "ccc"), test=(("c", "ddd", LONG),))
    codes = Codes.of(documents, ["ab", "A"])
    assert codes.words.words == (*SPECIALS, "ab", "A")
    seen = Counter("aab" + "A" + "ab" + "ccc" + "c" + "ddd" + LONG[:LONGEST_WORD])  # of both parts
    assert codes.characters.words == (*SPECIALS, *sorted(c for c, times in seen.items() if times > 3))
    assert "c" in codes.characters
    assert not {"A", "b"} & set(codes.characters.words)
    assert codes.classes.words == ("no", "yes")


def test_characters_are_counted_as_often_as_their_word():
    assert Codes.of(built(("x",) * 3, ("y",) * 4), []).characters.words == (*SPECIALS, "y")
    assert "z" in Codes.of(built(("z",) * 2, test=[("z",) * 2]), []).characters


def test_the_number_of_a_word():
    codes = Codes.of(built(("a",)), ["Paris", "paris", "rome", "US"])
    asked = ("Paris", "paris", "PARIS", "Rome", "US", "us", "Oslo", "<unk>")
    numbers = [codes.number(word) for word in asked]
    assert numbers == [3, 4, 4, 5, 6, UNKNOWN, UNKNOWN, UNKNOWN]
    assert SPECIALS[UNKNOWN] == "<unk>"


def test_codes_come_back(tmp_path, cues):
    codes = Codes.of(cues, frequent_words(cues, 2))
    codes.save(tmp_path)
    assert Codes.load(Folder(tmp_path)) == codes


def test_frequent_words():
    """By how often training has them: the test documents have no say."""
    documents = built(("a", "b", "a"), ("c", "b"), (), (), test=(("c", "d", "d"),))
    assert frequent_words(documents, 1) == ["a", "b", "c"]  # not <unk>, which the empty ones consist of
    assert frequent_words(documents, 2) == ["a", "b"]
    assert frequent_words(documents, 3) == []


def test_table():
    codes = Codes.of(built(("abba", "aabb"), (LONG,) * 4), ["abba", LONG])
    table = codes.table(["Abba", LONG])
    assert table.words.tolist() == [3, 4]
    assert table.characters[1].tolist() == codes.characters.encode(list(LONG[:LONGEST_WORD]))


# Batches ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(cues):
    return Codes.of(cues, frequent_words(cues, 1)).table(cues.types)


@pytest.mark.parametrize("lengths", [[3, 9, 1, 9, 5], [4, 4, 4], [1], [1, 2, 3, 4]])
def test_encode_is_packed_as_torch_packs(lengths, cues, table):
    documents = [cues.train.document(number, length) for number, length in enumerate(lengths)]
    labels = cues.train.labels[: len(lengths)]
    batch = encode(documents, table, labels)
    padded = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, document in enumerate(documents):
        padded[row, : len(document)] = torch.tensor(document)
    packed = pack_padded_sequence(padded, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    assert torch.equal(batch.tokens.words, torch.from_numpy(table.words)[packed.data])
    assert torch.equal(batch.packing.batch_sizes, packed.batch_sizes)
    assert batch.lengths.tolist() == lengths
    assert batch.labels.tolist() == labels.tolist()
    # equally long ones may stand in any order, as long as it is the order they were packed in
    assert batch.lengths[batch.packing.order].tolist() == sorted(lengths, reverse=True)
    assert torch.equal(batch.packing.order, packed.sorted_indices)
    spelt = batch.tokens.characters[batch.tokens.spellings]
    kept = torch.from_numpy(table.characters.astype(np.int64))[packed.data]
    assert torch.equal(spelt, kept[:, : spelt.shape[1]])
    assert not kept[:, spelt.shape[1] :].any()


def test_a_word_that_comes_again_is_spelt_once(cues, table):
    batch = encode([cues.train.document(0), cues.train.document(0, 5)], table)
    assert len(batch.tokens.characters) == len(set(cues.train.document(0).tolist()))
    assert len(batch.tokens.words) == len(cues.train.document(0)) + 5
    assert batch.labels.shape == (0,)


@pytest.mark.parametrize(
    ("letters", "places"), [(1, 2), (3, 4), (LONGEST_WORD - 1, LONGEST_WORD), (LONGEST_WORD, LONGEST_WORD)]
)
def test_there_is_a_place_behind_the_last_letter(letters, places):
    """The zeros there take part in the maximum, as they would if all 25 places were kept."""
    codes = Codes.of(built(("a",) * 4), [])
    batch = encode_texts([["b", "a" * letters]], codes)
    assert batch.tokens.characters.shape == (2, places)
    longer = encode_texts([["a", "a" * 60]], codes)
    assert longer.tokens.characters.tolist() == [[3] + [0] * (LONGEST_WORD - 1), [3] * LONGEST_WORD]


def test_encode_texts():
    codes = Codes.of(built(("good", "bad"), ("good", "film")), ["good", "film"])
    batch = encode_texts([["film"], ["Good", "film", "good", "odd"]], codes)
    assert batch.tokens.words.tolist() == [3, 4, 4, 3, UNKNOWN]
    assert batch.lengths.tolist() == [1, 4]
    assert batch.packing.order.tolist() == [1, 0]
    assert batch.packing.batch_sizes.tolist() == [2, 1, 1, 1]


def test_cut_lengths():
    part = built(("a",), ("a",) * 5, ("a",) * 3).train
    assert cut_lengths(part, 3).tolist() == [1, 3, 3]
    assert cut_lengths(part, 0).tolist() == [1, 5, 3]
