"""Tagging lines of text: every form, whatever comes in."""

import json

import pytest
from tasks.ner.cases import learner
from tasks.trainings import given, lrn

from lrn.tasks.ner import predict
from lrn.tasks.ner.data import encode
from lrn.tasks.ner.model import Tagger


@pytest.mark.parametrize("form", ["conll", "json", "colour"])
def test_predict(run, form, capsys, monkeypatch):
    """Blank lines are sentences without words: what comes out can be laid beside what went in."""
    given(monkeypatch, b"Anna left Borvik.\n\nNobody answered .\n")
    assert lrn("predict", run, "--format", form) == 0
    said = capsys.readouterr().out
    if form == "json":
        first, second, third = map(json.loads, said.splitlines())
        assert first["words"] == ["Anna", "left", "Borvik", "."]
        assert second == {"words": [], "tags": [], "entities": []}
        assert len(third["tags"]) == 3
    elif form == "conll":
        first, second, third, end = sentences_of(said)
        assert [line.partition("\t")[0] for line in first] == ["Anna", "left", "Borvik", "."]
        assert second == end == []
        assert len(third) == 3
    else:
        assert "Borvik" in said
        assert said.count("\n") == 3


def sentences_of(said):
    """The lines of each sentence in CoNLL's form, where a blank line ends one; what stands after the last."""
    sentences = [[]]
    for line in said.splitlines():
        if line:
            sentences[-1].append(line)
        else:
            sentences.append([])
    return sentences


def test_entities_as_they_stand_in_the_text(run, capsys, monkeypatch):
    tags = ["B-PER", "I-PER", "I-PER", "I-PER", "O", "B-LOC", "O"]
    monkeypatch.setattr(Tagger, "tag", lambda self, batch: [tags])
    given(monkeypatch, "José O'Neill of  Rome.\n".encode())
    assert lrn("predict", run, "--format", "json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["words"] == ["José", "O", "'", "Neill", "of", "Rome", "."]
    assert said["entities"] == [
        {"type": "PER", "start": 0, "end": 4, "text": "José O'Neill"},
        {"type": "LOC", "start": 5, "end": 6, "text": "Rome"},
    ]


def test_no_tag_is_padding(run, capsys, monkeypatch):
    monkeypatch.setattr(Tagger, "tag", lambda self, batch: [["<pad>"]])
    given(monkeypatch, b"Anna\n")
    assert lrn("predict", run, "--format", "conll") == 0
    assert capsys.readouterr().out == "Anna\tO\n\n"


@pytest.mark.parametrize("size", [1, 7, 64])
def test_sentences_are_tagged_in_the_order_given(size, monkeypatch):
    """And one without words has no tags, wherever it stands."""
    monkeypatch.setattr(predict, "SENTENCES", size)
    student, told = learner(), []
    sentences = [(), *(sentence.words for sentence in student.data.test[:20]), ()]
    student.model.eval()
    codes = student.kept.codes
    found = predict.tag_all(student.model, codes, sentences, told.append)
    alone = [student.model.tag(encode([words], codes))[0] for words in sentences[1:-1]]
    assert found == [[], *alone, []]
    assert told[-1] == 1
    assert told == sorted(told)


@pytest.mark.parametrize("where", ["standard input", "file"])
def test_input_that_is_no_text(run, where, tmp_path, capsys, monkeypatch):
    content = b"Anna left.\nBorvik \xff\xfe\n"
    (tmp_path / "file").write_bytes(content)
    given(monkeypatch, content)
    words = [] if where == "standard input" else ["--files", tmp_path / "file"]
    assert lrn("predict", run, "--format", "conll", *words) == 2
    said = capsys.readouterr().err
    assert f"{where}, line 2: not UTF-8 text" in said
    assert said.count("\n") == 1
