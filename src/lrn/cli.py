"""``lrn …``: thin; every command imports what it needs when it runs, and checks what it is given before."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import lrn
from lrn import checks, names, own

if TYPE_CHECKING:
    from lrn.tasks.settings import TaskSettings
    from lrn.training.config import TrainConfig
    from lrn.training.run import Run

Options = TypeVar("Options")

NO_MEMORY = ("not enough memory", "can't allocate", "out of memory")
OVERVIEW = f"""\
lrn: lightweight recurrent networks for PyTorch

Try first:
  lrn compare          the same model with six units: a table and a page; a few minutes, no data needed
  lrn bench            speed against nn.LSTM, nn.GRU and others on this machine

  lrn train TASK       train a model; the tasks: {", ".join(names.TASKS)}
  lrn evaluate RUN     figures of a trained model
  lrn predict RUN      use a trained model
  lrn serve RUN        a page on this machine to try a trained model in
  lrn memory RUN       draw what a document classifier remembers of a text
  lrn gradients        draw how far back gradients reach, by unit
  lrn results RUN…     what runs have come to, as a table in Markdown beside the paper's figures
  lrn params [TASK]    parameter counts of every unit beside the paper's
  lrn paper [TABLE]    how to repeat every table and figure of the paper
  lrn doctor           what is installed, and whether the engine computes what it should
  lrn average RUN      a run with the mean of the weights of another's latest epochs
  lrn export RUN FILE  a model in one file, for lrn.load and lrn import, or as ONNX
  lrn import RUN FILE  take the weights in such a file as the best of a run

`lrn COMMAND --help` explains a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _open_closed()
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        with _stopped_in_imports():
            code = _run(words)
        sys.stdout.flush()  # here, where it may fail
        return code
    except BrokenPipeError:
        return _end_unread()
    except (Exception, KeyboardInterrupt) as error:
        said = None if debug else _in_a_line(error)
        if said is None:
            raise
        print(f"lrn: {said}", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 2


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(OVERVIEW)
        return 0
    if words[0] == "--version":
        print(f"lrn {lrn.__version__}")
        return 0
    try:
        return COMMANDS[checks.choice("command", words[0], tuple(COMMANDS))](words[1:])
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # rich ends the program where nobody reads on
            raise left.__context__ from None
        if left.code:
            raise
        return 0  # help and printed settings


def _open_closed() -> None:
    """Give the program the streams that a shell has closed for it (``>&-``): empty ones, at their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (they stay open)


@contextmanager
def _stopped_in_imports() -> Iterator[None]:
    """Let Ctrl-C end the program at once while anything is imported: C code there may lose what is raised."""

    def stop(number: int, frame: FrameType | None) -> None:
        at = frame
        while at is not None:
            if at.f_code.co_filename.startswith("<frozen importlib"):
                os.write(2, b"lrn: stopped\n")
                os._exit(130)
            at = at.f_back
        raise KeyboardInterrupt

    try:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        before = signal.signal(signal.SIGINT, stop) if usual else None
    except ValueError:  # a thread beside the first, which hears no signals
        before = None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _end_unread() -> int:
    """End without a word when whoever read our output has seen enough of it."""
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except BrokenPipeError:  # Python would complain once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
    return 141  # what shells say of a program that ends by SIGPIPE


def _in_a_line(error: BaseException) -> str | None:
    """What to tell the user; None of an error that is ours and not theirs."""
    if isinstance(error, KeyboardInterrupt):
        return "stopped"
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        extra = checks.EXTRAS.get(package)
        return f"this command needs {package}: {checks.install(extra)}" if extra else None
    if _lacks_memory(error):
        return (
            "there is not enough memory for this; lower --batch_size (--accumulate makes up for it), "
            "widths like --hidden, or the length of texts"
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).splitlines()) if isinstance(error, OSError | ValueError) else None


def _lacks_memory(error: BaseException) -> bool:
    """Whether memory has run out: torch has an error of its own for GPUs, on a CPU only the text tells."""
    if isinstance(error, RuntimeError):
        return any(text in str(error).lower() for text in NO_MEMORY)
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _say(text: str, always: bool = False) -> None:
    """A first line for someone who waits while torch is imported: at a terminal, or for what takes long."""
    from lrn.training.run import first_process

    if (always or sys.stderr.isatty()) and first_process():
        print(text, file=sys.stderr, flush=True)


# Training ---------------------------------------------------------------------------------------

KEPT = "a run that is resumed keeps its task and its settings"


def train(words: list[str]) -> int:
    """Train a task's model, or go on with a run that was interrupted."""
    if not words or words[0].startswith("-"):
        return _resume(words or ["--help"])
    from lrn import commands, tasks
    from lrn.flags import Flags
    from lrn.training.run import Run, first_process

    name, task = words[0], tasks.settings(words[0])
    of_others = _of_others(name, "train")

    def elsewhere(flag: str) -> str | None:
        return f"{KEPT}: lrn train --resume RUN" if flag == "resume" else of_others(flag)

    flags = Flags.of(f"train {name}", task.train, presets=task.presets, elsewhere=elsewhere)
    config = flags.read(words[1:], task.train)
    own.trust(config.unit)
    _check_training(task, config)
    if first_process():
        Run.check_free(name, config)
    commands.check_packages()
    commands.check_units(config.unit)
    _say(f"{Run.folder_for(name, config)}: reading the data …", always=True)
    return commands.train(name, config)


def _resume(words: list[str]) -> int:
    from dataclasses import replace

    from lrn import commands, tasks
    from lrn.flags import Flags, about, settings_of
    from lrn.options import Resume
    from lrn.training.config import from_dict
    from lrn.training.run import Run, first_process

    resumed = any(word.partition("=")[0] == "--resume" for word in words)
    first = _task_first("train", words)
    known = [setting.name for name in names.TASKS for setting in settings_of(tasks.settings(name).train)]
    elsewhere = dict.fromkeys([*known, "config", "print_config", "task"], KEPT if resumed else first)
    text = about(Resume).replace("TASKS", ", ".join(names.TASKS))
    forms = ("train TASK", "train --resume RUN")
    stray = "" if resumed else first
    flags = Flags("train", text, settings_of(Resume), elsewhere=elsewhere.get, stray=stray, forms=forms)
    changes = flags.typed(words)
    if "resume" not in changes:
        raise ValueError(f"name a task, {', '.join(names.TASKS)}, or a run to go on with: --resume RUN")
    run = Run.open(changes.pop("resume"))
    task = tasks.settings(run.task)
    before = from_dict(task.train, run.config)
    config = replace(before, **{name: value for name, value in changes.items() if name != "data"})
    if config.epochs < before.epochs:
        raise ValueError(
            f"--epochs {config.epochs}: {run.folder} was told {before.epochs}, and can only go further"
        )
    checks.threads(config.threads)
    _check_data(task, run, changes.get("data"))
    if first_process():
        run.check_unlocked()
    commands.check_packages()
    commands.check_units(config.unit)
    _say(f"{run.folder}: reading its state and its data …", always=True)
    return commands.resume(run, changes)


def _task_first(command: str, words: list[str]) -> str:
    """What to say of a task that does not come first."""
    task = next((word for word in words if word in names.TASKS), "TASK")
    return f"name the task first: lrn {command} {task} …"


def compare(words: list[str]) -> int:
    """Train the same model with several units, and report."""
    if words[:1] in (["-h"], ["--help"]):
        print("usage: lrn compare [TASK] [--units lstm,gru,…] [--seeds 1,2,3] [--out DIR] [--flags]")
        print("       lrn compare --tasks lm,ner,… [--units …] [--seeds …] [--out DIR]\n")
        print(
            f"tasks: {', '.join(names.TASKS)}; without one it is {names.FIRST_TASK}, on built-in documents."
        )
        print("`lrn compare TASK --help` explains all settings; --tasks makes one page of several tasks.")
        return 0
    if any(word.partition("=")[0] == "--tasks" for word in words):
        return _survey(words)
    first = _task_first("compare", words)
    named = bool(words) and not words[0].startswith("-")
    words = words if named else [names.FIRST_TASK, *words]
    from lrn import commands, tasks
    from lrn.compare import matching
    from lrn.compare.plan import MATCHES, Plan, rates_of, seeds_of, units_of
    from lrn.flags import Flags, about, settings_of
    from lrn.options import Compare

    name, task = words[0], tasks.settings(words[0])

    def make(units: str, seeds: str, lrs: str | None, match: str, against: str | None, **values: Any) -> Plan:
        chosen, numbers, rates = units_of(units), seeds_of(seeds), rates_of(lrs)
        configs = [task.train(**values, unit=chosen[0], seed=number) for number in numbers]
        if against is not None:
            checks.choice("--against", against, ("paper",))
        matching.check(name, configs[0], checks.choice("--match", match, MATCHES))
        return Plan(name, configs[0], tuple(chosen), tuple(numbers), tuple(rates), against, match)

    settings = [*settings_of(Compare), *settings_of(task.train, without=("unit", "seed", "out", "overwrite"))]
    of_others = _of_others(name, "train")
    flags = Flags(
        f"compare {name}",
        about(Compare),
        settings,
        presets=task.presets,
        elsewhere=lambda flag: f"{first}, or several: --tasks" if flag == "task" else of_others(flag),
        stray="" if named else first,
    )
    plan = flags.read(words[1:], make)
    _check_training(task, plan.config)
    return commands.compare(plan)


def _survey(words: list[str]) -> int:
    """The same units on several tasks."""
    from lrn import commands, survey
    from lrn.compare import seeds_of, units_of
    from lrn.options import Survey

    options = _read("compare", Survey, words)
    plans = survey.plans_of(
        survey.tasks_of(options.tasks),
        units_of(options.units),
        seeds_of(options.seeds),
        threads=options.threads,
        overwrite=options.overwrite,
    )
    return commands.survey(plans, options.out)


def _check_training(task: TaskSettings, config: TrainConfig) -> None:
    """An error unless all that the settings name is there, before anything slow is imported or read."""
    from dataclasses import fields

    from lrn.training.run import Run

    checks.files(config)
    checks.threads(config.threads)
    task.check_data(config.data)
    task.check(config)
    for setting in fields(config):
        if setting.metadata == checks.RUN and getattr(config, setting.name):
            Run.open(getattr(config, setting.name))


def _check_data(task: TaskSettings, run: Run, data: str | None) -> None:
    """An error unless the data is where the user says, or where the run has it."""
    task.check_data(data, "it is what the run was trained on")
    run.data(data)


# A trained model --------------------------------------------------------------------------------


def evaluate(words: list[str]) -> int:
    """Figures of a trained model."""
    from lrn import commands, tasks

    run, options = _of_run("evaluate", words)
    run.file("last.ckpt" if options.last else "best.ckpt")
    _check_data(tasks.settings(run.task), run, options.data)
    _say(f"{run.folder}: reading model and data …")
    return commands.evaluate(run, options)


def predict(words: list[str]) -> int:
    """Use a trained model."""
    from lrn import commands, tasks

    run, options = _of_run("predict", words)
    tasks.settings(run.task).check_use(options)
    run.file("best.ckpt")
    _say(f"{run.folder}: reading the model …")
    return commands.predict(run, options)


def serve(words: list[str]) -> int:
    """A page to try a trained model in."""
    from lrn import commands
    from lrn.options import Serve

    options = _read("serve", Serve, words, "run")
    commands.check_model(options.run)
    _say(f"{options.run}: reading the model …")
    return commands.serve(options)


def memory(words: list[str]) -> int:
    """What a document classifier remembers of a text."""
    from lrn import commands

    run, options = _of_run("memory", words)
    run.file("best.ckpt")
    commands.check_free(options.out, options.overwrite)
    _say(f"{run.folder}: reading the model …")
    return commands.memory(run, options)


def _of_run(command: str, words: list[str]) -> tuple[Run, Any]:
    """The run that the first word names, and the options of its task for the command."""
    from lrn import tasks
    from lrn.flags import Flags
    from lrn.training.config import from_dict
    from lrn.training.run import Run

    usage = f"lrn {command} RUN [--flags]; RUN is a folder that lrn train has made"
    if words[:1] in (["-h"], ["--help"]):
        print(f"usage: {usage}\n")
        found = {name: options for name in names.TASKS if (options := _options(name, command))}
        if len(found) > 1:
            print(f"`lrn {command} RUN --help` shows what is for that run alone; this is for every task.\n")
        for name, options in found.items():
            print(f"for a run of {name}:")
            Flags.of(f"{command} RUN", options).print_help()
            print()
        raise SystemExit(0)
    if not words or words[0].startswith("-"):
        raise ValueError(f"usage: {usage}")
    run = Run.open(words[0])
    options = _options(run.task, command)
    if options is None:
        raise ValueError(f"{run.folder} is a run of {run.task}, for which there is no lrn {command}")
    flags = Flags.of(
        f"{command} RUN",
        options,
        elsewhere=_of_others(run.task, command),
        stray=options.stray,
    )
    made = flags.read(words[1:], options)
    checks.files(made)
    from_dict(tasks.settings(run.task).train, run.config)
    return run, made


def _of_others(task: str, command: str) -> Callable[[str], str | None]:
    """What to say of a flag that a command has for other tasks, but not for this one."""

    def said(flag: str) -> str | None:
        from lrn.flags import settings_of

        options = {name: _options(name, command) for name in names.TASKS}
        owners = [n for n, of in options.items() if of and flag in {s.name for s in settings_of(of)}]
        return f"it belongs to {' and '.join(owners)}" if owners and task not in owners else None

    return said


def _options(name: str, command: str) -> type[Any] | None:
    """The settings of a command for runs of a task; None if the task does not have it."""
    from lrn import tasks

    task = tasks.settings(name)
    return {"train": task.train, "evaluate": task.evaluate, "predict": task.predict, **task.commands}.get(
        command
    )


def results(words: list[str]) -> int:
    """What runs have come to, as a table."""
    from lrn import commands
    from lrn.options import Results

    return commands.results(_read("results", Results, words, "run"))


def export(words: list[str]) -> int:
    """Weights or a whole model for other programs."""
    from lrn import commands
    from lrn.options import Export

    return commands.export(_read("export", Export, words, "run", "file"))


def import_(words: list[str]) -> int:
    """Weights from safetensors."""
    from lrn import commands
    from lrn.options import Import

    options = _read("import", Import, words, "run", "file")
    return commands.import_(options.run, options.file, options.overwrite)


def average(words: list[str]) -> int:
    """The mean of the weights of a run's latest epochs."""
    from lrn import commands
    from lrn.options import Average

    options = _read("average", Average, words, "run")
    return commands.average(options.run, options.last, options.out)


# Units ------------------------------------------------------------------------------------------


def bench(words: list[str]) -> int:
    """Measure speed against nn.LSTM, nn.GRU and others."""
    from pathlib import Path

    from lrn.files import check_folder
    from lrn.options import Bench

    options = _read("bench", Bench, words)
    check_folder(Path(options.out))
    from lrn import bench, commands

    commands.set_threads(options.threads)
    bench.run(bench.Settings(options.shapes(), options.seconds, Path(options.out), options.device))
    return 0


def gradients(words: list[str]) -> int:
    """How far back in time gradients reach, by unit."""
    from lrn import commands, compare
    from lrn.options import Gradients

    options = _read("gradients", Gradients, words)
    units = compare.units_of(options.units)
    commands.check_free([options.out], options.overwrite)
    return commands.gradients(units, options)


def params(words: list[str]) -> int:
    """Parameter counts of every unit in the paper's settings."""
    from lrn import commands
    from lrn.options import Params

    options = _read("params", Params, words, "task")
    return commands.params([options.task] if options.task else [*names.TASKS])


def paper(words: list[str]) -> int:
    """How the paper's tables and figures are repeated."""
    from lrn import commands
    from lrn.options import Paper

    return commands.paper(_read("paper", Paper, words, "table"))


def doctor(words: list[str]) -> int:
    """What is installed, and a check of the engine."""
    from lrn.options import Doctor

    options = _read("doctor", Doctor, words)
    from lrn import commands, doctor

    commands.set_threads(options.threads)
    return doctor.run(options.seconds)


def _read(command: str, config: type[Options], words: list[str], *positional: str) -> Options:
    """The settings of a command that has the same for all tasks."""
    from lrn.flags import Flags

    return Flags.of(command, config, words=positional).read(words, config)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "compare": compare,
    "evaluate": evaluate,
    "predict": predict,
    "serve": serve,
    "memory": memory,
    "results": results,
    "average": average,
    "export": export,
    "import": import_,
    "bench": bench,
    "gradients": gradients,
    "params": params,
    "paper": paper,
    "doctor": doctor,
}
