"""Settings as command-line flags: a dataclass, presets and YAML files in, checked values out.

A flag is a field of a dataclass, explained in the ``Args:`` of its docstring. The value of a setting is, the
stronger later: the dataclass's default, the preset's, that of a ``--config`` file (of several the last that
has it), what is typed.
"""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any, NoReturn, TypeVar, get_type_hints

from lrn.checks import choice, nearest

Made = TypeVar("Made")

# What a text stands for -------------------------------------------------------------------------

TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _filled(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


@dataclass(frozen=True)
class Kind:
    """A type of settings: what it is called in help and errors, and how a text is read as one."""

    metavar: str
    expected: str
    read: Callable[[str], Any]

    def __call__(self, text: str) -> Any:
        try:
            return self.read(text)
        except (ValueError, KeyError):
            raise argparse.ArgumentTypeError(f"expected {self.expected}, got {text[:60]!r}") from None


TEXT = Kind("text", "a text", str)
YAML = Kind("file", "a YAML file", _filled)
KINDS: dict[Any, Kind] = {
    str: TEXT,
    str | None: TEXT,
    list[str]: TEXT,
    int: Kind("int", "a whole number", int),
    int | None: Kind("int", "a whole number", int),
    float: Kind("float", "a finite number", _finite),
    bool: Kind("bool", "true or false", lambda text: TRUTH[text.lower()]),
}


# Settings ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One field of a dataclass as a flag.

    Its type is one of those that ``KINDS`` has; what it names, a file for example, is a kind of its own.
    """

    name: str
    type: Any
    default: Any  # MISSING if there is none
    help: str
    group: str
    kind: Kind  # of each entry, if it is a list


def settings_of(config: type[Any], without: Iterable[str] = ()) -> list[Setting]:
    """The settings of a dataclass: first its own, then those of the classes that it extends."""
    types = get_type_hints(config)
    left = {field.name: field for field in fields(config) if field.name not in without}
    found = []
    for owner in config.__mro__[:-1]:
        group = "settings" if owner is config else _title(owner)
        texts = _arguments(owner)
        for name in [name for name in inspect.get_annotations(owner) if name in left]:
            field = left.pop(name)
            default = field.default if field.default_factory is MISSING else field.default_factory()
            named = field.metadata.get("names")
            kind = _named(named) if named else KINDS[types[name]]
            found.append(Setting(name, types[name], default, texts.get(name, ""), group, kind))
    return found


def _named(what: str) -> Kind:
    """The kind of texts that name a file, a folder, …, which none does that is empty."""
    return Kind(what, f"a {what}" if what.islower() else what, _filled)


def about(config: type[Any]) -> str:
    """What a dataclass's docstring says before its ``Args:``, as plain text."""
    return inspect.cleandoc(config.__doc__ or "").partition("\nArgs:\n")[0].replace("``", "").strip()


def _title(config: type[Any]) -> str:
    title = about(config).partition("\n")[0].removesuffix(".")
    return title[:1].lower() + title[1:]


def _arguments(config: type[Any]) -> dict[str, str]:
    """The text of each of the ``Args:``."""
    section = dedent(inspect.cleandoc(config.__doc__ or "").partition("\nArgs:\n")[2])
    texts: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if not line.startswith(" "):
            name, _, line = line.partition(":")
        texts[name] = f"{texts.get(name, '')} {line.strip()}".strip().removesuffix(".")
    return texts


# A command's flags ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flags:
    """The flags of one command.

    Args:
        command: the words that call it, without ``lrn``.
        about: what it does.
        settings: its flags.
        words: the settings that are typed without a flag, in this order; a list at the end takes all further
            words.
        presets: named sets of values; with them come ``--config`` and ``--print_config``.
        elsewhere: what to say of a flag, by its setting's name, that is not this command's but another's.
        stray: what to say of a word too many.
        forms: the ways to call it, for the help, where there is another than by its words and flags.
    """

    command: str
    about: str
    settings: Sequence[Setting]
    words: tuple[str, ...] = ()
    presets: Mapping[str, Mapping[str, Any]] | None = None
    elsewhere: Callable[[str], str | None] = lambda name: None
    stray: str = ""
    forms: tuple[str, ...] = ()

    @classmethod
    def of(cls, command: str, config: type[Any], **more: Any) -> Flags:
        """The flags of a command whose settings are those of a dataclass."""
        return cls(command, about(config), settings_of(config), **more)

    def read(self, words: Sequence[str], make: Callable[..., Made]) -> Made:
        """What ``make`` makes of the values of all settings."""
        typed = self.typed(words)
        printed, files = typed.pop("print_config", False), typed.pop("config", [])
        values = self._defaults(typed.get("preset"), files) | typed
        missing = [name.upper() for name, value in values.items() if value is MISSING]
        if missing:
            self._refuse(f"{' and '.join(missing)} must be given")
        made = make(**values)
        if not printed:
            return made
        import yaml

        print(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), end="")
        raise SystemExit(0)

    def typed(self, words: Sequence[str]) -> dict[str, Any]:
        """The values that the words give, and no others."""
        try:
            found, rest = self._parser().parse_known_args(_tied(words))
        except argparse.ArgumentError as error:
            self._refuse_value(error)
        values = vars(found)
        if values.pop("help", False):
            self.print_help(values.get("preset"), values.get("config", []))
            raise SystemExit(0)
        for word in rest:
            if word.startswith("-"):
                self._refuse_flag(word.partition("=")[0])
        types = {setting.name: setting.type for setting in self.settings}
        if self.words and types[self.words[-1]] == list[str] and len(rest) >= len(self.words):
            last = len(self.words) - 1
            return values | dict(zip(self.words, [*rest[:last], rest[last:]], strict=True))
        if len(rest) > len(self.words):
            stray = f"; {self.stray}" if self.stray else ""
            self._refuse(f"unexpected word {rest[len(self.words)]!r}{stray}")
        return values | dict(zip(self.words, rest, strict=False))

    def print_help(self, preset: str | None = None, files: Sequence[str] = ()) -> None:
        """Explain every flag, with its value where nothing else is typed."""
        print(self._parser(self._defaults(preset, files)).format_help(), end="")

    def _defaults(self, preset: str | None, files: Sequence[str]) -> dict[str, Any]:
        """What holds where nothing is typed."""
        values = {s.name: [*s.default] if s.type == list[str] else s.default for s in self.settings}
        if self.presets is None:
            return values
        filed: dict[str, Any] = {}
        for file in files:
            filed |= read_file(file, self.settings)
        name = filed.get("preset", values["preset"]) if preset is None else preset
        choice("preset", name, tuple(self.presets))
        chosen = {key: value for key, value in self.presets[name].items() if key in values}
        return values | chosen | filed | {"preset": name}

    def _refuse(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (lrn {self.command} --help explains)")

    def _refuse_flag(self, flag: str) -> NoReturn:
        known = [setting.name for setting in self.settings if setting.name not in self.words]
        known += ["config", "print_config"] if self.presets is not None else []
        said = self.elsewhere(_name(flag))
        self._refuse(f"unknown flag {flag!r}{f'; {said}' if said else nearest(_name(flag), known, '--')}")

    def _refuse_value(self, error: argparse.ArgumentError) -> NoReturn:
        flag = str(error.argument_name).partition("/")[0]
        if isinstance(error.__context__, argparse.ArgumentTypeError):  # it is ours
            self._refuse(f"{flag}: {error.message}")
        expected = {setting.name: setting.kind.expected for setting in self.settings}
        expected["config"] = YAML.expected
        name = _name(flag)
        self._refuse(
            f"{flag}: expected {expected[name]}, got nothing"
            if name in expected
            else f"{flag} takes no value"
        )

    def _parser(self, defaults: Mapping[str, Any] | None = None) -> argparse.ArgumentParser:
        """What reads the words; with ``defaults``, what prints the help."""
        known = {setting.name: setting for setting in self.settings}
        words = [_shape(known[word]) for word in self.words]
        forms = self.forms or (" ".join([self.command, *words]),)
        usage = "\n       ".join(f"lrn {form} [--flags]" for form in forms)
        presets = f" Presets: {', '.join(self.presets)}." if self.presets else ""
        parser = argparse.ArgumentParser(
            usage=usage,
            description=self.about + presets,
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            argument_default=argparse.SUPPRESS,
            formatter_class=partial(argparse.HelpFormatter, max_help_position=28),
        )
        groups: dict[str, Any] = {}
        for setting in self.settings:
            group = groups.get(setting.group) or parser.add_argument_group(setting.group)
            groups[setting.group] = group
            if setting.name not in self.words:
                _add(group, setting, (defaults or {}).get(setting.name))
            elif defaults is not None:
                group.add_argument(setting.name, metavar=setting.name.upper(), help=_escaped(setting.help))
        others = parser.add_argument_group("others")
        others.add_argument("-h", "--help", action="store_true", help="explain this")
        if self.presets is not None:
            file = "a YAML file with settings; flags are stronger than it, it is stronger than the preset"
            others.add_argument("--config", metavar="FILE", action="append", type=YAML, help=file)
            print_config: dict[str, Any] = {"action": "store_true", "dest": "print_config"}
            others.add_argument("--print_config", help="print all settings as YAML, and end", **print_config)
            others.add_argument("--print-config", help=argparse.SUPPRESS, **print_config)
        return parser


def _shape(word: Setting) -> str:
    """A setting that is typed without a flag as the usage has it: ``RUN``, ``RUN…``, or ``[TASK]`` if it may
    be left out."""
    name = word.name.upper()
    if word.type == list[str]:
        return f"{name}…"
    return name if word.default is MISSING else f"[{name}]"


def _name(flag: str) -> str:
    """The setting that a flag sets, in whichever spelling."""
    return flag.lstrip("-").replace("-", "_")


def _tied(words: Sequence[str]) -> list[str]:
    """The words with ``--keep -1e-3`` as ``--keep=-1e-3``: argparse takes such a number for a flag."""
    tied: list[str] = []
    for word in words:
        if word[:1] == "-" and word[1:2] in tuple(".0123456789") and tied and tied[-1].startswith("--"):
            tied[-1] += f"={word}"
        else:
            tied.append(word)
    return tied


def _add(group: Any, setting: Setting, default: Any) -> None:
    """A flag, and other ways to write it, which the help does not repeat."""
    name, other = setting.name, setting.name.replace("_", "-")
    more: dict[str, Any] = {"dest": name, "type": setting.kind, "metavar": setting.kind.metavar.upper()}
    if setting.type == list[str]:
        more |= {"action": "extend", "nargs": "+"}
    if setting.type is bool:
        more |= {"nargs": "?", "const": True}
    group.add_argument(f"--{name}", help=_escaped(setting.help + _shown(name, default)), **more)
    if other != name:
        group.add_argument(f"--{other}", help=argparse.SUPPRESS, **more)
    if setting.type is bool:
        off = {f"--no-{name}", f"--no_{name}", f"--no-{other}"}
        group.add_argument(*sorted(off), dest=name, action="store_const", const=False, help=argparse.SUPPRESS)


def _shown(name: str, default: Any) -> str:
    """The default as the help has it; nothing of one that says nothing."""
    if isinstance(default, bool):
        default = f"true; --no-{name} turns it off" if default else None
    if isinstance(default, list):
        default = " ".join(default)
    return "" if default in (None, MISSING, "") else f" (default {default})"


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


# Files of settings ------------------------------------------------------------------------------


def read_file(file: str, settings: Sequence[Setting]) -> dict[str, Any]:
    """The values in a YAML or JSON file. An error names the file, the setting, what it is and should be.

    A value is read from its text as it stands there, like a flag's: 1e-3 is a number, which YAML denies.
    """
    known = {setting.name: setting for setting in settings}
    values: dict[str, Any] = {}
    for key, value in _entries(file):
        name = key.value if key.id == "scalar" else f"a {key.id}"
        if name not in known:
            raise ValueError(f"{file}: unknown setting {name!r}{nearest(name, tuple(known))}")
        if name in values:
            raise ValueError(f"{file}: {name} is set twice")
        try:
            values[name] = _value(value, known[name])
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"{file}: {name}: {error}") from None
    return values


def _entries(file: str) -> list[tuple[Any, Any]]:
    """The keys and values of a file, as YAML's nodes."""
    import yaml

    from lrn.files import text_lines

    path = Path(file)
    if path.is_dir():
        raise ValueError(f"--config: {file} is a folder; expected a YAML file")
    if not path.exists():
        raise FileNotFoundError(f"--config: there is no file {file}")
    try:
        text = "\n".join(line for _, line in text_lines(path.read_bytes().splitlines(), file))
        if text.lstrip().startswith("{"):
            text = text.replace("\t", " ")  # JSON may be indented so, YAML may not
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if node is None or not node.value:
        found = "empty"
    elif node.id == "mapping":
        return list(node.value)
    else:
        found = "a list" if node.id == "sequence" else f"the text {node.value[:40]!r}"
    raise ValueError(f"{file} is {found}; expected a setting a line, like epochs: 3")


def _value(node: Any, setting: Setting) -> Any:
    """What a node of YAML stands for, by its text."""
    several = setting.type == list[str]
    if several and node.id == "sequence" and all(item.id == "scalar" for item in node.value):
        return [setting.kind(_text(item)) for item in node.value]
    empty = node.tag == "tag:yaml.org,2002:null"
    if setting.type == str | None and empty:
        return None
    expected = "a list of texts" if several else setting.kind.expected
    if several or node.id != "scalar" or empty:
        found = "nothing" if empty else {"scalar": "a text", "sequence": "a list"}.get(node.id, "settings")
        raise argparse.ArgumentTypeError(f"expected {expected}, got {found}")
    if node.style is not None and setting.type in (int, float, bool):  # in quotes
        raise argparse.ArgumentTypeError(f"expected {expected}, got the text {node.value[:60]!r}")
    return setting.kind(_text(node))


def _text(node: Any) -> str:
    """The text of a node. JSON writes some characters as two halves, which YAML leaves apart."""
    return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
