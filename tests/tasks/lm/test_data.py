"""What is read is what stands in the files; segments walk over all of it; bad files are named."""

import lzma
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lrn.tasks.lm.data import (
    Segment,
    batchify,
    encode_file,
    fixed_segments,
    read_builtin,
    read_folder,
    segments,
)
from lrn.text.vocabulary import Vocabulary

PTB = Path(__file__).parents[4] / "shared" / "data" / "ptb"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text("a b\n\n c  a\n")
    (tmp_path / "valid.txt").write_text("b d\n")
    (tmp_path / "test.txt").write_text("e a")  # no newline at the end
    return tmp_path


# Reading


def test_folder(folder):
    corpus = read_folder(folder)
    assert corpus.vocabulary.words == ("a", "b", "<eos>", "c", "d", "e")
    assert corpus.train.tolist() == [0, 1, 2, 2, 3, 0, 2]
    assert corpus.valid.tolist() == [1, 4, 2]
    assert corpus.test.tolist() == [5, 0, 2]
    assert corpus.train.dtype == torch.int64
    assert corpus.about == {
        "source": str(folder),
        "tokens": {"train": 7, "valid": 3, "test": 3},
        "types": 6,
        "unknown": {"train": 0, "valid": 0, "test": 0},
    }


def test_wikitext_names(folder):
    expected = read_folder(folder).train
    for part in ("train", "valid", "test"):
        (folder / f"{part}.txt").rename(folder / f"wiki.{part}.tokens")
    assert torch.equal(read_folder(str(folder)).train, expected)


def test_windows_and_unicode(folder):
    (folder / "train.txt").write_bytes("\ufeffä\u00a0b\r\n\r\n漢字 b\r\n".encode())
    corpus = read_folder(folder)
    assert corpus.vocabulary.words[:4] == ("ä", "b", "<eos>", "漢字")
    assert corpus.train.tolist() == [0, 1, 2, 2, 3, 1, 2]


@pytest.mark.skipif(not PTB.exists(), reason="needs the Penn Treebank")
def test_penn_treebank(tmp_path):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_bytes(lzma.decompress((PTB / f"{part}.txt.xz").read_bytes()))
    corpus = read_folder(tmp_path)
    assert len(corpus.vocabulary) == 10_000
    assert [len(part) for part in (corpus.train, corpus.valid, corpus.test)] == [929_589, 73_760, 82_430]
    assert int(corpus.train.max()) == 9_999


def test_builtin():
    corpus = read_builtin()
    words = corpus.vocabulary
    assert "<unk>" in words
    assert "<eos>" in words
    assert corpus.about["source"] == "built-in"
    assert corpus.about["types"] == len(words)
    assert corpus.about["tokens"]["train"] == len(corpus.train)
    assert len(corpus.about["hash"]) == 64
    counts = torch.bincount(corpus.train, minlength=len(words))
    assert int(counts.min()) >= 3
    for part in (corpus.train, corpus.valid, corpus.test):
        unknown = (part == words.encode(["<unk>"])[0]).float().mean()
        assert 0 < unknown < 0.1
    assert words.encode(["<eos>"])[0] == corpus.train[-1]


def test_builtin_with_every_word():
    assert len(read_builtin(min_count=1).vocabulary) > len(read_builtin().vocabulary)
    with pytest.raises(ValueError, match="min_count must be a positive whole number, got 0"):
        read_builtin(min_count=0)


def test_encode_file(folder):
    vocabulary = Vocabulary(["<eos>", "a", "<unk>"])
    assert encode_file(folder / "train.txt", vocabulary).tolist() == [1, 2, 0, 0, 2, 1, 0]


# What cannot be read


def test_missing_files(folder):
    (folder / "valid.txt").unlink()
    says = (
        r"lacks valid\.txt; expected train\.txt, valid\.txt, test\.txt or wiki\.train\.tokens, .*"
        "; without --data the built-in text is used$"
    )
    with pytest.raises(FileNotFoundError, match=says):
        read_folder(folder)


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n"])
def test_empty_file(folder, content):
    (folder / "valid.txt").write_bytes(content)
    with pytest.raises(ValueError, match=r"valid\.txt is empty: it has no words"):
        read_folder(folder)


def test_not_utf8(folder):
    (folder / "test.txt").write_bytes(b"good\nbad \xff\n")
    with pytest.raises(ValueError, match=r"test\.txt, line 2: not UTF-8 text: .* \(byte 0xff at 4\)"):
        read_folder(folder)


def test_truncated_character(folder):
    (folder / "test.txt").write_bytes("é".encode()[:1])
    with pytest.raises(ValueError, match=r"test\.txt, line 1: not UTF-8 text: unexpected end of data"):
        read_folder(folder)


def test_endless_word(folder):
    (folder / "train.txt").write_text("a\n" + "é" * 5_000 + " b\n")  # 10,000 bytes: allowed
    read_folder(folder)
    (folder / "train.txt").write_text("a\nb " + "é" * 5_000 + "x\n")
    with pytest.raises(
        ValueError, match=r"train\.txt, line 2: a word of 10,001 bytes \(é+…\), allowed are 10,000"
    ):
        read_folder(folder)


def test_folder_in_place_of_a_file(folder):
    (folder / "test.txt").unlink()
    (folder / "test.txt").mkdir()
    with pytest.raises(ValueError, match=r"test\.txt is not a file"):
        read_folder(folder)


def test_encode_file_errors(folder):
    words = Vocabulary(["a", "b", "<eos>"])
    with pytest.raises(ValueError, match=r"train\.txt, line 3: 'c' is not in the vocabulary of 3 words"):
        encode_file(folder / "train.txt", words)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere"):
        encode_file(folder / "nowhere", words)
    with pytest.raises(ValueError, match="has no <eos> for the ends of lines"):
        encode_file(folder / "train.txt", Vocabulary(["a", "<unk>"]))


# Columns


def test_batchify():
    assert batchify(torch.arange(11), 3).tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert batchify(torch.arange(4), 1).tolist() == [[0], [1], [2], [3]]
    assert batchify(torch.arange(4), 2).is_contiguous()


def test_batchify_too_little():
    assert batchify(torch.arange(6), 3).shape == (2, 3)
    with pytest.raises(ValueError, match="5 words is too short for 3 columns: needs 6 words"):
        batchify(torch.arange(5), 3)


def test_batchify_wrong_arguments():
    with pytest.raises(ValueError, match="columns must be a positive whole number, got 0"):
        batchify(torch.arange(5), 0)
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(2, 3\)"):
        batchify(torch.zeros(2, 3), 1)


# Segments

STEPS = st.integers(3, 400)
SEEDS = st.integers(0, 10)


@given(STEPS, SEEDS, SEEDS)
def test_segments_follow_each_other(steps, seed, epoch):
    plan = segments(steps, seed=seed, epoch=epoch)
    assert plan[0].start == 0
    for segment, following in pairwise(plan):
        assert following.start == segment.start + segment.length
        assert segment.scale == segment.length / 70
    end = plan[-1].start + plan[-1].length
    assert steps - 2 <= end <= steps - 1
    assert plan[-1].scale >= plan[-1].length / 70  # the last is cut, its learning rate is not


def test_lengths_are_distributed_as_described():
    plan = segments(1_000_000, seed=28, epoch=0)[:-1]
    lengths = torch.tensor([float(segment.length) for segment in plan])
    halves = lengths < 52  # the two humps, at 70 and 35, are five standard deviations from here
    assert halves.float().mean() == pytest.approx(0.05, abs=0.01)
    for hump, center in ((lengths[~halves], 70), (lengths[halves], 35)):
        assert hump.mean() == pytest.approx(center - 0.5, abs=0.5)  # int() cuts half a step on average
        assert hump.std() == pytest.approx(5, abs=0.5)


def test_shortest_and_longest():
    assert {s.length for s in segments(300, base=2, delta=3, seed=0, epoch=0)[:-1]} == {5}
    capped = segments(10_000, base=70, delta=0, seed=0, epoch=0)
    assert max(segment.length for segment in capped) == 70
    assert max(segment.scale for segment in capped) == 1


def test_last_segment_is_cut():
    (segment,) = segments(10, seed=0, epoch=0)
    assert segment.start == 0
    assert segment.length == 9
    assert segment.scale > 30 / 70


def test_plan_depends_on_seed_and_epoch():
    plans = [tuple(segments(1000, seed=seed, epoch=epoch)) for seed in range(3) for epoch in range(3)]
    assert len(set(plans)) == 9
    assert plans[5] == tuple(segments(1000, seed=1, epoch=2))


def test_known_plan():
    """numpy promises the same stream for a seed; a change would break resuming older runs."""
    assert [segment.length for segment in segments(400, seed=28, epoch=3)] == [65, 79, 82, 67, 67, 39]


@pytest.mark.parametrize(
    ("steps", "settings", "message"),
    [
        (2, {}, "too short to train on: 2 steps a column, needs 3"),
        (9, {"base": 0}, "base must be a positive whole number, got 0"),
        (9, {"delta": -1}, "delta must not be negative, got -1"),
        (9, {"seed": -1}, "seed must not be negative, got -1"),
        (9, {"epoch": -1}, "epoch must not be negative, got -1"),
    ],
)
def test_wrong_settings(steps, settings, message):
    with pytest.raises(ValueError, match=message):
        segments(steps, **{"seed": 0, "epoch": 0} | settings)


def test_fixed_segments():
    assert fixed_segments(8, 3) == [Segment(0, 3, 1.0), Segment(3, 3, 1.0), Segment(6, 1, 1.0)]
    assert fixed_segments(2, 70) == [Segment(0, 1, 1.0)]
    with pytest.raises(ValueError, match="too short to evaluate on: 1 steps a column, needs 2"):
        fixed_segments(1, 70)
    with pytest.raises(ValueError, match="length must be a positive whole number, got 0"):
        fixed_segments(5, 0)


@given(st.integers(2, 300), st.integers(1, 80))
def test_every_target_once(steps, length):
    targets = [s.start + 1 + i for s in fixed_segments(steps, length) for i in range(s.length)]
    assert targets == list(range(1, steps))


def test_who_waits_sees_how_far_it_is(tmp_path):
    for name, lines in (("train", 3), ("valid", 1), ("test", 1)):
        (tmp_path / f"{name}.txt").write_text("to be\n" * lines)
    told = []
    read_folder(tmp_path, told.append)
    assert told == [0.6, 0.8, 1.0]
