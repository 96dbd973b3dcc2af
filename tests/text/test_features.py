"""Features of a whole data set: computed once, kept rounded, and never read when they are not whole."""

import errno
import os
from itertools import chain

import numpy as np
import pytest

from lrn.text import features
from lrn.text.features import Features, batches, cached

LENGTHS, WIDTH = [3, 1, 4, 0, 1, 5], 6


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LRN_CACHE", str(tmp_path / "cache"))


def kept(tmp_path):
    return sorted((tmp_path / "cache" / "features").iterdir())


class Model:
    """Random features of each sequence, and a list of what was asked for."""

    def __init__(self, lengths=LENGTHS, pooled=True, seed=1):
        draw = np.random.default_rng(seed)
        self.rows = [draw.standard_normal((length, WIDTH)).astype(np.float32) for length in lengths]
        self.pooled = draw.standard_normal((len(lengths), WIDTH)).astype(np.float32) if pooled else None
        self.calls = []

    def __call__(self, numbers):
        self.calls.append(numbers)
        pooled = None if self.pooled is None else self.pooled[numbers]
        return [self.rows[number] for number in numbers], pooled


def same(found, model, kind=np.float16):
    assert len(found) == len(model.rows)
    assert found.width == WIDTH
    for number, rows in enumerate(model.rows):
        assert found.rows(number).dtype == kind
        np.testing.assert_array_equal(found.rows(number), rows.astype(kind))
        np.testing.assert_array_equal(found.pooled(number), model.pooled[number].astype(kind))


def test_computed_once(tmp_path):
    model, told = Model(), []
    same(cached("data train", "key", LENGTHS, WIDTH, model, told.append), model)
    assert sorted(chain(*model.calls)) == [*range(len(LENGTHS))]
    assert told == sorted(told)
    assert told[-1] == 1
    again = Model(seed=2)
    found = cached("data train", "key", np.array(LENGTHS), WIDTH, again, told.append)
    same(found, model)
    assert again.calls == []
    assert not found.table.flags.writeable
    (place,) = kept(tmp_path)
    same(Features.open(place), model)


def test_in_batches_longest_first(monkeypatch):
    monkeypatch.setattr(features, "batches", lambda lengths: batches(lengths, words=8))
    model, told = Model(), []
    same(cached("data", "key", LENGTHS, WIDTH, model, told.append), model)
    assert model.calls == [[5], [2, 0], [1, 4, 3]]
    assert told == [5 / 14, 12 / 14, 1]


def test_in_an_order_of_its_own():
    model, order = Model(), [[3, 5], [0], [1, 2, 4]]
    same(cached("data", "key", LENGTHS, WIDTH, model, order=order), model)
    assert model.calls == order
    for wrong in ([[0, 1, 2]], [[0, 1, 2, 3, 4, 4]], [[0, 1, 2, 3, 4, 5, 6]]):
        with pytest.raises(ValueError, match="each of 6 sequences once"):
            cached("data", "other", LENGTHS, WIDTH, model, order=wrong)


def test_batches():
    draw = np.random.default_rng(1)
    lengths = draw.integers(0, 60, 500)
    cut = batches(lengths, words=200)
    assert sorted(chain(*cut)) == [*range(500)]
    assert all(len(batch) * lengths[batch].max() <= 200 for batch in cut)
    assert lengths[[*chain(*cut)]].tolist() == sorted(lengths.tolist(), reverse=True)
    assert len(cut) < 110  # 15,000 words, and little padding


@pytest.mark.parametrize(("numbers", "allowed"), [("float16", 2**-11), ("float32", 0)])
def test_rounding(numbers, allowed):
    """float16 has 11 binary digits: a number is off by at most half of the last."""
    model = Model()
    found = cached("data", "key", LENGTHS, WIDTH, model, numbers=numbers)
    same(found, model, np.dtype(numbers))
    exact = np.concatenate(model.rows)
    off = np.abs(found.table.astype(np.float64) - exact) / np.abs(exact)
    assert off.max() <= allowed
    assert bool(off.max()) == bool(allowed)


def test_words_alone():
    model = Model(pooled=False)
    found = cached("data", "key", LENGTHS, WIDTH, model)
    np.testing.assert_array_equal(found.rows(5), model.rows[5].astype(np.float16))
    with pytest.raises(ValueError, match="words alone"):
        found.pooled(5)


@pytest.mark.parametrize("number", [-1, len(LENGTHS)])
def test_numbers_that_are_none(number):
    found = cached("data", "key", LENGTHS, WIDTH, Model())
    for read in (found.rows, found.pooled):
        with pytest.raises(IndexError, match=f"from 0 to 5, got {number}"):
            read(number)


@pytest.mark.parametrize(
    "other",
    [{"key": "other"}, {"lengths": [3, 1, 4, 0, 5, 1]}, {"width": WIDTH + 1}, {"numbers": "float32"}],
)
def test_other_features_of_the_same_take_their_place(other, tmp_path):
    def read(key="key", lengths=LENGTHS, width=WIDTH, **more):
        rows = [np.ones((length, width), np.float32) for length in lengths]
        calls.append(key)
        return cached("data", key, lengths, width, lambda batch: ([rows[n] for n in batch], None), **more)

    calls = []
    read()
    found = read(**other)
    assert found.width == other.get("width", WIDTH)
    assert np.diff(found.offsets).tolist() == other.get("lengths", LENGTHS)
    assert len(kept(tmp_path)) == 1


def test_features_of_other_data_stay(tmp_path):
    train, test = Model(), Model(seed=2)
    cached("data train", "key", LENGTHS, WIDTH, train)
    cached("data test", "key", LENGTHS, WIDTH, test)
    assert len(kept(tmp_path)) == 2
    same(cached("data train", "key", LENGTHS, WIDTH, test), train)


@pytest.mark.parametrize("name", ["rows", "offsets", "pooled", "about.json"])
@pytest.mark.parametrize("change", ["gone", "empty", "short", "long", "noise"])
def test_what_is_damaged_is_computed_anew(name, change, tmp_path):
    model = Model()
    cached("data", "key", LENGTHS, WIDTH, model)
    (place,) = kept(tmp_path)
    content = (place / name).read_bytes()
    changed = {"empty": b"", "short": content[:-2], "long": content + b"12345678", "noise": b"\xff" * 3}
    if change == "gone":
        (place / name).unlink()
    else:
        (place / name).write_bytes(changed[change])
    same(cached("data", "key", LENGTHS, WIDTH, model), model)
    assert len(model.calls) == 2
    assert kept(tmp_path) == [place]


@pytest.mark.parametrize("about", ["[]", "{}", '{"words": "x"}', '{"words": 14, "sequences": 6, "width": 6}'])
def test_a_description_that_is_none(about, tmp_path):
    model = Model()
    cached("data", "key", LENGTHS, WIDTH, model)
    (place,) = kept(tmp_path)
    (place / "about.json").write_text(about)
    with pytest.raises(ValueError, match="is damaged"):
        Features.open(place)
    same(cached("data", "key", LENGTHS, WIDTH, model), model)


def test_an_interruption_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(features, "batches", lambda lengths: batches(lengths, words=8))
    model = Model()

    def interrupted(numbers):
        if model.calls:
            raise KeyboardInterrupt
        return model(numbers)

    with pytest.raises(KeyboardInterrupt):
        cached("data", "key", LENGTHS, WIDTH, interrupted)
    assert kept(tmp_path) == []
    same(cached("data", "key", LENGTHS, WIDTH, model), model)


def test_a_full_disk(monkeypatch, tmp_path):
    real = features.cache.created

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Created:
        def __init__(self, path):
            self.inner = real(path)

        def __enter__(self):
            return Full(self.inner.__enter__())

        def __exit__(self, *error):
            return self.inner.__exit__(*error)

    monkeypatch.setattr(features.cache, "created", Created)
    with pytest.raises(ValueError, match=r"cannot write to the cache folder .*No space left"):
        cached("data", "key", LENGTHS, WIDTH, Model())
    assert kept(tmp_path) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, 70_000])
def test_numbers_that_cannot_be_kept(value):
    model = Model()
    model.rows[2][1, 1] = value
    with pytest.raises(ValueError, match="not finite, or too large for float16"):
        cached("data", "key", LENGTHS, WIDTH, model)
    if np.isfinite(value):
        found = cached("data", "key", LENGTHS, WIDTH, model, numbers="float32")
        assert found.rows(2)[1, 1] == value


def test_what_cannot_be_meant():
    with pytest.raises(ValueError, match="float16 or float32, got 'float8'"):
        cached("data", "key", LENGTHS, WIDTH, Model(), numbers="float8")
    for lengths in ([], [0, 0], [3, -1]):
        with pytest.raises(ValueError, match="at least one word"):
            cached("data", "key", lengths, WIDTH, Model())
    with pytest.raises(ValueError, match=r"expected features of shape \(2, 6\), got \(3, 6\)"):
        cached("data", "key", [2], WIDTH, Model([3]))
