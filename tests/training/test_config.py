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
        ValueError, match=rf"unknown {name} '{value}'; allowed: .*; did you mean '{nearest}'\?"
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


def test_a_minus_is_as_good_as_an_underscore(settings):
    assert settings("--batch-size", "7", "--valid-columns=3").batch_size == 7


@pytest.mark.parametrize(("task", "setting"), [("lm", "min_count"), ("ner", "sentences")])
def test_settings_of_the_built_in_data_alone(task, setting, capsys):
    assert cli.main(["train", task, "--data", "folder", f"--{setting}", "7"]) == 2
    assert capsys.readouterr().err.startswith(f"lrn: {setting} is for the built-in data only: with --data ")


def test_a_file_for_a_comparison(tmp_path, capsys):
    path = tmp_path / "my.yaml"
    path.write_text("units: lrn,lstm\nseeds: '1'\nunit: lrn\n")
    assert cli.main(["compare", "lm", "--config", str(path)]) == 2
    assert "my.yaml: there is no setting 'unit'; did you mean 'units'?" in capsys.readouterr().err


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
        ("lerning: 3\n", "my.yaml: there is no setting 'lerning'"),
        ("epochs: 2\nhiden: 3\n", "my.yaml: there is no setting 'hiden'; did you mean 'hidden'?"),
        ("3: 4\n", "my.yaml: there is no setting 3"),
        ("", "my.yaml is empty; expected a setting a line, like epochs: 3"),
        ("# nothing yet\n", "my.yaml is empty"),
        ("{}\n", "my.yaml is empty"),
        ("hello\n", "my.yaml is the text 'hello'; expected a setting a line"),
        ("hidden: wide\n", "my.yaml: hidden: expected int"),
        ("preset: 3\n", "my.yaml: preset: expected str"),
        ("preset: smal\n", "did you mean 'small'?"),
        ("a: [1\n", "is not YAML"),
        ("- 1\n", "my.yaml is a list; expected a setting a line"),
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
        (["--config", "none.yaml"], "--config: there is no file none.yaml"),
        (["--config", "."], "--config: . is a folder"),
        (["--preset", "small", "--config", "none.yaml"], "--config: there is no file none.yaml"),
        (["--config"], "--config"),
        (["--preset"], "--preset"),
        (["--pre", "small"], "--pre"),
        (["--lerning", "3"], "--lerning"),
        (["--hiden", "3"], "did you mean '--hidden'?"),
        (["--batchsize", "3"], "did you mean '--batch_size'?"),
        (["--learning_rate", "3"], "--learning_rate 3 (lrn train lm --help"),
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
