"""Made sentences: one translation each, and the parts have none in common."""

import random
import re

import pytest

from lrn.tasks.mt import generator
from lrn.tasks.mt.generator import in_words, ordinal, pairs
from lrn.training.config import PARTS


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (0, "zero", "null"),
        (1, "one", "eins"),
        (12, "twelve", "zwölf"),
        (16, "sixteen", "sechzehn"),
        (21, "twenty-one", "einundzwanzig"),
        (37, "thirty-seven", "siebenunddreißig"),
        (70, "seventy", "siebzig"),
        (99, "ninety-nine", "neunundneunzig"),
    ],
)
def test_numbers_in_words(number, english, german):
    assert in_words(number) == (english, german)


def test_every_number_in_words_is_another():
    for language in (0, 1):
        assert len({in_words(number)[language] for number in range(100)}) == 100


def test_ordinals():
    found = [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 28)]
    assert found == "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 28th".split()


def test_every_sentence_has_one_translation():
    draw, known = random.Random(1), {}
    for _ in range(20_000):
        english, german = draw.choice(generator.SENTENCES)(draw)
        assert known.setdefault(english, german) == german


def test_parts_have_nothing_in_common():
    found = {part: {english for english, _ in pairs(400, part=part)} for part in PARTS}
    assert all(len(sentences) == 400 for sentences in found.values())
    assert not found["train"] & found["valid"]
    assert not found["train"] & found["test"]
    assert not found["valid"] & found["test"]


def test_the_same_seed_makes_the_same():
    assert pairs(50, seed=3) == pairs(50, seed=3) != pairs(50, seed=4)
    with pytest.raises(ValueError, match="unknown part 'dev'"):
        pairs(1, part="dev")


def times():
    draw = random.Random(2)
    return dict(generator.time(draw) for _ in range(5000))


def test_times():
    """What the clock says is what the words say."""
    found = times()
    assert found["half past twelve"] == "halb eins"
    assert found["a quarter to one"] == "Viertel vor eins"
    assert found["one o'clock"] == "ein Uhr"
    for english, german in found.items():
        clock = re.fullmatch(r"(\d+):(\d\d) ([ap]m)", english)
        if clock:
            hour = int(clock[1]) % 12 + (12 if clock[3] == "pm" else 0)
            assert german == f"{hour}:{clock[2]} Uhr"


def test_amounts():
    draw = random.Random(2)
    for _ in range(2000):
        english, german = generator.amount(draw)
        numbers = re.search(r"[\d,.]+", english)
        if numbers:
            assert german.split()[0] == numbers[0].replace(",", "_").replace(".", ",").replace("_", ".")


def test_german_grammar():
    """Objects in their case, and verbs where they belong."""
    found = dict(pairs(3000))
    assert any(german.endswith("bezahlt.") and " für den Stuhl " in german for german in found.values())
    assert not any(" für der " in german for german in found.values())
    assert all(german[0].isupper() and german[-1] == "." for german in found.values())
