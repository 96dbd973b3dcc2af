"""The sliding window: the sentence with most words of the question, and in it what stands among them."""

import pytest

from lrn.tasks.rc.baseline import answer_text, candidates, find_answer

TEXT = "Rome has 12 gates. In 1873 the old mill of Ada Lind burned, and the dam broke in Oslo. Ada slept."


def cut(text):
    """Tokens, none of which comes up again as a part of an earlier one, and where they stand."""
    tokens = text.replace(".", " .").replace(",", " ,").replace("?", " ?").split()
    spans, at = [], 0
    for token in tokens:
        at = text.index(token, at)
        spans.append((at, at := at + len(token)))
    return spans, tokens


def answer(question, **options):
    spans, tokens = cut(TEXT)
    return answer_text(TEXT, spans, tokens, cut(question)[1], **options)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Whose mill burned?", "Ada Lind"),
        ("Where did the dam break?", "broke"),  # which is what overlap says
        ("How many gates does Rome have?", "12"),
        ("Who slept?", "Ada"),
    ],
)
def test_answers(question, expected):
    assert answer(question) == expected


def test_the_kind_of_answer_can_be_asked_for():
    assert answer("When did the mill burn?", typed=True) == "1873"
    assert answer("Where did the dam break?", typed=True) == "Oslo"


def test_candidates():
    tokens = "In 1873 the old mill of Ada Lind burned , 12 metres from Oslo .".split()
    found = [" ".join(tokens[first : last + 1]) for first, last in candidates(tokens, {"mill"})]
    assert found == ["1873", "old", "Ada Lind", "Ada Lind burned", "12", "12 metres", "Oslo"]
    assert all(last - first < 5 for first, last in candidates(["Word"] * 9, set()))


def test_rare_words_count_more_than_frequent_ones():
    """Both sentences have one word of the question; that of the second stands only there."""
    text = "river in Bern ; river of river ; castle in Chur .".split()
    assert find_answer(text, ["river", "castle"]) == (10, 10)


@pytest.mark.parametrize("text", [["."], ["the"], ["Rome"], ["the", "of"]])
def test_there_is_always_an_answer(text):
    assert find_answer(text, "Where is Rome ?".split()) == (0, 0)


def test_a_question_without_words_and_no_paragraph():
    assert find_answer("the Rome".split(), ["?"]) == (1, 1)
    with pytest.raises(ValueError, match="at least one word"):
        find_answer([], ["Who", "?"])
