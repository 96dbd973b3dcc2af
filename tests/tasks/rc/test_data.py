"""Questions about paragraphs: cutting, answers' places, limits, numbers and batches."""

import numpy as np
import pytest
import torch
from tasks.rc.cases import PARAGRAPHS, QUESTIONS, batch, codes

from lrn.tasks.rc.config import RCConfig
from lrn.tasks.rc.data import (
    NOWHERE,
    Codes,
    Cut,
    _collect,
    answer_span,
    clean,
    encode_words,
    read_builtin,
)
from lrn.tasks.rc.squad import Asked, Passage

TEXT = "Anna Novak ''slept'' in Oslo (since 1066)."


def collect(*parts, **own):
    given = {"source": "here"}
    return _collect(parts, RCConfig(**own), lambda share: None, given)


def passage(text=TEXT, *asked):
    return Passage(text, asked or (Asked("Who slept?", (("Anna Novak", 0),)),))


# Cutting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a ''b''", "``c``", "'''", "plain", ""])
def test_cleaning_moves_nothing(text):
    assert len(clean(text)) == len(text)
    assert clean(text) == text.replace("''", '" ').replace("``", '" ')


def test_tokens_stand_where_they_are_said_to():
    cut = Cut.of(TEXT)
    assert [cut.text[a:b] for a, b in zip(cut.starts, cut.ends, strict=True)] == list(cut.words)
    assert cut.text == clean(TEXT)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("Anna Novak", ["Anna", "Novak"]),
        ("Anna", ["Anna"]),
        (").", [")", "."]),
        ("Nov", ["Novak"]),  # tokens of which it has a part
        ("slept", ["slept"]),
        ("slo (sin", ["Oslo", "(", "since"]),
        (TEXT, None),
    ],
)
def test_where_an_answer_stands(answer, words):
    cut = Cut.of(TEXT)
    first, last = answer_span(TEXT, cut, Asked("", ((answer, TEXT.index(answer)),)))
    assert list(cut.words[first : last + 1]) == (words or list(cut.words))


def test_of_several_answers_the_last_that_fits():
    cut = Cut.of(TEXT)
    answers = (("Anna", 0), ("Novak", 5), ("Oslo", 3), ("", 7), ("Anna", -42))
    assert answer_span(TEXT, cut, Asked("", answers)) == (1, 1)
    assert answer_span(TEXT, cut, Asked("", answers[2:])) is None
    assert answer_span(TEXT, cut, Asked("", ())) is None


# The data set -------------------------------------------------------------------------------------


def test_what_is_kept_of_a_question():
    golds = (("Oslo", TEXT.index("Oslo")), ("in Oslo", TEXT.index("in Oslo")))
    data = collect(*[[passage(TEXT, Asked("Where?", golds), Asked("Who?", (("Anna", 0),)))]] * 3)
    part = data.train
    assert part.asked == ("Where?", "Who?")
    assert part.answers == (("Oslo", "in Oslo"), ("Anna",))
    assert part.about.tolist() == [0, 0]
    assert part.words(0, *part.spans[0]) == ("in Oslo", TEXT.index("in Oslo"))
    assert part.words(1, *part.spans[1]) == ("Anna", 0)
    assert [data.types[number] for number in part.questions[0]] == ["Where", "?"]
    assert [data.types[number] for number in part.paragraphs[0]] == list(Cut.of(TEXT).words)
    assert part.lengths.tolist() == [len(Cut.of(TEXT).words)] * 2
    assert data.counts[data.types.index("Oslo")].tolist() == [1, 1, 1]


def test_misplaced_answers_are_counted():
    """They are not learnt from, and scored where they are tested."""
    bad = Asked("Where?", (("Oslo", 0),))
    data = collect(*[[passage(), passage(TEXT + " So.", bad)]] * 3)
    assert [data.about[part]["misplaced"] for part in ("train", "valid", "test")] == [1, 1, 1]
    assert (len(data.train), len(data.valid), len(data.test)) == (1, 2, 2)
    assert len(data.train.texts) == 1
    assert tuple(data.test.spans[1]) == NOWHERE
    assert data.test.answers[1] == ("Oslo",)


def test_what_is_too_long_is_counted():
    tokens = len(Cut.of(TEXT).words)
    long_question = Asked("so " * 60 + "?", (("Anna", 0),))
    parts = [[passage(), passage(TEXT * 2), passage(TEXT, long_question)]] * 3
    data = collect(*parts, longest=tokens, longest_question=50)
    assert [data.about[part]["too_long"] for part in ("train", "valid", "test")] == [2, 2, 0]
    assert [len(part) for part in (data.train, data.valid, data.test)] == [1, 1, 3]
    assert data.train.unread == (("Who slept?", ("Anna Novak",)), (long_question.text, ("Anna",)))
    assert data.about["train"]["asked"] == 3


def test_the_test_has_limits_of_its_own():
    long_text = TEXT + " and" * 1000
    data = collect([passage()], [passage()], [passage(), passage(long_text)])
    assert (len(data.test), data.about["test"]["too_long"]) == (1, 1)


def test_a_part_without_questions():
    with pytest.raises(ValueError, match="here: the valid part has no question that can be used"):
        collect([passage()], [passage("")], [passage()])


def test_another_text_is_other_data():
    first, same, other = (
        collect([passage()], [passage()], [passage(text)]).about["fingerprint"]
        for text in (TEXT, TEXT, TEXT + "!")
    )
    assert first == same != other


def test_the_built_in_data():
    data = read_builtin(RCConfig(paragraphs=60))
    assert data.about["train"]["paragraphs"] == 60
    assert data.about["valid"]["paragraphs"] == data.about["test"]["paragraphs"] == 50
    for part in (data.train, data.valid, data.test):
        for number in range(len(part)):
            text, _ = part.words(number, *part.spans[number])
            assert text == part.answers[number][0]
    assert all(data.about[part]["misplaced"] == 0 for part in ("train", "valid", "test"))


# Numbers ------------------------------------------------------------------------------------------


def test_a_word_is_looked_up_in_several_forms():
    known = Codes.of(["a"], ["Paris", "paris", "NATO", "the", "Rome"])
    found = {
        word: known.words.words[known.number(word)] for word in ("Paris", "PARIS", "nato", "The", "ROME", "x")
    }
    expected = ["Paris", "paris", "NATO", "the", "Rome", "<unk>"]
    assert list(found.values()) == expected


def test_all_characters_of_the_first_sixteen():
    known = Codes.of(["ab", "c" * 16 + "d"], [])
    assert known.characters.words == ("<pad>", "<unk>", "a", "b", "c")
    characters = known.table(["c" * 20, "dab"]).characters
    assert characters.shape == (2, 16)
    assert characters[1, :3].tolist() == [1, 2, 3]


# Batches ------------------------------------------------------------------------------------------


def test_a_batch_has_every_word_at_its_place():
    made, known = batch(), codes()
    numbers = [[known.number(word) for word in row] for row in PARAGRAPHS + QUESTIONS]
    assert made.both.pack(_padded(numbers)).data.tolist() == made.tokens.words.tolist()
    for packing, places, rows in (
        (made.paragraphs, made.paragraph_places, numbers[:3]),
        (made.questions, made.question_places, numbers[3:]),
    ):
        assert made.tokens.words[places].tolist() == packing.pack(_padded(rows)).data.tolist()
    apart = torch.cat([made.tokens.words[made.paragraph_places], made.tokens.words[made.question_places]])
    assert torch.equal(apart[made.joint], made.tokens.words)
    assert made.spans.shape == (0, 2)


def _padded(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def test_characters_are_packed():
    made, known = batch(), codes()
    packing = made.tokens.character_packing
    spelt = {tuple(row[row != 0].tolist()) for row in made.tokens.characters}
    words = {word[:16] for row in PARAGRAPHS + QUESTIONS for word in row}
    assert spelt == {tuple(known.characters.encode(list(word))) for word in words}
    assert packing.mask.shape == made.tokens.characters.shape
    assert torch.equal(packing.mask, made.tokens.characters != 0)


def test_all_of_a_batch_moves():
    moved = batch(layers=2).to("meta")
    assert moved.both.rows.device.type == moved.context.questions.device.type == "meta"
    assert moved.both.lengths.device.type == "cpu"


def test_an_unknown_word_is_spelt():
    made = encode_words([["Oslo", "zzz"]], [["Oslo"]], codes())
    assert 1 in made.tokens.words.tolist()
    assert np.array_equal(np.sort(made.both.lengths.numpy()), [1, 2])
