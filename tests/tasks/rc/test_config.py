"""Settings of the reading model: wrong ones are refused in a line, presets are what they should be."""

import pytest

from lrn.tasks.rc.config import PRESETS, SETTINGS, PredictConfig, RCConfig


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset(preset):
    config = RCConfig(**PRESETS[preset], preset=preset)
    assert config.preset == preset


def test_the_papers_recipe():
    config = RCConfig(**PRESETS["paper"])
    assert (config.optimizer, config.lr, config.clip, config.batch_size) == ("adadelta", 0.5, 5.0, 64)
    assert (config.schedule, config.decay, config.patience) == ("plateau", 0.5, 3)
    assert (config.hidden, config.char_width, config.char_hidden, config.dropout) == (75, 8, 100, 0.3)
    assert (config.longest, config.longest_question, config.longest_answer) == (400, 50, 16)
    with_elmo = RCConfig(**PRESETS["paper-elmo"])
    assert (with_elmo.batch_size, with_elmo.accumulate, with_elmo.elmo_dropout) == (16, 4, 0.5)
    assert with_elmo.pool_elmo


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"hidden": 0}, "hidden must be at least 1"),
        ({"char_hidden": 0}, "char_hidden must be at least 1"),
        ({"dropout": 1.0}, "dropout must be a probability"),
        ({"elmo_dropout": -0.1}, "elmo_dropout must be a probability"),
        ({"longest": 0}, "longest must be at least 1"),
        ({"longest_question": 0}, "longest_question must be at least 1"),
        ({"longest_answer": 10**6}, "longest_answer must be at most"),
        ({"held_out": 0}, "held_out must be at least 1"),
        ({"held_out_valid": -1}, "held_out_valid must be at least 0"),
        ({"paragraphs": 3}, "paragraphs must be at least 50"),
        ({"data": "x", "paragraphs": 60}, "paragraphs is for the built-in data only"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"optimizer": "adadelt"}, "did you mean 'adadelta'"),
        ({"schedule": "plateaux"}, "did you mean 'plateau'"),
    ],
)
def test_wrong_settings(own, said):
    with pytest.raises(ValueError, match=said):
        RCConfig(**own)


def test_wrong_options():
    with pytest.raises(ValueError, match="best must be at least 1"):
        PredictConfig(best=0)
    with pytest.raises(ValueError, match="unknown format"):
        PredictConfig(format="xml")


def test_where_the_page_goes_is_checked_first(tmp_path):
    def check(**own):
        SETTINGS.check_use(PredictConfig(**own))

    check(html=str(tmp_path / "a.html"))
    check()
    with pytest.raises(ValueError, match=r"the page with the answers ends in \.html"):
        check(html=str(tmp_path / "a.png"))
    with pytest.raises(ValueError, match="there is no folder"):
        check(html=str(tmp_path / "absent" / "a.html"))
    (tmp_path / "a.html").touch()
    with pytest.raises(ValueError, match="exists"):
        check(html=str(tmp_path / "a.html"))
    check(html=str(tmp_path / "a.html"), overwrite=True)


def test_data_is_checked_first(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"lacks .*expected train-v1\.1\.json and dev-v1\.1\.json, or any"
    ):
        SETTINGS.check_data(str(tmp_path))
    (tmp_path / "some.json").touch()
    SETTINGS.check_data(str(tmp_path))
