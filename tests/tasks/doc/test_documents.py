"""Documents as numbers of types, and building them."""

import gc
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrn.tasks.doc.documents import ARRAYS, Builder, Documents, Part, Types, numbered

TOKENS = st.lists(st.text("abé東", min_size=1, max_size=3), max_size=8)
ROWS = st.lists(st.tuples(st.sampled_from(["train", "test"]), st.integers(0, 2), TOKENS), max_size=12)


def built(rows, classes=("a", "b", "c"), **about):
    builder = Builder()
    for row in rows:
        builder.add(*row)
    return builder.build(classes, **about)


def texts(documents, part):
    return [[documents.types[t] for t in part.document(n)] for n in range(len(part))]


@given(ROWS)
def test_what_goes_in_comes_out(rows):
    documents = built(rows)
    for column, name in enumerate(("train", "test")):
        part = getattr(documents, name)
        mine = [(label, tokens or ["<unk>"]) for where, label, tokens in rows if where == name]
        assert texts(documents, part) == [tokens for _, tokens in mine]
        assert part.labels.tolist() == [label for label, _ in mine]
        assert part.lengths.tolist() == [len(tokens) for _, tokens in mine]
        flat = [token for _, tokens in mine for token in tokens]
        empty = sum(where == name and not tokens for where, _, tokens in rows)
        sizes = {"documents": len(mine), "tokens": len(flat), "without_words": empty}
        assert documents.about[name] == sizes
        assert documents.counts[:, column].tolist() == [flat.count(token) for token in documents.types]
    order = [
        token for part in (documents.train, documents.test) for row in texts(documents, part) for token in row
    ]
    assert list(documents.types) == list(dict.fromkeys(order))
    assert documents.about["types"] == len(documents.types) == len(documents.counts)


def test_kinds_and_names():
    documents = built([("train", 1, ["x", "y", "x"]), ("test", 0, [])], source="here", seed=3)
    assert documents.train.tokens.dtype == np.int32
    assert (
        documents.train.offsets.dtype == documents.train.lengths.dtype == documents.counts.dtype == np.int64
    )
    assert documents.train.labels.dtype == np.uint8
    assert documents.classes == ("a", "b", "c")
    about = dict(documents.about)
    assert len(about.pop("fingerprint")) == 64
    assert about == {
        "source": "here",
        "seed": 3,
        "classes": ["a", "b", "c"],
        "train": {"documents": 1, "tokens": 3, "without_words": 0},
        "test": {"documents": 1, "tokens": 1, "without_words": 1},
        "types": 3,
    }


def test_documents_are_cut():
    part = built([("train", 0, ["x", "y", "z"]), ("train", 0, ["y"])]).train
    assert part.document(0, 2).tolist() == [0, 1]
    assert part.document(0, 9).tolist() == part.document(0).tolist() == [0, 1, 2]
    assert part.document(1, 2).tolist() == [1]
    for n in (-1, 2):
        with pytest.raises(IndexError, match="from 0 to 1"):
            part.document(n)


def test_types_are_a_sequence():
    words = [f"w{n}é" * (n % 3) for n in range(25_000)]
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)])
    types = Types(np.frombuffer(b"".join(encoded), np.uint8), offsets)
    assert len(types) == 25_000
    assert list(types) == words
    assert types[24_999] == words[-1]
    assert repr(types) == "25000 types"
    for n in (-1, 25_000):
        with pytest.raises(IndexError, match="from 0 to 24999"):
            types[n]


ROW = ("train", 0, ["x", "y"])


def test_the_fingerprint_is_of_labels_and_tokens():
    def prints(*rows, **more):
        return built(rows, **more).about["fingerprint"]

    digest = sha256(b"x\ny").digest()
    parts = [sha256(b"\0" + digest).digest(), sha256(b"\1" + digest).digest()]
    whole = sha256(b"".join(parts)).hexdigest()
    assert (
        prints(ROW, ("test", 1, ["x", "y"]))
        == prints(("test", 1, ["x", "y"]), ROW, source="elsewhere")
        == whole
    )
    others = [
        [],
        [("train", 1, ["x", "y"])],
        [("test", 0, ["x", "y"])],
        [("train", 0, ["xy"])],
        [("train", 0, ["y", "x"])],
        [ROW, ROW],
        [("train", 0, ["x"]), ("train", 0, ["y"])],
    ]
    assert len({prints(*rows) for rows in [[ROW], *others]}) == 1 + len(others)


@pytest.mark.parametrize(
    ("row", "error", "said"),
    [
        (("valid", 0, ["x"]), ValueError, "train, test, got 'valid'"),
        (("train", 256, ["x"]), ValueError, "from 0 to 255, got 256"),
        (("train", -1, ["x"]), ValueError, "from 0 to 255, got -1"),
        (("train", 0, "a text"), TypeError, "list of tokens, got the text 'a text'"),
        (("train", 0, ["x\ny"]), ValueError, "no line break"),
        (("train", 3, ["x"]), ValueError, "label 3 has no name among 3 classes"),
    ],
)
def test_what_cannot_be_built(row, error, said):
    with pytest.raises(error, match=said):
        built([row])


def test_arrays_that_do_not_fit():
    documents = built([ROW, ("test", 1, ["z"])])
    arrays = {
        "types": documents.types._text,
        "types.offsets": documents.types._offsets,
        "counts": documents.counts.ravel(),
        **{
            f"{p}.{kind}": getattr(getattr(documents, p), kind)
            for p in ("train", "test")
            for kind in Part.__annotations__
        },
    }
    assert set(arrays) == set(ARRAYS)
    assert Documents.of(arrays, documents.about).about == documents.about
    for name in ARRAYS:
        with pytest.raises(ValueError, match=r"do not fit|not those|reshape"):
            Documents.of({**arrays, name: arrays[name][:-1]}, documents.about)
    with pytest.raises(ValueError, match="not those"):
        Documents.of(arrays, {**documents.about, "types": 9})


def test_batches_number_their_own():
    batch = numbered([["b", "a"], [], ["a"]])
    assert batch.types == "b\na\n<unk>"
    assert batch.tokens.tolist() == [0, 1, 2, 1]
    assert batch.lengths.tolist() == [2, 1, 1]
    assert batch.digests == b"".join(sha256(text).digest() for text in (b"b\na", b"<unk>", b"a"))


def test_a_batch_is_gone_when_it_is_done():
    """Without waiting for the garbage collector, which lets a worker grow to gigabytes before it comes."""
    gc.collect()
    gc.disable()
    try:
        numbered([["b", "a"]])
        assert gc.collect() == 0
    finally:
        gc.enable()
