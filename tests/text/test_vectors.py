"""Reading word vectors: all packings, only what is wanted, and lines that are broken."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pytest

from lrn.text.vectors import coverage, load_table, read_table, read_vectors

TEXT = "the 0.5 -1 2\ncat 1e-1 0 3\n. . 4 5 6\nthe 9 9 9\n"


def same(found, expected):
    assert found.keys() == expected.keys()
    for word, vector in found.items():
        assert vector.dtype == np.float32
        np.testing.assert_allclose(vector, expected[word], rtol=1e-6)


ALL = {"the": [0.5, -1, 2], "cat": [0.1, 0, 3], ". .": [4, 5, 6]}


@pytest.mark.parametrize("packing", ["txt", "gz", "xz", "bz2", "zip"])
def test_every_packing(packing, tmp_path):
    path = tmp_path / f"vectors.{packing}"
    if packing == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vectors.txt", TEXT)
    else:
        pack = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}.get(packing, bytes)
        path.write_bytes(pack(TEXT.encode()))
    same(read_vectors(path), ALL)
    same(read_vectors(path, {"cat", "dog"}), {"cat": ALL["cat"]})


def test_a_header_as_word2vec_writes_it(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("2 3\n" + TEXT)
    same(read_vectors(path), ALL)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the 1 2\ncat 1\n", r"line 2: expected a word and 2 numbers, got .cat 1.$"),
        ("the 1 2\ncat 1 2 3\n", "line 2"),
        ("the 1 2\n\ncat 1 x\n", "line 3"),
        ("the 1 nan\n", "line 1"),
        ("the\n", "line 1"),
        ("", "empty"),
    ],
)
def test_broken_lines(text, said, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as error:
        read_vectors(path)
    assert "vectors.txt" in str(error.value)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"the 1 2\n\xff\xfe 1 2\n")
    with pytest.raises(ValueError, match=r"line 2: not UTF-8 text: .*; convert it"):
        read_vectors(path)


def test_damaged_and_missing_files(tmp_path):
    path = tmp_path / "vectors.xz"
    path.write_bytes(lzma.compress(TEXT.encode() * 1000)[:-20])
    with pytest.raises(ValueError, match="damaged"):
        read_vectors(path)
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", TEXT)
        archive.writestr("b.txt", TEXT)
    with pytest.raises(ValueError, match="2 files"):
        read_vectors(path)
    with pytest.raises(FileNotFoundError, match="absent"):
        read_vectors(tmp_path / "absent.txt")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "vectors.txt").write_text(TEXT)
    return tmp_path / "vectors.txt"


def test_a_table_of_what_is_wanted(path):
    """In the order of the file; of two vectors of a word the first."""
    told = []
    words, vectors = read_table(path, {"cat", "the", "dog"}, told.append)
    assert words == ["the", "cat"]
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [ALL["the"], ALL["cat"]], rtol=1e-6)
    with pytest.raises(ValueError, match=r"vectors\.txt has no vector for any word of the data"):
        read_table(path, {"dog"})


def test_a_table_comes_back(path, tmp_path):
    _, vectors = read_table(path, {"cat", "the"})
    np.save(tmp_path / "kept.npy", vectors)
    again = load_table(tmp_path / "kept.npy", 2)
    assert np.array_equal(again, vectors)
    again[0] = 9  # a model may be made of it; the file stays as it is
    assert np.array_equal(load_table(tmp_path / "kept.npy", 2), vectors)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is damaged"),
        (b"not numpy's", "is damaged"),
        (np.zeros((3, 4), np.float32), "does not hold the vectors of 2 words"),
        (np.zeros((2, 4)), "does not hold"),
        (np.zeros(2, np.float32), "does not hold"),
        (np.array([["a"], [None]]), "is damaged"),
    ],
)
def test_a_damaged_table(content, said, tmp_path):
    path = tmp_path / "kept.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(ValueError, match=rf"kept\.npy.*{said}"):
        load_table(path, 2)


def test_coverage():
    assert coverage([True, False], [2, 1]) == 0.6667
    assert coverage(np.array([True, True]), np.array([5, 0])) == 1
    assert coverage([False], [3]) == 0
