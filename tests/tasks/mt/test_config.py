"""Settings, and the parameters that they make."""

import pytest

from lrn import tasks
from lrn.tasks.mt.config import PRESETS, EvaluateConfig, MTConfig, PredictConfig
from lrn.tasks.mt.model import count

COUNTS = {
    "gru": 205_896_833,
    "atr": 121_805_953,
    "sru": 170_161_281,
    "lrn": 142_797_953,
    "olrn": 163_810_433,
}
OTHER_NORMS = {
    "rms": {
        "gru": 205_752_449,
        "atr": 121_743_489,
        "sru": 170_051_713,
        "lrn": 142_715_009,
        "olrn": 163_707_009,
    },
    "none": {
        "gru": 205_608_065,
        "atr": 121_681_025,
        "sru": 169_942_145,
        "lrn": 142_632_065,
        "olrn": 163_603_585,
    },
}


def test_the_papers_counts():
    found = {unit: number for preset, unit, number in tasks.parameters("mt") if preset == "paper"}
    assert {unit: found[unit] for unit in COUNTS} == COUNTS


@pytest.mark.parametrize("norm", OTHER_NORMS)
def test_counts_with_other_norms(norm):
    for unit, expected in OTHER_NORMS[norm].items():
        assert count(MTConfig(**PRESETS["paper"] | {"unit": unit, "norm": norm}), 55_300) == expected


def test_the_paper_preset():
    paper = MTConfig(**PRESETS["paper"])
    assert (paper.hidden, paper.encoder_layers, paper.decoder_layers, paper.heads) == (1024, 6, 6, 8)
    assert paper.batch_tokens * paper.accumulate == 32_768
    assert (paper.clip, paper.smoothing, paper.dropout, paper.norm) == (1.0, 0.1, 0.1, "layer")
    assert (paper.schedule, paper.replicas, paper.warmup) == ("chen", 4, 400)
    assert (paper.merges, paper.threshold, paper.longest) == (32_000, 50, 100)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"norm": "batch"}, "unknown norm 'batch'; allowed: none, rms, layer"),
        ({"text": "bpe"}, "unknown text 'bpe'; allowed: auto, raw, tokenised, segmented"),
        ({"heads": 7}, "heads must divide the width hidden, 1024, into equal parts; got 7"),
        ({"source": "../x"}, r"source must be a language like en, got '../x'"),
        ({"target": "en"}, "source and target must be two languages, got en twice"),
        ({"ratio": 0.5}, "ratio must be at least 1, or 0 to keep all pairs, got 0.5"),
        ({"decoder_layers": 0}, "decoder_layers must be at least 1, got 0"),
        ({"smoothing": 1.0}, "smoothing must be a probability"),
        ({"data": "x", "pairs": 200}, "pairs is for the built-in data only"),
    ],
)
def test_settings_that_cannot_be(given, said):
    with pytest.raises(ValueError, match=said):
        MTConfig(**given)


def test_settings_of_its_use():
    assert EvaluateConfig(part="test_2017_flickr").part == "test_2017_flickr"
    for bad in ("", "a/b"):
        with pytest.raises(ValueError, match="part must be train, valid, test or the name of files"):
            EvaluateConfig(part=bad)
    with pytest.raises(ValueError, match="beam must be at least 1, got 0"):
        EvaluateConfig(beam=0)
    with pytest.raises(ValueError, match="nbest must be at most beam, 4, got 5"):
        PredictConfig(nbest=5)
    assert PredictConfig(nbest=5, temperature=1.0).nbest == 5


def test_the_built_in_data_is_of_two_languages(tmp_path):
    check = tasks.settings("mt").check
    check(MTConfig())
    with pytest.raises(ValueError, match="built-in data is English to German; for de to en"):
        check(MTConfig(source="de", target="en"))
    with pytest.raises(FileNotFoundError, match=r"lacks train.de and train.en and valid.de"):
        check(MTConfig(source="de", target="en", data=str(tmp_path)))
