"""Settings: checked, explained when wrong, and taken from flag, file, preset and default in this order."""

import pytest
import yaml

from lrn import cli, commands
from lrn.tasks.lm.config import PRESETS, LMConfig
from lrn.training.config import TrainConfig


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("unit", "lrm", "lrn"),
        ("unit", "LSTM", "lstm"),
        ("precision", "bf61", "bf16"),
        ("optimizer", "adamw", "adam"),
        ("schedule", "constatn", "constant"),
        ("stage", "fintune", "finetune"),
    ],
)
def test_misspelt(name, value, nearest):
    with pytest.raises(
        ValueError, match=rf"unknown {name} '{value}' \(did you mean '{nearest}'\?\); allowed: "
    ):
        LMConfig(**{name: value})


def test_nothing_is_near():
    with pytest.raises(ValueError, match="unknown unit 'transformer'; allowed: lrn, "):
        TrainConfig(unit="transformer")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epochs", value) for value in (0, -1, float("nan"))),
        *((name, 0) for name in ("devices", "nodes", "save_steps", "hidden", "layers", "batch_size", "bptt")),
        *(
            (name, -1)
            for name in ("seed", "clip", "threads", "max_steps", "delta", "weight_decay", "ar", "tar")
        ),
        *(("lr", value) for value in (0.0, -1.0, float("nan"))),
        *(("ema", value) for value in (-0.1, 1.0, float("nan"))),
        *(("drop_weights", value) for value in (-0.1, 1.0, float("nan"))),
        *(("fraction", value) for value in (0.0, 1.1, float("nan"))),
        ("small_batch", 3),
    ],
)
def test_bad_numbers(name, value):
    with pytest.raises(ValueError, match=f"^{name} must .* got {value}"):
        LMConfig(**{name: value})


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_valid(preset):
    LMConfig(**PRESETS[preset])


# From the command line --------------------------------------------------------------------------


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """The settings that words, and a YAML file in place of ``FILE``, come to."""
    seen = []
    monkeypatch.setattr(commands, "train", lambda name, config: seen.append(config) or 0)

    def read(*words, file=None):
        path = tmp_path / "my.yaml"
        if file is not None:
            path.write_text(file)
        assert cli.main(["train", "lm", *(word.replace("FILE", str(path)) for word in words)]) == 0
        return seen.pop()

    return read


def test_default_and_preset(settings):
    assert settings() == LMConfig(**PRESETS["quick"], preset="quick")
    assert settings("--preset", "small") == LMConfig(**PRESETS["small"], preset="small")
    assert settings("--preset=paper-ptb").hidden == 960
    assert settings("--preset=paper-ptb", "--preset", "small").hidden == settings("--preset=small").hidden


def test_flag_before_file_before_preset_before_default(settings):
    file = "preset: paper-ptb\nhidden: 500\nlast: 400\n"
    for words in (["--config", "FILE", "--last", "300"], ["--last", "300", "--config", "FILE"]):
        config = settings(*words, file=file)
        assert (config.preset, config.embedding, config.hidden, config.last) == ("paper-ptb", 280, 500, 300)
        assert config.nonmono == LMConfig.nonmono
    config = settings("--preset", "paper-wt2", "--config=FILE", file=file)
    assert (config.preset, config.embedding, config.hidden) == ("paper-wt2", 300, 500)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], False),
        (["--overwrite"], True),
        (["--overwrite", "true"], True),
        (["--overwrite", "True"], True),
        (["--overwrite", "false"], False),
        (["--overwrite", "False"], False),
        (["--overwrite=false"], False),
        (["--overwrite", "--seed", "3"], True),
    ],
)
def test_switches(words, value, settings):
    assert settings(*words).overwrite is value


def test_printed_settings_can_be_read_back(settings, capsys):
    words = ["--unit", "sru", "--lr", "0.5", "--preset", "small", "--precision", "bf16", "--data", "text"]
    with pytest.raises(SystemExit) as left:
        cli.main(["train", "lm", *words, "--print_config"])
    assert left.value.code == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["lr"] == 0.5
    assert settings("--config", "FILE", file=printed) == settings(*words)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("lerning: 3\n", "lerning"),
        ("hidden: wide\n", "hidden"),
        ("preset: 3\n", "unknown preset 3"),
        ("preset: smal\n", "did you mean 'small'?"),
        ("a: [1\n", "is not YAML"),
        ("- 1\n", "- 1"),
        ("unit: lrm\n", "did you mean 'lrn'?"),
        ("\x00", "my.yaml"),
    ],
)
def test_wrong_files(file, says, tmp_path, capsys):
    path = tmp_path / "my.yaml"
    path.write_text(file)
    assert cli.main(["train", "lm", "--config", str(path)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.startswith("lrn: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--config", "none.yaml"], "none.yaml"),
        (["--config"], "--config"),
        (["--preset"], "--preset"),
        (["--pre", "small"], "--pre"),
        (["--lerning", "3"], "--lerning"),
        (["--hidden", "wide"], "hidden"),
        (["--hidden", "1.5"], "hidden"),
        (["--hidden", "0"], "hidden must be at least 1, got 0"),
        (["--unit", "lrm"], "did you mean 'lrn'?"),
        (["--preset", "smal"], "did you mean 'small'?"),
        (["--lr", "nan"], "--lr: expected float"),
        (["stray"], "stray"),
    ],
)
def test_wrong_flags(words, says, capsys):
    assert cli.main(["train", "lm", *words]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.startswith("lrn: ")
    assert said.count("\n") == 1
