"""The pattern finds what going through a text character by character finds."""

from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrn.text.tokens import basic_tokens

RANGES = """4E00-9FFF 3400-4DBF 20000-2A6DF 2A700-2B73F 2B740-2B81F 2B820-2CEAF F900-FAFF 2F800-2FA1F"""
IDEOGRAPHS = [tuple(int(end, 16) for end in part.split("-")) for part in RANGES.split()]


def is_alone(character):
    code = ord(character)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    ideograph = any(first <= code <= last for first, last in IDEOGRAPHS)
    return ascii_sign or ideograph or category(character).startswith("P")


def slow_tokens(text):
    spaced = ""
    for character in text:
        if character == "\ufffd" or (category(character) in ("Cc", "Cf") and character not in "\t\n\r"):
            continue
        if category(character) == "Zs":
            spaced += " "
        elif is_alone(character):
            spaced += f" {character} "
        else:
            spaced += character
    return spaced.split()


TRICKY = "aZ09 éß_$+^`~'\"-.,«»¿東京𠀀、한𝒳😀"
TRICKY += "\t\n\r\v\f\0\x1c\x1f\x85\xa0\xad\u200b\u200d\u2028\u2029\u3000\ufeff\ufffd\U000e0001"


@settings(max_examples=100)
@given(st.text() | st.text(TRICKY) | st.text("ab.é東 \u200b"))
def test_any_text(text):
    assert basic_tokens(text) == slow_tokens(text)


def test_every_character():
    """Also between letters, where it may part them or join them; of ideographs and the like, the borders."""
    borders = {end + step for pair in IDEOGRAPHS for end in pair for step in (-1, 0, 1)}
    plain = ("Lo", "Cn", "Co", "Cs")
    codes = borders | {code for code in range(0x110000) if category(chr(code)) not in plain}
    for code in sorted(codes):
        text = f"a{chr(code)}b"
        assert basic_tokens(text) == slow_tokens(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n\u2003", []),
        ("Ab\u00adc\0d", ["Abcd"]),
        ("naïve café-bar", ["naïve", "café", "-", "bar"]),
        ("a_b $5 2^3", ["a", "_", "b", "$", "5", "2", "^", "3"]),
        ("...", [".", ".", "."]),
        ("日本のIT", ["日", "本", "のIT"]),
    ],
)
def test_examples(text, tokens):
    assert basic_tokens(text) == tokens
