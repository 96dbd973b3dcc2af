"""Lines in, lines out, in their order."""

import pytest
from tasks.trainings import given, lrn

from lrn.tasks.mt import predict
from lrn.tasks.mt.config import PredictConfig
from lrn.tasks.mt.task import TASK
from lrn.training.run import Run

LINES = ["The film begins at 3:46 pm.", "", "The lamp costs $5.", "☃ ☃☃", "On Friday."]


@pytest.fixture
def answers(run, capsys, monkeypatch):
    def ask(*words, lines=LINES):
        given(monkeypatch, "".join(f"{line}\n" for line in lines).encode())
        capsys.readouterr()
        assert lrn("predict", run, "--threads", 1, *words) == 0
        return capsys.readouterr().out.split("\n")[:-1]

    return ask


def test_a_line_for_a_line(answers):
    """An empty one for an empty one, and whatever it is for what nobody can know."""
    found = answers()
    assert len(found) == len(LINES)
    assert found[1] == ""
    assert found[0]
    assert not any("@@" in line or "<unk>" in line for line in found)


@pytest.mark.parametrize("size", [1, 2])
def test_whatever_is_translated_together(answers, size):
    assert answers("--batch_size", size) == answers()


def test_from_files(answers, tmp_path):
    expected = answers()
    for name, lines in (("a", LINES[:2]), ("b", LINES[2:])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    assert answers("--files", tmp_path / "a", tmp_path / "b") == expected


def test_several_of_each(answers):
    found = [line.split("\t") for line in answers("--nbest", 3)]
    assert [row[:2] for row in found[:3]] == [["1", "1"], ["1", "2"], ["1", "3"]]
    scores = [float(row[2]) for row in found[:3]]
    assert scores == sorted(scores, reverse=True)
    best = {row[0]: row[3] for row in found if row[1] == "1"}
    assert [best[str(number)] for number in range(1, 6)] == answers()
    assert [row for row in found if row[0] == "2"] == [["2", "1", "0.0000", ""]]


def test_drawn(answers):
    first, again, other = (answers("--temperature", 1.0, "--seed", seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first[1] == ""
    assert len(answers("--temperature", 1.0, "--nbest", 6)) == 6 * 4 + 1


def test_two_batches_are_not_drawn_alike(answers):
    found = answers("--temperature", 1.0, "--batch_size", 1, lines=[LINES[0]] * 4)
    assert len(set(found)) > 1


def test_words_apart(answers, run):
    found = answers("--tokenised", lines=LINES[:1])
    side = TASK.load(Run.open(run)).kept.codes.target
    assert side.plain(found[0].split()) == answers(lines=LINES[:1])[0]


def test_a_picture_of_attention(answers, run, tmp_path, capsys):
    answers("--alignment", tmp_path / "a.html", lines=["", LINES[0]])
    page = (tmp_path / "a.html").read_text()
    assert "&lt;eos&gt;" in page
    assert lrn("predict", run, "--alignment", tmp_path / "a.html") == 2
    assert "a.html exists; choose another name, or add --overwrite" in capsys.readouterr().err
    assert lrn("predict", run, "--alignment", tmp_path / "a.txt") == 2
    assert "a picture of attention ends in .html, .png, .svg" in capsys.readouterr().err


def test_nothing_to_draw(run, monkeypatch, tmp_path, capsys):
    given(monkeypatch, b"\n")
    assert lrn("predict", run, "--alignment", tmp_path / "a.html") == 2
    assert "there is no sentence whose attention could be drawn" in capsys.readouterr().err


def test_attention_is_that_of_the_translation(run):
    """A row for every piece and the end, which sums to one over the line and its end."""
    loaded = TASK.load(Run.open(run))
    lines = predict.Lines(loaded.model, loaded.kept.codes, PredictConfig())
    ((best,),) = lines.translate(LINES[:1])
    weights = lines.attention(LINES[0], best)
    assert len(weights) == len(best.pieces) + 1
    for piece in weights:
        for head in piece:
            assert len(head) == len(loaded.kept.codes.source.encode(LINES[0])) + 1
            assert sum(head) == pytest.approx(1, abs=1e-5)


def test_a_thousand_words(answers):
    """It ends."""
    assert len(answers("--beam", 1, lines=["a " * 1000])) == 1
