"""Reading parallel text, dropping broken pairs, and batches."""

import numpy as np
import pytest
import torch
from tasks.mt.cases import sentences

from lrn.tasks.mt.data import (
    Corpus,
    Numbered,
    pair_batch,
    read_builtin,
    read_folder,
    read_part,
    source_batch,
    without_broken,
)
from lrn.text.sentences import Sentences

END = 2


def quiet(share):
    pass


def write(folder, **files):
    for name, text in files.items():
        part, language = name.split("_")
        (folder / f"{part}.{language}").write_text(text)
    return folder


def test_a_pair_of_files(tmp_path):
    write(tmp_path, a_en="one\ntwo \n\n", a_de="eins\r\nzwei\n\n")
    part = read_part(tmp_path / "a.en", tmp_path / "a.de")
    assert part.sources == ("one", "two ", "")
    assert part.targets == ("eins", "zwei", "")


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("a\nb\n", "c\n", r"a.en has 2 lines and .*a.de 1; expected as many"),
        ("", "", "are empty"),
    ],
)
def test_files_that_do_not_fit(source, target, said, tmp_path):
    write(tmp_path, a_en=source, a_de=target)
    with pytest.raises(ValueError, match=said):
        read_part(tmp_path / "a.en", tmp_path / "a.de")


def test_parts_are_read_when_they_are_needed(tmp_path):
    """A broken one is in nobody's way until then."""
    write(
        tmp_path,
        train_en="a\n",
        train_de="b\n",
        valid_en="a\n",
        valid_de="b\n",
        test_en="a\n",
        test_de="\xff",
    )
    (tmp_path / "test.de").write_bytes(b"\xff\n")
    corpus = read_folder(tmp_path, "en", "de", quiet)
    assert corpus.part("train") is corpus.part("train")
    with pytest.raises(ValueError, match=r"test.de, line 1: not UTF-8"):
        corpus.part("test")
    with pytest.raises(FileNotFoundError, match=r"lacks more.en and more.de; expected pairs of files"):
        corpus.part("more")


def test_a_folder_for_evaluation_needs_no_training_part(tmp_path):
    write(tmp_path, news_en="a\n", news_de="b\n")
    assert len(read_folder(tmp_path, "en", "de", quiet).part("news")) == 1
    with pytest.raises(FileNotFoundError, match=r"lacks train.fr and train.it"):
        read_folder(tmp_path, "fr", "it", quiet)


def test_what_it_says_of_itself(tmp_path):
    write(tmp_path, train_en="a\nb\n", train_de="c\nd\n", val_en="e\n", val_de="f\n")
    about = read_folder(tmp_path, "en", "de", quiet).about
    assert about["train"] == {"pairs": 2, "files": ["train.en", "train.de"]}
    assert about["valid"] == {"pairs": 1, "files": ["val.en", "val.de"]}
    assert "test" not in about
    before = about["fingerprint"]
    write(tmp_path, val_de="g\n")
    assert read_folder(tmp_path, "en", "de", quiet).about["fingerprint"] != before


@pytest.mark.parametrize(
    ("asked", "line", "expected"),
    [
        ("auto", "a lamp .", "raw"),
        ("auto", "a l@@ amp .", "segmented"),
        ("tokenised", "a l@@ amp .", "tokenised"),
    ],
)
def test_what_text_it_is(asked, line, expected, tmp_path):
    write(tmp_path, train_en=f"x\n{line}\n", train_de="y\nz\n")
    assert read_folder(tmp_path, "en", "de", quiet).text(asked) == expected


def test_built_in():
    corpus = read_builtin(100)
    assert isinstance(corpus, Corpus)
    assert [len(corpus.part(name)) for name in ("train", "valid", "test")] == [100, 30, 30]
    assert read_builtin(100).about == corpus.about
    assert read_builtin(100, seed=2).about["fingerprint"] != corpus.about["fingerprint"]


# Broken pairs -------------------------------------------------------------------------------------


def numbered(*lengths):
    sides = [[[7] * length for length in side] for side in zip(*lengths, strict=True)]
    return Numbered(Sentences.of(sides[0]), Sentences.of(sides[1]))


def test_broken_pairs_are_counted():
    pairs = numbered((3, 3), (0, 4), (4, 0), (0, 0), (21, 20), (1, 4), (2, 8), (20, 20))
    good = without_broken(pairs, longest=20, ratio=3.5)
    assert good.dropped == {"empty": 3, "too long": 1, "ratio": 2}
    assert (good.lengths - 1).T.tolist() == [[3, 3], [20, 20]]
    assert without_broken(pairs, 0, 0).dropped == {"empty": 3}
    assert without_broken(numbered((3, 3)), 20, 3.0).dropped == {}


# Batches ------------------------------------------------------------------------------------------


def test_sources_in_a_batch():
    rows = sentences(2, 0, 4)
    batch = source_batch(rows)
    ended = [[*row.tolist(), END] for row in rows]
    found = batch.tokens[batch.memory].split(batch.starts.diff().tolist())
    assert [row.tolist() for row in found] == ended
    turned = batch.packing.pad(batch.tokens[batch.backwards])
    assert [row[: len(e)].tolist() for row, e in zip(turned, ended, strict=True)] == [e[::-1] for e in ended]
    assert batch.longest == 5


def test_pairs_in_a_batch():
    """The decoder reads what it should have said before; sources come in the translations' order."""
    sources, targets = sentences(2, 1, 4), sentences(1, 3, 0, seed=2)
    batch = pair_batch(sources, targets)
    ended = [[*row.tolist(), END] for row in targets]
    sizes = batch.target.batch_sizes.tolist()
    assert sizes == [3, 2, 1, 1]
    labels = batch.target.pad(batch.labels)
    assert [row[: len(e)].tolist() for row, e in zip(labels, ended, strict=True)] == ended
    inputs = batch.target.pad(torch.cat([torch.zeros(3, dtype=torch.int64), batch.inputs]))
    assert [row[1 : len(e)].tolist() for row, e in zip(inputs, ended, strict=True)] == [e[:-1] for e in ended]
    lengths = batch.target.pad(batch.lengths)
    assert [set(row[: len(e)].tolist()) for row, e in zip(lengths, ended, strict=True)] == [{2}, {4}, {1}]
    memory = batch.source.tokens[batch.source.memory].split(batch.source.starts.diff().tolist())
    order = batch.target.order.tolist()
    assert [row.tolist() for row in memory] == [[*sources[n].tolist(), END] for n in order]


def test_a_translation_of_nothing():
    batch = pair_batch(sentences(2), [np.zeros(0, np.int32)])
    assert batch.labels.tolist() == [END]
    assert batch.inputs.tolist() == []
