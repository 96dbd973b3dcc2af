"""The demonstration learns, and says what it must."""

import math

import torch

from lrn import demo


def test_it_trains_both_and_prints_a_table(capsys):
    settings = demo.Settings(width=32, layers=1, steps=40, batch=8, length=32, seconds=60)
    contestants = demo.run(settings)
    assert [c.name for c in contestants] == ["LRN", "nn.LSTM"]
    for c in contestants:
        assert len(c.seconds) == 40
        assert c.loss < math.log2(103) - 1  # below guessing among the text's 103 characters
    said = capsys.readouterr().out
    for words in ("LRN", "nn.LSTM", "parameters", "loss", "tokens/s", "3,168", "8,448"):
        assert words in said


def test_it_stops_in_time(capsys):
    contestants = demo.run(demo.Settings(width=16, layers=1, steps=100_000, batch=2, length=8, seconds=0.5))
    assert 1 < len(contestants[0].seconds) < 100_000


def test_an_interrupt_still_shows_what_there_is(monkeypatch, capsys):
    """Ctrl-C ends the training, not the program."""
    step = demo.Contestant.train_step

    def interrupted(self, text):
        if len(self.seconds) == 3 and self.name == "nn.LSTM":
            raise KeyboardInterrupt
        step(self, text)

    monkeypatch.setattr(demo.Contestant, "train_step", interrupted)
    demo.run(demo.Settings(width=16, layers=1, steps=50, batch=2, length=8))
    said = capsys.readouterr().out
    assert "stopped" in said
    assert "tokens/s" in said


def test_the_same_seed_gives_the_same_losses(capsys):
    settings = demo.Settings(width=16, layers=1, steps=3, batch=2, length=8)
    first, second = demo.run(settings), demo.run(settings)
    assert [c.loss for c in first] == [c.loss for c in second]


def test_held_out_text_is_not_trained_on():
    train, held_out, characters = demo.read_text()
    assert len(held_out) > 40_000
    assert int(torch.cat([train, held_out]).max()) == characters - 1
