"""The reading model as a task: what it learns from, how it is scored, and that it learns."""

import json

import numpy as np
import pytest
import torch
from tasks.rc.cases import article, learner, train_run, write_squad
from tasks.trainings import ALONE, lrn, metrics

from lrn.tasks.rc import generator
from lrn.tasks.rc.config import EvaluateConfig
from lrn.tasks.rc.score import ANSWER_LENGTHS, QUESTION_WORDS
from lrn.tasks.rc.task import TASK, answer
from lrn.training.learner import Place


def ignore(share):
    pass


def test_an_epoch_has_every_question_once():
    made = learner(batch_size=16)
    plan = made.plan(3)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(made.data.train)))
    assert all(len(piece) == 16 for piece in plan[:-1]) or sum(len(piece) != 16 for piece in plan) == 1
    assert [piece.tolist() for piece in made.plan(3)] == [piece.tolist() for piece in plan]
    assert [piece.tolist() for piece in made.plan(4)] != [piece.tolist() for piece in plan]


def test_a_batch_is_of_questions_and_their_paragraphs():
    made = learner()
    part, piece = made.data.train, np.array([7, 2])
    batch = made.batch(piece, ALONE)
    table = made.kept.table(made.data)
    words = torch.from_numpy(table.words)
    for row, number in enumerate(piece):
        paragraph = words[part.paragraphs[part.about[number]]]
        question = words[part.questions[number]]
        assert torch.equal(batch.tokens.words[batch.both.rows == row], paragraph)
        assert torch.equal(batch.tokens.words[batch.both.rows == row + 2], question)
        assert batch.spans[row].tolist() == part.spans[number].tolist()
    assert made.tokens(piece) == len(batch.both.rows)
    assert len(made.batch(piece, Place(1, 2)).spans) == 1


def test_answers_do_not_depend_on_what_is_beside_them(monkeypatch):
    made = learner()
    made.model.eval()
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        together, losses = answer(made.loaded, made.data, "valid", ignore)
        monkeypatch.setattr("lrn.tasks.rc.task.QUESTIONS", 1)
        alone, own = answer(made.loaded, made.data, "valid", ignore)
    assert together == alone
    assert losses == pytest.approx(own)
    texts = made.data.valid.texts
    for number, (text, start) in enumerate(alone):
        assert texts[made.data.valid.about[number]][start:].startswith(text)
        assert 1 <= len(text.split()) <= 16


def test_the_loss_of_scoring_is_that_of_training():
    made = learner()
    made.model.eval()
    numbers = np.arange(len(made.data.valid))
    with torch.no_grad():
        expected = made.model.loss(made.kept.batch(made.data, "valid", numbers)).item()
    found = TASK.score(made.loaded, made.data, EvaluateConfig(part="valid")).figures["loss"]
    assert found == pytest.approx(expected, rel=1e-5)


def test_unread_questions_count_in_the_test(tmp_path, capsys):
    """As in the official script; and an answer without a place is scored by its text."""
    folder = write_squad(tmp_path / "squad", official=True)
    passages = list(generator.paragraphs(2, part="test", seed=3))
    dev = article("Dev", passages)
    dev["paragraphs"][0]["context"] = "so " * 1100 + passages[0].text
    dev["paragraphs"][1]["qas"][0]["answers"][0]["answer_start"] += 1
    (folder / "dev-v1.1.json").write_text(json.dumps({"data": [dev]}))
    out = tmp_path / "run"
    sizes = "--word_width 8 --char_width 4 --char_hidden 4 --hidden 8 --threads 1 --epochs 1".split()
    assert lrn("train", "rc", "--data", folder, "--out", out, *sizes) == 0
    said = capsys.readouterr().err
    asked = [len(passage.questions) for passage in passages]
    assert f"test {asked[1]} questions ({asked[0]} too long, 1 with misplaced answers)" in said
    assert lrn("evaluate", out) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["questions"] == sum(asked)
    for names in (QUESTION_WORDS, ANSWER_LENGTHS):
        assert sum(found[name]["questions"] for name in names if name in found) == sum(asked)
    assert lrn("evaluate", out, "--part", "valid") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == asked[1]


def test_what_a_run_says(run, folder):
    found = metrics(run)
    for name in ("test_f1", "test_exact", "test_loss", "test_f1_last_epoch", "valid_f1"):
        assert name in found
    about = json.loads((run / "about.json").read_text())
    assert about["vectors"] == {
        "file": "vectors.txt",
        "words": 2,
        "width": 4,
        "coverage": about["vectors"]["coverage"],
    }
    assert len(about["data"]["tested_articles"]) == 2
    assert about["data"]["train"]["misplaced"] == 0


def test_version_2_is_refused_before_anything_is_made(tmp_path, capsys):
    folder = write_squad(tmp_path / "squad")
    content = json.loads((folder / "some.json").read_text()) | {"version": "v2.0"}
    (folder / "some.json").write_text(json.dumps(content))
    assert train_run(folder, tmp_path / "run") == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lrn: ")]
    assert "is SQuAD v2.0" in line
    assert not (tmp_path / "run").exists()


def test_the_papers_figures_are_for_its_data_alone():
    def printed(preset, asked):
        return TASK.printed({"preset": preset}, {"train": {"asked": asked}})

    assert printed("paper", 87_599)["lrn"] == "78.83"
    assert printed("paper-elmo", 87_599)["lrn"] == "83.83"
    assert printed("paper", 9_910) == printed("quick", 87_599) == {}


def test_it_learns():
    """Some questions by heart."""
    torch.manual_seed(1)
    made = learner(hidden=16, char_hidden=8, word_width=16, optimizer="adam", lr=1e-2, dropout=0.0)
    made.model.float().train()
    optimizer = torch.optim.Adam(made.model.parameters(), 1e-2)
    batch = made.batch(np.arange(0, 40, 3), ALONE)
    losses = []
    for _ in range(40):
        loss = made.loss(batch).objective
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
