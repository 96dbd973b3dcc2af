"""Flags from a dataclass: every type, both spellings, presets and files by strength, help, errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lrn import flags, names, options, tasks
from lrn.checks import FILE
from lrn.flags import Flags, about, settings_of


@dataclass
class Shared:
    """Settings of everything.

    Args:
        seed: for what is drawn.
        verbose: say more.
    """

    seed: int = 1
    verbose: bool = True


@dataclass
class Sample(Shared):
    """Weigh 5 % of ``things``. It is done twice.

    Args:
        preset: a named set.
        name: what to call it: anything.
        data_folder: where it is; by default
            nowhere, not even 5 % of it.
        wide: how wide.
        rate: how fast.
        quiet_please: say less.
        files: what to read.
    """

    preset: str = "small"
    name: str = "it"
    data_folder: str | None = None
    wide: int = 3
    rate: float = 0.5
    quiet_please: bool = False
    files: list[str] = field(default_factory=list, metadata=FILE)

    def __post_init__(self):
        if self.wide > 10**6:
            raise ValueError(f"wide must be at most 1,000,000, got {self.wide}")


PRESETS = {"small": {}, "large": {"wide": 300, "rate": 3.0}}
FLAGS = Flags("weigh", about(Sample), settings_of(Sample), presets=PRESETS)


def read(*words):
    return FLAGS.read(words, Sample)


def refused(*words):
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        read(*words)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "my.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--name", "x y"], "name", "x y"),
        (["--name="], "name", ""),
        (["--name=a=b"], "name", "a=b"),
        (["--name", "a", "--name", "b"], "name", "b"),
        (["--data_folder", "here"], "data_folder", "here"),
        (["--data-folder", "here"], "data_folder", "here"),
        (["--data-folder=null"], "data_folder", "null"),
        (["--wide", "7"], "wide", 7),
        (["--wide", "-7"], "wide", -7),
        (["--wide", "1_000"], "wide", 1000),
        (["--wide", " 7 "], "wide", 7),
        (["--rate", "1e-3"], "rate", 0.001),
        (["--rate", "-1e-3"], "rate", -0.001),
        (["--rate", "-.5"], "rate", -0.5),
        (["--rate=-2"], "rate", -2.0),
        (["--rate", "3"], "rate", 3.0),
        (["--files", "a", "b c"], "files", ["a", "b c"]),
        (["--files", "a", "--files", "b", "c"], "files", ["a", "b", "c"]),
        (["--files=a", "--files=b"], "files", ["a", "b"]),
        (["--files", "a", "--seed", "3"], "files", ["a"]),
    ],
)
def test_values(words, name, value):
    found = getattr(read(*words), name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], False),
        (["--quiet_please"], True),
        (["--quiet-please"], True),
        (["--quiet_please", "true"], True),
        (["--quiet_please", "True"], True),
        (["--quiet_please=yes"], True),
        (["--quiet-please", "--seed", "3"], True),
        (["--quiet_please", "false"], False),
        (["--quiet_please=False"], False),
        (["--quiet_please", "--no-quiet-please"], False),
        (["--no-quiet_please"], False),
        (["--no_quiet_please"], False),
        (["--no-quiet-please", "--quiet_please"], True),
    ],
)
def test_switches(words, value):
    assert read(*words).quiet_please is value
    assert read(*words).verbose is True


def test_a_switch_that_is_on():
    assert read("--no-verbose").verbose is False
    assert read("--verbose", "off").verbose is False


def test_lists_are_not_shared():
    first = read()
    first.files.append("x")
    assert read().files == []


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
samples = st.builds(
    Sample,
    preset=st.sampled_from(list(PRESETS)),
    name=texts,
    data_folder=st.none() | texts,
    wide=st.integers(-(10**9), 10**6),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    quiet_please=st.booleans(),
    files=st.lists(texts.filter(bool), max_size=3),
    seed=st.integers(),
    verbose=st.booleans(),
)


@given(samples, st.booleans())
def test_values_to_flags_and_back(sample, hyphens):
    """Each value as it would be typed; what the default is already may be left out."""
    words = []
    for name, value in asdict(sample).items():
        flag = f"--{name.replace('_', '-') if hyphens else name}"
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif value is not None:
            words += [f"{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    assert read(*words) == sample


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples, st.sampled_from([yaml.safe_dump, json.dumps, lambda v: json.dumps(v, indent="\t")]))
@example(Sample(name="null", data_folder="~", files=["1", "true"]), yaml.safe_dump)
@example(Sample(rate=1e-05, name="1e3", data_folder="2020-01-01"), json.dumps)
def test_values_to_a_file_and_back(file, sample, dump):
    assert read("--config", file(dump(asdict(sample)))) == sample


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples)
def test_printed_settings_can_be_read_back(capsys, file, sample):
    first = file(json.dumps(asdict(sample)))
    with pytest.raises(SystemExit) as left:
        read("--config", first, "--print_config")
    assert left.value.code == 0
    printed = capsys.readouterr().out
    assert list(yaml.safe_load(printed)) == [setting.name for setting in FLAGS.settings]
    assert read("--config", file(printed)) == sample


def test_the_other_spelling_of_print_config(capsys):
    with pytest.raises(SystemExit):
        read("--print-config", "--rate", "1e-3")
    assert "rate: 0.001\n" in capsys.readouterr().out


def test_wrong_settings_are_not_printed(capsys):
    assert refused("--print_config", "--wide", "2_000_000") == "wide must be at most 1,000,000, got 2000000"
    assert capsys.readouterr().out == ""


# Strength -----------------------------------------------------------------------------------------


def test_default_then_preset_then_file_then_flag(file):
    assert (read().wide, read().rate) == (3, 0.5)
    assert (read("--preset", "large").wide, read("--preset=large").rate) == (300, 3.0)
    path = file("preset: large\nwide: 40\n")
    config = read("--config", path)
    assert (config.preset, config.wide, config.rate, config.seed) == ("large", 40, 3.0, 1)
    for words in (["--config", path, "--wide", "5"], ["--wide", "5", f"--config={path}"]):
        assert read(*words).wide == 5
    config = read("--config", path, "--preset", "small")
    assert (config.preset, config.wide, config.rate) == ("small", 40, 0.5)


def test_of_several_files_the_last_that_has_it(file, tmp_path):
    (tmp_path / "other.yaml").write_text("wide: 7\npreset: large\n")
    config = read("--config", str(tmp_path / "other.yaml"), "--config", file("wide: 8\n"))
    assert (config.wide, config.rate) == (8, 3.0)


def test_a_preset_for_more_than_there_is():
    """A comparison has no seed of its own, a preset may."""
    some = Flags(
        "weigh", "", settings_of(Sample, without=("seed",)), presets={"small": {"seed": 5, "wide": 4}}
    )
    assert some.read([], dict)["wide"] == 4
    assert "seed" not in some.read([], dict)


# Words without a flag -----------------------------------------------------------------------------

PLACED = Flags("move", "Move a thing.", settings_of(options.Import), words=("run", "file"))


def test_words():
    expected = options.Import("a", "b", overwrite=True)
    for words in ("a b --overwrite", "a --overwrite=true b", "--overwrite true a b", "a b --overwrite yes"):
        assert PLACED.read(words.split(), options.Import) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "RUN and FILE must be given (lrn move --help explains)"),
        (["a"], "FILE must be given (lrn move --help explains)"),
        (["a", "b", "c"], "unexpected word 'c' (lrn move --help explains)"),
        (["--overwrite", "a", "b"], "--overwrite: expected true or false, got 'a' (lrn move"),
        (["--run", "a", "--file", "b"], "unknown flag '--run' (lrn move --help explains)"),
    ],
)
def test_wrong_words(words, expected):
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}"):
        PLACED.read(words, options.Import)


SEVERAL = Flags("carry", "Carry things.", settings_of(options.Results), words=("run",))


def test_a_list_takes_all_further_words():
    for words in ("a b c --format csv", "a --format csv b c", "--format csv a b c"):
        assert SEVERAL.read(words.split(), options.Results) == options.Results(["a", "b", "c"], "csv")
    assert SEVERAL.read(["a"], options.Results).run == ["a"]
    assert SEVERAL.typed([]) == {}


def test_help_of_a_list_without_a_flag(capsys):
    SEVERAL.print_help()
    said = capsys.readouterr().out
    assert said.startswith("usage: lrn carry RUN… [--flags]")
    assert re.search(r"^  RUN +the run folders$", said, re.M)


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--wid", "3"], "unknown flag '--wid'; did you mean '--wide'? (lrn weigh --help explains)"),
        (["--quite-please"], "unknown flag '--quite-please'; did you mean '--quiet_please'?"),
        (["--conifg=x"], "unknown flag '--conifg'; did you mean '--config'?"),
        (["--nothing-like-it", "3"], "unknown flag '--nothing-like-it' (lrn weigh --help explains)"),
        (["-w", "3"], "unknown flag '-w'"),
        (["stray"], "unexpected word 'stray' (lrn weigh --help explains)"),
        (["--wide", "wide"], "--wide: expected a whole number, got 'wide' (lrn weigh --help"),
        (["--wide", "1.5"], "--wide: expected a whole number, got '1.5'"),
        (["--wide", "1e3"], "--wide: expected a whole number, got '1e3'"),
        (["--wide", "9" * 5000], "--wide: expected a whole number, got '9999"),
        (["--wide="], "--wide: expected a whole number, got ''"),
        (["--rate", "nan"], "--rate: expected a finite number, got 'nan'"),
        (["--rate", "-inf"], "--rate: expected a finite number, got nothing"),
        (["--rate=-inf"], "--rate: expected a finite number, got '-inf'"),
        (["--rate", "1e999"], "--rate: expected a finite number, got '1e999'"),
        (["--quiet_please", "perhaps"], "--quiet_please: expected true or false, got 'perhaps'"),
        (["--quiet_please=1"], "--quiet_please: expected true or false, got '1'"),
        (["--name"], "--name: expected a text, got nothing (lrn weigh --help explains)"),
        (["--files"], "--files: expected a file, got nothing"),
        (["--files", "a", ""], "--files: expected a file, got ''"),
        (["--config"], "--config: expected a YAML file, got nothing"),
        (["--config="], "--config: expected a YAML file, got ''"),
        (["--wide", "--rate", "3"], "--wide: expected a whole number, got nothing"),
        (["--print_config=yes"], "--print_config takes no value"),
        (["--no-verbose=3"], "--no-verbose takes no value"),
        (["--preset", "lareg"], "unknown preset 'lareg'; allowed: small, large; did you mean 'large'?"),
        (["--preset="], "unknown preset ''; allowed: small, large"),
        (["--config", "none.yaml"], "--config: there is no file none.yaml"),
        (["--config", "."], "--config: . is a folder; expected a YAML file"),
    ],
)
def test_wrong_flags(words, expected):
    assert refused(*words).startswith(expected)


def test_a_flag_that_belongs_elsewhere():
    some = Flags("go", "", settings_of(Shared), elsewhere={"wide": "that is for weighing"}.get)
    with pytest.raises(ValueError, match=r"^unknown flag '--wide'; that is for weighing "):
        some.read(["--wide", "3"], Shared)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("wdie: 3\n", "FILE: unknown setting 'wdie'; did you mean 'wide'?"),
        ("seed: 3\nnothing-like-it: 3\n", "FILE: unknown setting 'nothing-like-it'"),
        ("3: 4\n", "FILE: unknown setting '3'"),
        ("[1, 2]: 4\n", "FILE: unknown setting 'a sequence'"),
        ("wide: 1\nseed: 2\nwide: 3\n", "FILE: wide is set twice"),
        ("", "FILE is empty; expected a setting a line, like epochs: 3"),
        ("# nothing yet\n", "FILE is empty; expected"),
        ("{}\n", "FILE is empty; expected"),
        ("hello\n", "FILE is the text 'hello'; expected a setting a line"),
        ("- 1\n", "FILE is a list; expected a setting a line"),
        ("a: [1\n", "FILE is not YAML: "),
        ("\x00", "FILE is not YAML: "),
        (
            b"wide: 3\nname: \xff",
            "FILE, line 2: not UTF-8 text: invalid start byte (byte 0xff at 6); convert it",
        ),
        ("[" * 10_000, "FILE is not YAML: "),
        ("wide: 1\n---\nwide: 2\n", "FILE is not YAML: "),
        ("wide: broad\n", "FILE: wide: expected a whole number, got 'broad'"),
        ("wide: 1.5\n", "FILE: wide: expected a whole number, got '1.5'"),
        ("wide: '3'\n", "FILE: wide: expected a whole number, got the text '3'"),
        ("wide:\n", "FILE: wide: expected a whole number, got nothing"),
        ("wide: [3]\n", "FILE: wide: expected a whole number, got a list"),
        ("wide: {a: 3}\n", "FILE: wide: expected a whole number, got settings"),
        ("rate: .nan\n", "FILE: rate: expected a finite number, got '.nan'"),
        ('{"rate": Infinity}', "FILE: rate: expected a finite number, got 'Infinity'"),
        ("quiet_please: 2\n", "FILE: quiet_please: expected true or false, got '2'"),
        ("name: null\n", "FILE: name: expected a text, got nothing"),
        ("files: a\n", "FILE: files: expected a list of texts, got a text"),
        ("files: [[a]]\n", "FILE: files: expected a list of texts, got a list"),
        ("files:\n", "FILE: files: expected a list of texts, got nothing"),
        ("files: [a, '']\n", "FILE: files: expected a file, got ''"),
        ("preset: lareg\n", "unknown preset 'lareg'; allowed: small, large; did you mean 'large'?"),
    ],
)
def test_wrong_files(content, expected, file):
    path = file(content)
    assert refused("--config", path).startswith(expected.replace("FILE", path))


def test_what_yaml_would_read_otherwise(file):
    """The text counts: no octal, no date, no sexagesimal; a byte order mark and comments are no trouble."""
    config = read(
        "--config", file("\ufeffname: 2020-01-01 # a date\ndata_folder: 012\nrate: 1e-3\nwide: 012\n")
    )
    assert (config.name, config.data_folder, config.rate, config.wide) == ("2020-01-01", "012", 0.001, 12)


# Help ---------------------------------------------------------------------------------------------


def help_of(some, *words):
    from contextlib import redirect_stdout
    from io import StringIO

    said = StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit) as left:
        some.read([*words, "--help"], dict)
    assert left.value.code == 0
    return said.getvalue()


def test_help():
    """One entry a setting, the blanks apart: its own first, types and defaults, a switch that is on."""
    expected = """
        usage: lrn weigh [--flags]
        Weigh 5 % of things. It is done twice. Presets: small, large.
        settings:
          --preset TEXT a named set (default small)
          --name TEXT what to call it: anything (default it)
          --data_folder TEXT where it is; by default nowhere, not even 5 % of it
          --wide INT how wide (default 3)
          --rate FLOAT how fast (default 0.5)
          --quiet_please [BOOL] say less
          --files FILE [FILE ...] what to read
        settings of everything:
          --seed INT for what is drawn (default 1)
          --verbose [BOOL] say more (default true; --no-verbose turns it off)
        others:
          -h, --help explain this
          --config FILE a YAML file with settings; flags are stronger than it, it is stronger than the preset
          --print_config print all settings as YAML, and end
        """
    assert help_of(FLAGS).split() == expected.split()


def test_help_has_the_preset_and_the_file_that_are_chosen(file):
    assert "how wide (default 300)" in help_of(FLAGS, "--preset", "large")
    assert "how wide (default 41)" in help_of(FLAGS, "--config", file("preset: large\nwide: 41\n"))
    assert "how fast (default 3.0)" in help_of(FLAGS, "-h", "--preset", "large")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = help_of(FLAGS).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) > 20


def test_help_comes_before_what_is_missing():
    said = help_of(PLACED)
    assert said.startswith("usage: lrn move RUN FILE [--flags]\n\nMove a thing.\n")
    assert re.search(r"^  RUN +the run folder$", said, re.M)


EVERY = [
    *(
        kind
        for kind in vars(options).values()
        if isinstance(kind, type) and kind.__module__ == options.__name__
    ),
    *(
        kind
        for task in map(tasks.settings, names.TASKS)
        for kind in (task.train, task.evaluate, task.predict, *task.commands.values())
    ),
]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_setting_is_explained(kind):
    found = settings_of(kind)
    assert {setting.name for setting in found} == {field.name for field in fields(kind)}
    for setting in found:
        assert re.search(r"\w\w", setting.help), setting.name
        assert setting.help.isprintable()
        assert not setting.help.endswith(".")
    assert about(kind)
    explained = {name for owner in kind.__mro__ for name in flags._arguments(owner)}
    assert explained - {""} == {setting.name for setting in found}, "and nothing else is"


def test_own_settings_come_first():
    groups = [setting.group for setting in settings_of(tasks.settings("lm").train)]
    assert list(dict.fromkeys(groups)) == ["settings", "settings of every training"]
    assert groups == sorted(groups)


def test_without_docstrings():
    """``python -OO`` has none; flags work all the same."""
    code = (
        "from lrn.flags import Flags, about, settings_of; from lrn.tasks.lm.config import LMConfig;"
        "some = Flags('x', about(LMConfig), settings_of(LMConfig), presets={'quick': {}});"
        "print(some.read(['--hidden', '7'], LMConfig).hidden)"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert done.stdout == "7\n", done.stderr


def test_reading_flags_needs_no_torch(file):
    code = (
        "import sys; from lrn import cli;"
        f"assert cli.main(['train', 'lm', '--print_config', '--config', {file('epochs: 3')!r}]) == 0;"
        "assert cli.main(['train', 'doc', '--help']) == 0;"
        "print([m for m in ('torch', 'lightning', 'rich', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_nothing_private_of_argparse():
    source = Path(flags.__file__).read_text()
    assert not re.search(r"(parser|group|argparse|action|others)\._", source)
