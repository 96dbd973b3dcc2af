"""Labelling pairs that come on lines, and drawing what was attended to."""

import io
import json
import sys

import pytest
from tasks.trainings import lrn

PAIR = "some dogs were asleep\tno dogs were asleep"


@pytest.fixture
def given(monkeypatch):
    def give(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_text_and_json(run, given, capsys):
    given(f"{PAIR}\n||| no dogs\n")
    assert lrn("predict", run) == 0
    first, second = capsys.readouterr().out.splitlines()
    label, shares = first.split("\t")
    assert f"{label} " in shares
    assert second
    given(f"{PAIR}\n")
    assert lrn("predict", run, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["label"] == label == max(found["probabilities"], key=found["probabilities"].get)
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert found["hypothesis"] == ["no", "dogs", "were", "asleep"]


def test_from_files(run, tmp_path, capsys):
    (tmp_path / "pairs.tsv").write_text(f"{PAIR}\n" * 3)
    assert lrn("predict", run, "--files", tmp_path / "pairs.tsv") == 0
    assert len(set(capsys.readouterr().out.splitlines())) == 1


@pytest.mark.parametrize("line", ["some dogs were asleep", "a\tb\tc"])
def test_lines_that_are_no_pairs(run, line, given, capsys):
    given(f"{PAIR}\n{line}\n")
    assert lrn("predict", run) == 2
    said = capsys.readouterr().err
    assert "line 2: expected a premise and a hypothesis with a tab or ||| between them" in said


@pytest.mark.parametrize("form", ["html", "png", "svg"])
def test_attention(run, form, given, tmp_path, capsys):
    given(f"{PAIR}\n")
    path = tmp_path / f"attention.{form}"
    assert lrn("predict", run, "--attention", path) == 0
    assert f"wrote {path}" in capsys.readouterr().err
    assert path.stat().st_size > 1000
    if form == "html":
        page = path.read_text()
        assert all(f"<span>{word}</span>" in page for word in PAIR.split("\t")[0].split())
    given(f"{PAIR}\n")
    assert lrn("predict", run, "--attention", path) == 2
    assert "exists; choose another name, or add --overwrite" in capsys.readouterr().err
    given(f"{PAIR}\n")
    assert lrn("predict", run, "--attention", path, "--overwrite") == 0


@pytest.mark.parametrize(
    ("name", "said"), [("a.gif", "ends in .html, .png, .svg"), ("none/a.png", "there is no folder")]
)
def test_pictures_that_cannot_be(run, name, said, tmp_path, capsys):
    assert lrn("predict", run, "--attention", tmp_path / name) == 2
    assert said in capsys.readouterr().err


def test_nothing_to_draw(run, given, tmp_path, capsys):
    given("")
    assert lrn("predict", run, "--attention", tmp_path / "a.png") == 2
    assert "there is no pair whose attention could be drawn" in capsys.readouterr().err
