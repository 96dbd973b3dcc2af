"""Checks say what was given and what is allowed; hints name what was meant, and nothing far-fetched."""

import math
import os
from dataclasses import dataclass, field

import pytest
from helpers import says
from hypothesis import given
from hypothesis import strategies as st

from lrn import checks, names


@dataclass
class Settings:
    value: float


def test_choice():
    assert checks.choice("unit", "sru", names.UNITS) == "sru"
    assert checks.choice("norm", None, (None, "layer")) is None


@pytest.mark.parametrize(
    ("typed", "allowed", "meant"),
    [
        ("lrm", names.UNITS, "lrn"),
        ("lsrn", names.UNITS, "lrn"),
        ("LSTM", names.UNITS, "lstm"),
        ("olnr", names.UNITS, "olrn"),
        ("ml", names.TASKS, "lm"),
        ("lmm", names.TASKS, "lm"),
        ("prat", ("rate", "part"), "part"),
        ("qiuck", ("paper", "quick"), "quick"),
        ("unit", ("hidden", "units"), "units"),
        ("batchsize", ("bptt", "batch_size", "small_batch"), "batch_size"),
        ("layr", ("layer", "rms"), "layer"),
        ("lm-lrn-quick-1", ("runs/ner-lrn-quick-1", "runs/lm-lrn-quick-1"), "runs/lm-lrn-quick-1"),
    ],
)
def test_what_was_meant(typed, allowed, meant):
    assert checks.nearest(typed, allowed) == f"; did you mean '{meant}'?"
    with pytest.raises(ValueError, match=says(f"unknown thing '{typed}'; allowed: {allowed[0]}, ", meant)):
        checks.choice("thing", typed, allowed)


@pytest.mark.parametrize(
    ("typed", "allowed"), [("transformer", names.UNITS), ("nothing", names.TASKS), ("x", ()), ("", ("lm",))]
)
def test_nothing_was_meant(typed, allowed):
    assert checks.nearest(typed, allowed) == ""


@pytest.mark.parametrize(
    ("given", "said"), [([], "a list"), (3, "an int"), (None, "a NoneType"), (int, "the class int")]
)
def test_the_kind_of_a_thing(given, said):
    assert checks.kind(given) == said


def test_the_words_of_an_unknown_name():
    with pytest.raises(
        ValueError, match=rf"^unknown task 'nre'; allowed: {', '.join(names.TASKS)}; did you mean 'ner'\?$"
    ):
        checks.choice("task", "nre", names.TASKS)
    with pytest.raises(ValueError, match=r"^unknown norm 'batch'; allowed: None, layer, rms$"):
        checks.choice("norm", "batch", (None, "layer", "rms"))


def test_a_hint_at_a_flag():
    assert checks.nearest("hiden", ("hidden",), "--") == "; did you mean '--hidden'?"


words = st.text("abcd", max_size=8)


@given(words, words)
def test_distance_is_one(a, b):
    """None to itself, the same both ways, never more than writing it anew."""
    distance = checks._distance(a, b)
    assert (distance == 0) == (a == b)
    assert distance == checks._distance(b, a)
    assert abs(len(a) - len(b)) <= distance <= max(len(a), len(b))


@given(st.text("abcdefgh", min_size=2, max_size=8), st.data())
def test_letters_that_changed_places_are_one_slip(word, data):
    place = data.draw(st.integers(0, len(word) - 2))
    swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    assert checks._distance(word, swapped) <= 1


def test_a_very_long_word_is_no_trouble():
    assert checks.nearest("x" * 10**6, names.UNITS) == ""


@pytest.mark.parametrize("given", [0, -1, 2.0, "4", None, True])
def test_counts(given):
    checks.count("size", 1)
    with pytest.raises(ValueError, match=says("size must be a positive whole number, got", repr(given))):
        checks.count("size", given)


@pytest.mark.parametrize(
    ("check", "good", "bad", "message"),
    [
        (lambda s: checks.at_least(s, "value", 3), [3, 3.5, math.inf], [2, math.nan], "at least 3, got"),
        (lambda s: checks.at_most(s, "value", 3000), [3000, -1], [3001, math.nan], "at most 3,000, got"),
        (
            lambda s: checks.finite(s, "value"),
            [0, 1e300, -3],
            [math.nan, -math.inf, 10**400],
            "finite number",
        ),
        (lambda s: checks.probability(s, "value"), [0, 0.99], [1, -0.1, math.nan], "from 0 to below 1, got"),
    ],
    ids=["at_least", "at_most", "finite", "probability"],
)
def test_settings(check, good, bad, message):
    for value in good:
        check(Settings(value))
    for value in bad:
        with pytest.raises(ValueError, match=says("value must be ", message)):
            check(Settings(value))


def test_threads(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for number in (0, 1, 4):
        checks.threads(number)
    for number in (5, -1):
        with pytest.raises(ValueError, match=says("threads must be from 0 to 4,", "cores", f"got {number}")):
            checks.threads(number)


@dataclass
class Files:
    one: str | None = field(default=None, metadata=checks.FILE)
    several: list[str] = field(default_factory=list, metadata=checks.FILE)
    other: str | None = field(default="nothing/there", metadata=checks.FOLDER)
    text: str = "nothing/there"


def test_files(tmp_path):
    here = str(tmp_path / "file")
    (tmp_path / "file").touch()
    checks.files(Files())
    checks.files(Files(one=here, several=[here, here]))
    with pytest.raises(FileNotFoundError, match=f"^--several: there is no file {here}2$"):
        checks.files(Files(several=[here, f"{here}2"]))
    with pytest.raises(ValueError, match=f"^--one: {tmp_path} is a folder; expected a file$"):
        checks.files(Files(one=str(tmp_path)))
