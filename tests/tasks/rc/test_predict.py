"""Answering questions: from files and standard input, as text and as JSON, and on a page."""

import io
import json
import sys

import pytest
import torch
from tasks.rc.cases import model
from tasks.trainings import lrn

from lrn.tasks.rc.data import Cut, encode_words
from lrn.tasks.rc.predict import answerer

TEXT = "Anna Novak was born in Linz.\nShe ''moved'' to Oslo in 1066.\n"
ASKED = "Where was she born?\n\nWhen did she move to Oslo?\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "asked.txt").write_text(ASKED)
    return ["--text", tmp_path / "text.txt", "--files", tmp_path / "asked.txt"]


@pytest.fixture
def typed(monkeypatch):
    def give(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_json_says_what_and_where(run, files, capsys):
    assert lrn("predict", run, *files, "--format", "json", "--best", 3) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["question"] for line in lines] == [line for line in ASKED.splitlines() if line]
    whole = TEXT.rstrip("\n").replace("''", '" ')
    for line in lines:
        assert {key: line[key] for key in line["best"][0]} == line["best"][0]
        assert len(line["best"]) == 3
        shares = [answer["probability"] for answer in line["best"]]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1
        for answer in line["best"]:
            assert whole[answer["start"] : answer["end"]] == answer["text"]


def test_text_and_questions_may_be_typed(run, files, typed, capsys):
    assert lrn("predict", run, *files) == 0
    expected = capsys.readouterr().out
    assert len(expected.splitlines()) == 2
    assert all(len(line.split("\t")) == 3 for line in expected.splitlines())
    typed(ASKED)
    assert lrn("predict", run, *files[:2]) == 0
    assert capsys.readouterr().out == expected
    typed(TEXT)
    assert lrn("predict", run, *files[2:]) == 0
    assert capsys.readouterr().out == expected


def test_in_a_terminal_they_are_asked_for(run, monkeypatch, capsys):
    given = iter(["Anna sleeps.", "Who sleeps?"])
    asked = []

    def answer(prompt):
        asked.append(prompt)
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    typed_in = io.StringIO()
    typed_in.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", typed_in)
    monkeypatch.setattr("builtins.input", answer)
    assert lrn("predict", run) == 0
    assert asked == ["text: ", "question: ", "question: "]
    assert len(capsys.readouterr().out.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "the text is empty"), (None, "there is no text to ask about")],
)
def test_nothing_to_read(run, text, said, files, tmp_path, typed, capsys):
    typed(ASKED)
    if text is None:
        words = []
    else:
        (tmp_path / "text.txt").write_text(text)
        words = files
    assert lrn("predict", run, *words) == 2
    assert said in capsys.readouterr().err


def test_the_page(run, files, tmp_path, capsys):
    assert lrn("predict", run, *files, "--html", tmp_path / "a.html", "--best", 2) == 0
    page = (tmp_path / "a.html").read_text()
    assert "wrote" in capsys.readouterr().err
    assert page.count("<section>") == 2
    assert page.count("<li>") == 4
    (tmp_path / "asked.txt").write_text("\n")
    assert lrn("predict", run, *files, "--html", tmp_path / "b.html") == 2
    assert "no question" in capsys.readouterr().err
    assert not (tmp_path / "b.html").exists()


# The best answers ---------------------------------------------------------------------------------


def test_probabilities_are_those_of_all_spans():
    """Of a short text all spans are allowed, and answers with no limit of length are all there are."""
    from tasks.rc.cases import codes

    net, known = model().eval(), codes()
    answer = answerer(net, lambda texts, asked: encode_words(texts, asked, known), longest=16)
    text = Cut.of("Oslo lies at the fjord")
    found = answer(text, Cut.of("Where ?"), 100)
    assert len(found.answers) == 5 * 6 / 2
    best = found.answers[0]
    assert best.probability == max(one.probability for one in found.answers)
    reading = net(encode_words([text.words], [("Where", "?")], known))
    shares = reading.first.softmax(1)[0][:, None] * reading.last.softmax(1)[0]
    assert sum(one.probability for one in found.answers) == pytest.approx(
        shares.triu().sum().item(), abs=1e-6
    )
    place = shares.triu().argmax()
    assert (best.start, best.end) == (text.starts[place // 5], text.ends[place % 5])
    assert torch.tensor(found.looked).sum(1).tolist() == pytest.approx([1] * 5)


def test_a_text_of_one_word():
    from tasks.rc.cases import codes

    answer = answerer(model().eval(), lambda a, b: encode_words(a, b, codes()), longest=16)
    (only,) = answer(Cut.of("Oslo"), Cut.of("Where does the king lie , and when is it ?"), 5).answers
    assert (only.text, only.start, only.end) == ("Oslo", 0, 4)
    assert only.probability == pytest.approx(1)
