"""The tagger's settings: the paper's, and what makes no sense is refused by name."""

import math

import pytest
from helpers import says

from lrn.tasks.ner.config import PRESETS, NERConfig, PredictConfig


def test_the_papers_setting():
    config = NERConfig(**PRESETS["paper"])
    widths = (config.word_width, config.char_width, config.char_hidden, config.hidden, config.dense)
    assert widths == (100, 25, 25, 100, 100)
    assert (config.epochs, config.lr, config.batch_size, config.dropout) == (30, 1e-3, 32, 0.5)
    assert (config.drop_words, config.ema, config.clip) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("word_width", "char_width", "char_hidden", "hidden", "dense")),
        ("batch_size", 0),
        ("sentences", -1),
        ("dropout", 1.0),
        ("drop_words", math.nan),
    ],
)
def test_wrong_settings(name, value):
    with pytest.raises(ValueError, match=says(name, str(value))):
        NERConfig(**{name: value})


def test_sentences_are_made_for_the_built_in_data_alone():
    with pytest.raises(
        ValueError, match="sentences is for the built-in data only: with --data all of it is read"
    ):
        NERConfig(data="folder", sentences=7)


def test_unknown_format():
    with pytest.raises(ValueError, match=r"unknown format 'jsno'; allowed: .*; did you mean 'json'\?"):
        PredictConfig(format="jsno")
