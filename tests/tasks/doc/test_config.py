"""The classifier's settings: the paper's, and what makes no sense is refused by name."""

import math

import pytest
from helpers import says

from lrn.tasks.doc.config import PRESETS, DocConfig, MemoryConfig, PredictConfig


def test_the_papers_setting():
    config = DocConfig(**PRESETS["paper"])
    assert (config.word_width, config.char_width, config.hidden) == (300, 32, 64)
    assert (config.dropout, config.drop_words, config.smoothing) == (0.1, 0.1, 0.1)
    assert (config.epochs, config.lr, config.decay, config.l2) == (6, 1e-3, 0.5, 3e-5)
    assert (config.clip, config.ema, config.batch_size) == (5, 0.9999, 64)
    assert (config.longest, config.pooling, config.activation) == (400, "attention", "tanh")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("min_count", "word_width", "char_width", "hidden", "batch_size")),
        ("documents", 5),
        ("l2", -1.0),
        ("longest", -1),
        ("longest_test", -1),
        ("dropout", 1.0),
        ("drop_words", -0.1),
        ("smoothing", math.nan),
        ("decay", 0.0),
        ("decay", 1.5),
        ("pooling", "atention"),
        ("activation", "relu"),
    ],
)
def test_wrong_settings(name, value):
    with pytest.raises(ValueError, match=says(name, str(value))):
        DocConfig(**{name: value})


def test_unknown_built_in_data():
    with pytest.raises(
        ValueError, match=r"unknown built-in data 'builtin:ceus'; .* did you mean 'builtin:cues'\?"
    ):
        DocConfig(data="builtin:ceus")


def test_unknown_format():
    with pytest.raises(
        ValueError, match=r"unknown format 'jsno'; allowed: text, json; did you mean 'json'\?"
    ):
        PredictConfig(format="jsno")


@pytest.mark.parametrize("own", [{}, {"text": "a", "file": "b"}])
def test_memory_of_a_text_or_a_file(own):
    with pytest.raises(ValueError, match=says("--text", "--file")):
        MemoryConfig(**own)


@pytest.mark.parametrize("name", ["memory.gif", "memory", "png"])
def test_memory_in_forms_that_there_are(name):
    with pytest.raises(ValueError, match=says(f"--out {name}: the name must end in", ".png", ".json")):
        MemoryConfig(text="a", out=["a.png", name])
