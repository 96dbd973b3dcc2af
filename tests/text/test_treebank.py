"""Words cut as the Penn Treebank does."""

import json
import os
from pathlib import Path

import pytest

from lrn.text.treebank import treebank_tokens

DATA = Path(os.environ.get("LRN_SHARED_DATA", Path(__file__).parents[3] / "shared/data"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog sleeps.", "A dog sleeps ."),
        ("They don't; we can't, cannot, won't!", "They do n't ; we ca n't , can not , wo n't !"),
        ("The man's dog's asleep", "The man 's dog 's asleep"),
        ("I'm sure you're he'd we've they'll", "I 'm sure you 're he 'd we 've they 'll"),
        ('He said "go" (now).', "He said `` go '' -LRB- now -RRB- ."),
        ("“Go”", "`` Go ''"),
        ("a dark-haired his/her t-shirt", "a dark-haired his/her t-shirt"),
        ("at 9:30, 1,000.50 or 1/2 of it", "at 9:30 , 1,000.50 or 1/2 of it"),
        ("the 2nd, a 5-person team of the 1960s", "the 2nd , a 5-person team of the 1960s"),
        ("Mr. Smith of the U.S. team", "Mr. Smith of the U.S. team"),
        ("wait... what -- no", "wait ... what -- no"),
        ("gonna wanna", "gon na wan na"),
        ("", ""),
        ("  \t ", ""),
        ("東京 naïve", "東京 naïve"),
    ],
)
def test_texts(text, expected):
    assert treebank_tokens(text) == expected.split()


def test_nothing_is_lost():
    """Every character but blanks is in some word, brackets and quotes by their names."""
    text = "x&y @z #1 $5 50% a_b c*d ~ ^ {e} [f] <g>"
    joined = "".join(treebank_tokens(text))
    names = {"-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
    for name, bracket in names.items():
        joined = joined.replace(name, bracket)
    assert joined == text.replace(" ", "")


def test_snlis_own_words():
    """Of SNLI's test sentences more than 999 in 1,000 are cut as its parser has cut them."""
    path = DATA / "snli/snli_1.0_test.jsonl.xz"
    if not path.exists():
        pytest.skip("SNLI is not there")
    import lzma

    same = total = 0
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            for n in (1, 2):
                words = record[f"sentence{n}_binary_parse"].replace("( ", "").replace(" )", "").split()
                same += words == treebank_tokens(record[f"sentence{n}"])
                total += 1
    assert same / total > 0.999
