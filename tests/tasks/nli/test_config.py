"""Settings, and the parameters that they make."""

import pytest

from lrn import tasks
from lrn.tasks.nli.config import PRESETS, EvaluateConfig, NLIConfig

COUNTS = {"lstm": 8_357_294, "gru": 6_406_994, "atr": 2_869_394, "sru": 5_482_094, "lrn": 4_246_994}
NORMED = {"lstm": 21_003, "gru": 15_903, "atr": 6_303, "sru": 11_403, "lrn": 8_703}


def test_the_papers_counts():
    """Of the paper's five units; the norms add what is listed for them."""
    found = {(preset, unit): count for preset, unit, count in tasks.parameters("nli")}
    for unit, count in COUNTS.items():
        assert found["paper", unit] == count
        assert found["paper-ln", unit] == count + NORMED[unit]


def test_presets():
    paper = NLIConfig(**PRESETS["paper"])
    assert (paper.epochs, paper.lr, paper.schedule, paper.decay) == (10, 1e-3, "exponential", 0.5)
    assert (paper.batch_size, paper.clip, paper.ema, paper.l2) == (128, 5.0, 0.9999, 3e-5)
    assert NLIConfig(**PRESETS["paper-ln"]).norm == "rms"
    bert = NLIConfig(**PRESETS["paper-ln-bert"])
    assert (bert.epochs, bert.lr, bert.schedule, bert.batch_size) == (5, 2e-5, "constant", 32)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"norm": "rmsnorm"}, "unknown norm 'rmsnorm'; allowed: none, rms, layer"),
        ({"heads": 7}, "heads must divide twice the width hidden, 600, into equal parts; got 7"),
        ({"dropout": 1.0}, "dropout must be a probability"),
        ({"bert_frozen": True}, "are for a model with --bert only"),
        ({"bert": "x", "bert_frozen": True, "bert_lr": 1e-5}, "bert_lr is for a BERT that is trained"),
        ({"data": "x", "pairs": 200}, "pairs is for the built-in data only"),
        ({"pairs": 5}, "pairs must be at least 100, got 5"),
    ],
)
def test_settings_that_cannot_be(given, said):
    with pytest.raises(ValueError, match=said):
        NLIConfig(**given)


def test_parts_by_the_names_that_multinli_has():
    assert EvaluateConfig(part="mismatched").part == "mismatched"
    allowed = "train, valid, test, matched, mismatched"
    with pytest.raises(ValueError, match=f"unknown part 'dev'; allowed: {allowed}"):
        EvaluateConfig(part="dev")
