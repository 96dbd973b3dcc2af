"""``lrn …``: thin; every command imports what it needs when it runs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lrn import names

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# which extra brings a package
EXTRAS = {
    "rich": "train",
    "lightning": "train",
    "jsonargparse": "train",
    "numpy": "train",
    "yaml": "train",
    "safetensors": "train",
    "matplotlib": "plot",
}
OVERVIEW = """\
lrn: lightweight recurrent networks for PyTorch

Try first:
  lrn demo             LRN and nn.LSTM side by side, for two minutes
  lrn compare lm       the same model with six units: a table and a page; a few minutes, no data needed
  lrn bench            speed against nn.LSTM, nn.GRU and others on this machine

  lrn train TASK       train a model: lm (language), ner (named entities), doc (documents)
  lrn evaluate RUN     figures of a trained model
  lrn predict RUN      use a trained model
  lrn memory RUN       draw what a document classifier remembers of a text
  lrn gradients        draw how far back gradients reach, by unit
  lrn params [TASK]    parameter counts of every unit beside the paper's
  lrn doctor           what is installed, and whether the engine computes what it should
  lrn export RUN FILE  weights as safetensors; lrn import RUN FILE brings them back

`lrn COMMAND --help` explains a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help"):
        print(OVERVIEW)
        return 0
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"lrn {version('lrn')}")
        return 0
    try:
        return _run(words[0], words[1:])
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS or debug:
            raise
        return _fail(f"this command needs {package}: pip install 'lrn[{EXTRAS[package]}]'")
    except BrokenPipeError:  # whoever read our output has seen enough
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains once more when it ends
        return 0
    except KeyboardInterrupt:
        if debug:
            raise
        _fail("stopped")
        return 130
    except (OSError, ValueError) as error:
        if debug:
            raise
        return _fail(_one_line(error))


def _run(command: str, rest: list[str]) -> int:
    from lrn.checks import choice

    return COMMANDS[choice("command", command, tuple(COMMANDS))](rest)


def _fail(message: str) -> int:
    print(f"lrn: {message}", file=sys.stderr)
    return 2


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


def _parser(command: str, description: str) -> ArgumentParser:
    from jsonargparse import ArgumentParser

    return ArgumentParser(
        prog=f"lrn {command}",
        description=description,
        exit_on_error=False,
        allow_abbrev=False,  # what looks for a flag in the words has to find it
        formatter_class=_formatter(),
    )


def _formatter() -> type[Any]:
    """Help with switches as they are typed: ``--overwrite``. One that is on says how to turn it off."""
    from copy import copy

    from jsonargparse import DefaultHelpFormatter

    def as_typed(action: Any) -> Any:
        if getattr(action, "_typehint", None) is not bool or action.default is not False:
            return action
        switch = copy(action)
        switch.nargs = 0
        return switch

    class Formatter(DefaultHelpFormatter):
        def add_usage(self, usage: Any, actions: Any, *rest: Any, **more: Any) -> None:
            super().add_usage(usage, [as_typed(action) for action in actions], *rest, **more)

        def add_argument(self, action: Any) -> None:
            super().add_argument(as_typed(action))

    return Formatter


def _read(parser: ArgumentParser, words: list[str]) -> dict[str, Any]:
    """Parse; what is wrong with the words comes back as a ValueError of one line."""
    import argparse

    try:
        values: dict[str, Any] = parser.parse_args(_as_typed(parser, words)).as_dict()
    except argparse.ArgumentError as error:
        text = _plain(" ".join(error.message.split()), parser)
        raise ValueError(f"{text} ({parser.prog} --help explains)") from None
    return values


def _plain(text: str, parser: ArgumentParser) -> str:
    """The parser's words as ours: flags by their names, types without ceremony, the nearest flag."""
    from lrn.checks import nearest

    text = re.sub(r'Parser key "(\w+)":', r"--\1:", text)
    text = re.sub(r"Expected an? <class '(\w+)'>", r"expected \1", text)
    unknown = re.match(r"[Uu]nrecognized arguments: --([\w-]+)", text)
    if unknown:
        names = tuple(flag[2:] for flag in parser._option_string_actions if flag.startswith("--"))
        text += nearest(unknown[1], names, "--")
    return text


def _as_typed(parser: ArgumentParser, words: list[str]) -> list[str]:
    """What people type, as jsonargparse reads it: a flag alone is true, a list is ``--files a b``, - is _."""
    words = [_underscored(word, parser) for word in words]
    types = {f"--{action.dest}": getattr(action, "_typehint", None) for action in parser._actions}
    read: list[str] = []
    lists: dict[str, list[str]] = {}
    current = ""  # the list that the words at hand belong to
    for word, following in pairwise([*words, ""]):
        if word.startswith("--"):
            current = word if types.get(word) == list[str] else ""
            if current:
                lists[current] = []
                continue
        elif current:
            lists[current].append(word)
            continue
        alone = types.get(word) is bool and following.lower() not in ("true", "false")
        read.append(f"{word}=true" if alone else word)
    return read + [f"{flag}={json.dumps(values)}" for flag, values in lists.items()]


def _underscored(word: str, parser: ArgumentParser) -> str:
    flag, equals, value = word.partition("=")
    other = "--" + flag[2:].replace("-", "_")
    known = parser._option_string_actions
    return other + equals + value if flag not in known and other in known else word


# Demonstration and benchmark --------------------------------------------------------------------


def demo(words: list[str]) -> int:
    """Train LRN and nn.LSTM side by side for two minutes."""
    parser = _parser("demo", "Train LRN and nn.LSTM of equal width side by side on Python's documentation.")
    parser.add_argument("--width", type=int, default=256, help="hidden size of both")
    parser.add_argument("--layers", type=int, default=2, help="layers of both")
    parser.add_argument("--steps", type=int, default=300, help="training steps at the most")
    parser.add_argument("--seconds", type=float, default=90.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="for weights and batches")
    values = _read(parser, words)
    from lrn import demo

    demo.run(demo.Settings(**values))
    return 0


def bench(words: list[str]) -> int:
    """Measure speed against nn.LSTM, nn.GRU and others."""
    parser = _parser("bench", "Measure the units' speed against nn.LSTM, nn.GRU and others, taking turns.")
    shapes = "steps, batch, width of your own; may be given more than once (default: eight shapes and more)"
    parser.add_argument("--shape", action="append", metavar="T,B,H", help=shapes)
    parser.add_argument("--seconds", type=float, default=12.0, help="for each shape and mode")
    parser.add_argument("--out", default="bench", help="folder for bench.json and bench.png")
    values = _read(parser, words)
    if not values["seconds"] > 0:
        raise ValueError(f"--seconds must be positive, got {values['seconds']}")
    shapes_wanted = tuple(_shape(text) for text in values["shape"] or ())
    from pathlib import Path

    from lrn import bench

    bench.run(bench.Settings(shapes_wanted, values["seconds"], Path(values["out"])))
    return 0


def doctor(words: list[str]) -> int:
    """What is installed, and a check of the engine."""
    parser = _parser("doctor", "Say what is installed, and check the C++ engine against the definition.")
    parser.add_argument("--seconds", type=float, default=5.0, help="for the check")
    values = _read(parser, words)
    from lrn import doctor

    return doctor.run(values["seconds"])


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--shape must be three positive whole numbers T,B,H, like 32,128,300; got {text!r}")
    steps, batch, width = map(int, parts)
    return steps, batch, width


# Tasks ------------------------------------------------------------------------------------------


def train(words: list[str]) -> int:
    """Train a task's model, or go on with a run that was interrupted."""
    from lrn import commands, tasks

    if "--resume" in words or any(word.startswith("--resume=") for word in words):
        parser = _parser("train --resume RUN", "Go on with an interrupted run, to the same result.")
        parser.add_argument("--resume", metavar="RUN", required=True, help="the run folder")
        parser.add_argument("--data", help="where the data is now, if it has moved")
        try:
            values = _read(parser, words)
        except ValueError as error:
            raise ValueError(f"{error}; a run that is resumed keeps its task and its settings") from None
        return commands.resume(values["resume"], values["data"])
    if not words or words[0].startswith("-"):
        print("usage: lrn train TASK [settings], or lrn train --resume RUN\n")
        print(f"tasks: {', '.join(names.TASKS)}\n`lrn train TASK --help` explains a task's settings.")
        return 0 if words[:1] in ([], ["-h"], ["--help"]) else 2
    name, rest = words[0], words[1:]
    settings = tasks.settings(name)
    about = (settings.train.__doc__ or "").partition("\n")[0]
    parser = _parser(f"train {name}", f"{about} Presets: {', '.join(settings.presets)}.")
    parser.add_argument("--config", action="config", help="a YAML file with settings")
    parser.add_class_arguments(settings.train, None)
    _check_files(parser, rest)
    parser.set_defaults(commands.preset(settings, rest))
    values = _read(parser, commands.config_first(rest))
    values.pop("config")
    return commands.train(name, settings.train(**values))


def compare(words: list[str]) -> int:
    """Train the same model with several units, and report."""
    from lrn import commands, tasks

    if not words or words[0].startswith("-"):
        print("usage: lrn compare TASK [--units lstm,gru,…] [--seeds 1,2,3] [--out DIR] [settings]\n")
        print(f"tasks: {', '.join(names.TASKS)}\n`lrn compare TASK --help` explains all settings.")
        return 0 if words[:1] in ([], ["-h"], ["--help"]) else 2
    name, rest = words[0], words[1:]
    settings = tasks.settings(name)
    parser = _parser(f"compare {name}", "Train the same model with several units, measure, and report.")
    parser.add_argument("--config", action="config", help="a YAML file with settings")
    parser.add_argument("--units", default="lstm,gru,atr,sru,lrn,olrn", help="the units to compare")
    parser.add_argument("--seeds", default="1", help="a run of every unit for each")
    parser.add_class_arguments(settings.train, None, skip={"unit", "seed"})
    _check_files(parser, rest)
    parser.set_defaults({k: v for k, v in commands.preset(settings, rest).items() if k != "seed"})
    values = _read(parser, commands.config_first(rest))
    values.pop("config")
    return commands.compare(name, settings.train, values)


def _check_files(parser: ArgumentParser, words: list[str]) -> None:
    """Read every ``--config`` file by itself first, so that an error can name the file."""
    from lrn import commands

    known = tuple(a.dest for a in parser._actions if a.dest not in ("help", "config", "print_config"))
    for file in commands.config_files(words):
        commands.check_names(file, known)
        try:
            _read(parser, ["--config", file])
        except ValueError as error:
            raise ValueError(f"{file}: {str(error).removeprefix('--')}") from None


def evaluate(words: list[str]) -> int:
    """Figures of a trained model."""
    from lrn import commands

    return commands.evaluate(*_of_run("evaluate", words))


def predict(words: list[str]) -> int:
    """Use a trained model."""
    from lrn import commands

    return commands.predict(*_of_run("predict", words))


def memory(words: list[str]) -> int:
    """What a document classifier remembers of a text."""
    from lrn import commands

    return commands.memory(*_of_run("memory", words))


def gradients(words: list[str]) -> int:
    """How far back in time gradients reach, by unit."""
    parser = _parser(
        "gradients", "Draw how gradients shrink or grow on their way back through time, by unit."
    )
    parser.add_argument("--units", default="lstm,gru,atr,sru,lrn,olrn", help="the units to compare")
    parser.add_argument("--steps", type=int, default=100, help="length of the sequence")
    parser.add_argument("--hidden", type=int, default=64, help="width of every unit")
    parser.add_argument("--keep", type=float, default=0.0, help="first bias of the gates that keep the state")
    parser.add_argument("--seed", type=int, default=1, help="for weights and input")
    parser.add_argument("--out", default="gradients.png", help="the picture to write, .png or .svg")
    parser.add_argument("--overwrite", type=bool, default=False, help="replace a picture that is there")
    values = _read(parser, words)
    from pathlib import Path

    from lrn import commands, compare

    units, out = compare.units_of(values.pop("units")), Path(values.pop("out"))
    commands.check_free([out], values.pop("overwrite"))
    for name in ("steps", "hidden"):
        if values[name] < 1:
            raise ValueError(f"--{name} must be at least 1, got {values[name]}")
    return commands.gradients(units, **values, out=out)


def _options(task: str, command: str) -> Any:
    from lrn import tasks

    settings = tasks.settings(task)
    shared = {"evaluate": settings.evaluate, "predict": settings.predict}
    return (shared | dict(settings.commands)).get(command)


def _of_run(command: str, words: list[str]) -> tuple[Any, Any]:
    """The run that the first word names, and the task's options for ``command``."""
    from lrn.training.run import Run

    if words[:1] in (["-h"], ["--help"]):
        print(f"usage: lrn {command} RUN [options]; RUN is a folder that lrn train has made\n")
        for name in names.TASKS:
            options = _options(name, command)
            if options is None:
                continue
            print(f"for a run of {name}:")
            parser = _parser(f"{command} RUN", options.__doc__.partition("\n")[0])
            parser.add_class_arguments(options, None)
            parser.print_help()
            print()
        raise SystemExit(0)
    if not words or words[0].startswith("-"):
        raise ValueError(f"usage: lrn {command} RUN [options]; RUN is a folder that lrn train has made")
    run, rest = Run.open(words[0]), words[1:]
    name = run.task
    options = _options(name, command)
    if options is None:
        raise ValueError(f"{words[0]} is a run of {name}, for which there is no lrn {command}")
    parser = _parser(f"{command} RUN", options.__doc__.partition("\n")[0])
    parser.add_class_arguments(options, None)
    return run, options(**_read(parser, rest))


def params(words: list[str]) -> int:
    """Parameter counts of every unit in the paper's settings."""

    parser = _parser("params", "Exact parameter counts of every unit in the paper's settings.")
    parser.add_argument("task", nargs="?", help=f"one of {', '.join(names.TASKS)}; all if there is none")
    values = _read(parser, words)
    from lrn import commands

    return commands.params([values["task"]] if values["task"] else list(names.TASKS))


def export(words: list[str]) -> int:
    """Weights as safetensors."""
    parser = _parser("export", "Write the best weights of a run as safetensors, for other programs.")
    parser.add_argument("run", help="the run folder")
    parser.add_argument("file", help="the file to write; it must not exist")
    values = _read(parser, words)
    from lrn import commands

    return commands.export(values["run"], values["file"])


def import_(words: list[str]) -> int:
    """Weights from safetensors."""
    parser = _parser("import", "Take a safetensors file's weights as the best weights of a run.")
    parser.add_argument("run", help="the run folder")
    parser.add_argument("file", help="the file to read")
    parser.add_argument(
        "--overwrite", type=bool, default=False, help="replace the best weights that are there"
    )
    values = _read(parser, words)
    from lrn import commands

    return commands.import_(values["run"], values["file"], values["overwrite"])


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "demo": demo,
    "train": train,
    "bench": bench,
    "compare": compare,
    "evaluate": evaluate,
    "predict": predict,
    "memory": memory,
    "gradients": gradients,
    "params": params,
    "doctor": doctor,
    "export": export,
    "import": import_,
}
