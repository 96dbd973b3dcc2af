"""Reading pairs in all their forms, and batches of them."""

import json

import numpy as np
import pytest
import torch

from lrn.tasks.nli.data import encode, encode_words, read_builtin, read_folder, read_pairs
from lrn.text.spelt import SpeltWords
from lrn.text.vocabulary import Vocabulary

PARSES = "( ( A dog ) sleeps )", "( An ( animal -LRB- ) )"
WORDS = ["A", "dog", "sleeps"], ["An", "animal", "-LRB-"]
HEADER = "\t".join(
    ["gold_label", *(f"sentence{n}_{kind}" for kind in ("binary_parse", "parse") for n in (1, 2))]
)


def quiet(share):
    pass


def record(label="neutral"):
    both = {f"sentence{n}_binary_parse": parse for n, parse in enumerate(PARSES, 1)}
    return json.dumps({"gold_label": label, **both})


def columns(label="neutral"):
    return "\t".join([label, *PARSES, "x", "x"])


def test_snlis_own_forms(tmp_path):
    """Lines may end as on Windows."""
    (tmp_path / "a.jsonl").write_bytes(f"{record()}\r\n{record('-')}\r\n\r\n".encode())
    (tmp_path / "a.txt").write_bytes(f"{HEADER}\r\n{columns()}\r\n{columns('-')}\r\n".encode())
    for name in ("a.jsonl", "a.txt"):
        assert list(read_pairs(tmp_path / name)) == [("neutral", *WORDS), ("", *WORDS)]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("premise\thypothesis\tlabel", "A dog's here.\tIt isn't.\t2"),
        ("gold_label\tpremise\thypothesis", "contradiction\tA dog's here.\tIt isn't."),
        ("id\tgold\tsentence1\tsentence2", "7\tcontradiction\tA dog's here.\tIt isn't."),
    ],
)
def test_tables(header, row, tmp_path):
    """Columns go by the header; sentences are cut as the parses are."""
    (tmp_path / "a.tsv").write_text(f"{header}\n{row}\n")
    expected = ("contradiction", ["A", "dog", "'s", "here", "."], ["It", "is", "n't", "."])
    assert list(read_pairs(tmp_path / "a.tsv")) == [expected]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", record() + "\n{", "line 2: not a pair in SNLI's form: Expecting property name"),
        ("a.jsonl", '{"gold_label": "neutral"}', "line 1: .* has no 'sentence1_binary_parse'"),
        ("a.jsonl", "[1]", "line 1: not a pair in SNLI's form"),
        ("a.jsonl", record("maybe"), "line 1: .*unknown label 'maybe'; allowed: entailment, neutral"),
        ("a.tsv", "premise\thypothesis\n", "line 1: .* names a column gold_label or label or gold;"),
        ("a.tsv", "premise\thypothesis\tlabel\na\tb\n", "line 2: expected 3 columns like the header, got 2"),
        ("a.tsv", "premise\thypothesis\tlabel\na\tb\t5\n", "line 2: unknown label '5'"),
        ("a.tsv", b"premise\thypothesis\tlabel\n\xff\tb\t1\n", "line 2: not UTF-8"),
    ],
)
def test_malformed_lines(name, text, said, tmp_path):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=said) as error:
        list(read_pairs(tmp_path / name))
    assert "\n" not in str(error.value)


def test_a_folder_of_mixed_forms(tmp_path):
    """Pairs without a label are dropped and counted; one without words has a word that says so."""
    (tmp_path / "snli_1.0_train.jsonl").write_text(f"{record()}\n{record('-')}\n{record('entailment')}\n")
    (tmp_path / "snli_1.0_dev.txt").write_text(f"{HEADER}\n{columns('contradiction')}\n")
    (tmp_path / "test.tsv").write_text("premise\thypothesis\tlabel\nA dog\t\t1\n")
    found = read_folder(tmp_path, quiet)
    assert [found.about[name]["pairs"] for name in ("train", "valid", "test")] == [2, 1, 1]
    assert [found.about[name]["dropped"] for name in ("train", "valid", "test")] == [1, 0, 0]
    assert [found.types[n] for n in found.test.premises[0]] == ["A", "dog"]
    assert [found.types[n] for n in found.test.hypotheses[0]] == ["<eos>"]
    assert found.train.labels.tolist() == [1, 0]
    assert found.counts[found.types.index("A")].tolist() == [2, 1, 1]


def test_multinli(tmp_path):
    names = [f"multinli_1.0_{part}.jsonl" for part in ("train", "dev_matched", "dev_mismatched")]
    for name in names:
        (tmp_path / name).write_text(record() + "\n")
    assert read_folder(tmp_path, quiet).about["files"] == names


def test_no_labels_at_all(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text(record("-") + "\n")
    with pytest.raises(ValueError, match="the train part has no pair with a label"):
        read_folder(tmp_path, quiet)


def test_several_files_for_one_part(tmp_path):
    for name in ("snli_1.0_train.jsonl", "snli_1.0_train.small.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"has several files snli_1.0_train\*.jsonl: .*; leave the one you"):
        read_folder(tmp_path, quiet)


def test_the_fingerprint_is_of_what_is_read():
    one, again, other = read_builtin(100), read_builtin(100), read_builtin(100, seed=2)
    assert one.about["fingerprint"] == again.about["fingerprint"] != other.about["fingerprint"]


def test_batches():
    """Premises lie one behind the other in the order in which hypotheses are packed."""
    draw = np.random.default_rng(1)
    premises, hypotheses = (
        [draw.integers(0, 50, size=size).astype(np.int32) for size in sizes]
        for sizes in ([3, 5, 1, 4], [2, 1, 4, 4])
    )
    words = [f"w{n}" for n in range(50)]
    codes = SpeltWords(Vocabulary(words), Vocabulary(["<pad>", "<unk>", "w"]))
    batch = encode(premises, hypotheses, codes.table(words), [0, 1, 2, 1])
    packed, after = batch.tokens.words.split([13, 11])
    order = batch.hypotheses.order.tolist()
    assert order == [2, 3, 0, 1]
    for place, number in enumerate(order):
        mine = packed[batch.memory][batch.starts[place] : batch.starts[place + 1]]
        assert mine.tolist() == premises[number].tolist()
    for row, numbers in zip(batch.hypotheses.pad(after), hypotheses, strict=True):
        assert row[: len(numbers)].tolist() == numbers.tolist()
    assert batch.labels.tolist() == [0, 1, 2, 1]


def test_words_that_are_given():
    """By their own form, their lower case, or as unknown."""
    codes = SpeltWords(
        Vocabulary(["<pad>", "<unk>", "<eos>", "dog"]), Vocabulary(["<pad>", "<unk>", "<eos>", "d", "o", "g"])
    )
    batch = encode_words([["Dog", "cat"]], [["dog"]], codes)
    assert batch.tokens.words.tolist() == [3, 1, 3]
    assert torch.equal(batch.starts, torch.tensor([0, 2]))
