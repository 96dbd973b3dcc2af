"""The presets are the paper's settings; what makes no sense is refused by name."""

import math

import pytest
from helpers import says

from lrn import cli
from lrn.tasks.lm.config import PRESETS, SETTINGS, EvaluateConfig, LMConfig, PredictConfig
from lrn.tasks.lm.model import count

# Section 9 of the specification
COUNTS = {
    "paper-ptb": {
        "lstm": 21_490_460,
        "gru": 17_474_720,
        "atr": 9_445_780,
        "sru": 12_585_140,
        "lrn": 10_791_920,
        "glrn": 9_003_780,
        "elrn": 7_215_640,
    },
    "paper-wt2": {
        "lstm": 34_897_728,
        "gru": 29_412_278,
        "atr": 18_444_328,
        "sru": 22_633_628,
        "lrn": 20_209_778,
        "glrn": 17_791_828,
        "elrn": 15_373_878,
    },
}
WORDS = {"paper-ptb": 10_000, "paper-wt2": 33_278}
PRINTED = {"lstm": "22M", "gru": "17M", "atr": "9M", "sru": "13M", "lrn": "11M"}


@pytest.mark.parametrize(("preset", "unit"), [(p, unit) for p in COUNTS for unit in COUNTS[p]])
def test_parameter_counts(preset, unit):
    config = LMConfig(**PRESETS[preset] | {"unit": unit})
    assert count(config, WORDS[preset]) == COUNTS[preset][unit]


def test_params_prints_them_beside_the_papers(capsys):
    assert cli.main(["params", "lm"]) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines() if line.startswith("  ")]
    for preset, units in COUNTS.items():
        for unit, number in units.items():
            (row,) = [row for row in rows if row[:2] == [preset, unit]]
            printed = [PRINTED[unit]] if preset == "paper-ptb" and unit in PRINTED else []
            assert row[2:] == [f"{number:,}", *printed]
    remark = " ".join(said.split())
    assert "LSTM: the paper's 22M is 21.49M here" in remark
    assert "21,500,620" in remark


# Presets: the tables of sections 2 and 4

PAPER = {
    "layers": 3,
    "experts": 15,
    "drop_latent": 0.29,
    "drop_output": 0.4,
    "drop_words": 0.1,
    "drop_weights": 0.5,
    "bptt": 70,
    "clip": 0.25,
    "ar": 2.0,
    "tar": 1.0,
    "weight_decay": 1.2e-6,
    "nonmono": 5,
    "epochs": 1000,
    "optimizer": "sgd",
    "schedule": "constant",
    "valid_columns": 10,
    "fraction": 1.0,
    "init": 0.1,
    "ema": 0.0,
}
PTB = {
    "embedding": 280,
    "hidden": 960,
    "last": 620,
    "drop_input": 0.4,
    "drop_hidden": 0.225,
    "lr": 10.0,
    "batch_size": 12,
    "delta": 40,
    "seed": 28,
}
WT2 = {
    "embedding": 300,
    "hidden": 1150,
    "last": 650,
    "drop_input": 0.55,
    "drop_hidden": 0.2,
    "lr": 15.0,
    "batch_size": 15,
    "small_batch": 5,
    "delta": 20,
    "seed": 1882,
}


@pytest.mark.parametrize(("preset", "expected"), [("paper-ptb", PTB), ("paper-wt2", WT2)])
def test_paper_presets(preset, expected):
    config = LMConfig(**PRESETS[preset])
    for name, value in (PAPER | expected).items():
        assert getattr(config, name) == value, name


def test_ptb_takes_all_columns_at_once():
    assert LMConfig(**PRESETS["paper-ptb"]).small_batch in (0, 12)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_make_settings(preset):
    LMConfig(**PRESETS[preset])


# Refused


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stage", "tune"),
        ("optimizer", "rmsprop"),
        ("schedule", "cosine"),
        ("embedding", 0),
        ("hidden", 0),
        ("last", -1),
        ("layers", 0),
        ("experts", 0),
        ("batch_size", 0),
        ("bptt", 0),
        ("min_count", 0),
        ("valid_columns", 0),
        ("nonmono", 0),
        ("small_batch", -1),
        ("delta", -1),
        ("weight_decay", -1e-6),
        ("ar", math.nan),
        ("tar", -1.0),
        ("drop_words", 1.0),
        ("drop_input", -0.1),
        ("drop_hidden", math.nan),
        ("drop_output", 1.5),
        ("drop_latent", 1.0),
        ("drop_weights", 1.0),
        ("init", 0.0),
        ("fraction", 0.0),
        ("fraction", 1.1),
        ("fraction", math.nan),
    ],
)
def test_wrong_settings(name, value):
    with pytest.raises(ValueError, match=says(name, str(value))):
        LMConfig(**{name: value})


def test_small_batch_divides_the_batch():
    with pytest.raises(ValueError, match=says("small_batch", "6", "20")):
        LMConfig(batch_size=20, small_batch=6)


def test_a_residual_connection_needs_equal_widths():
    with pytest.raises(ValueError, match=says("residual", "4 → 6 → 5")):
        LMConfig(embedding=4, hidden=6, last=5, layers=2, residual=True)
    for fitting in ({"layers": 3}, {"layers": 2, "last": 6}, {"layers": 1, "last": 4}):
        assert LMConfig(**{"embedding": 4, "hidden": 6, "last": 5, "residual": True} | fitting).residual


@pytest.mark.parametrize("own", [{"stage": "finetune"}, {"start": "runs/a"}])
def test_finetune_and_start_go_together(own):
    with pytest.raises(ValueError, match=says("finetune", "start")):
        LMConfig(**own)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"part": "tests"}, "part"),
        ({"columns": 0}, "columns"),
        ({"words": -1}, "words"),
        ({"rate": -1.0}, "rate"),
        ({"dynamic": True, "rate": 0.0}, "rate"),
        ({"dynamic": True, "decay": 0.0}, "decay"),
        ({"dynamic": True, "epsilon": 0.0}, "epsilon"),
    ],
)
def test_wrong_evaluation(own, said):
    with pytest.raises(ValueError, match=said):
        EvaluateConfig(**own)


@pytest.mark.parametrize("own", [{}, {"prompt": "a", "files": ["b"]}])
def test_prediction_takes_a_prompt_or_files(own):
    with pytest.raises(ValueError, match=says("--prompt", "--files")):
        SETTINGS.check_use(PredictConfig(**own))


@pytest.mark.parametrize("name", ["words", "temperature", "top_k", "seed"])
def test_wrong_prediction(name):
    with pytest.raises(ValueError, match=says(name, "-1")):
        PredictConfig(prompt="a", **{name: -1})
