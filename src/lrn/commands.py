"""What `lrn train`, `evaluate`, `predict`, `params`, `export` and `import` do, whatever the task."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrn import own, tasks
from lrn.files import check_folder, check_place
from lrn.names import MODEL_FILE
from lrn.options import Export, Gradients, Paper, Results, Serve
from lrn.training.config import TrainConfig, from_dict
from lrn.training.run import Run

if TYPE_CHECKING:
    from lrn.compare.plan import Plan


def train(name: str, config: TrainConfig) -> int:
    """A new run."""
    from lrn.training import device
    from lrn.training.loop import Loop

    task = tasks.load(name)
    device.check(config)
    set_threads(config.threads)
    learner = task.prepare(config)
    loop = Loop(learner, device.fabric(learner.config))
    state = loop.state()

    def create() -> Run:
        return Run.create(name, learner.config, learner.about, lambda run: task.fill(learner, run, state))

    run = loop.first_does(create) or Run(Run.folder_for(name, config), name, asdict(learner.config))
    return _fit(task, loop, run)


def resume(run: Run, changes: dict[str, Any]) -> int:
    """Go on with an interrupted run, or further than it was told.

    ``changes`` are what differs from its settings: where the data is, what computes, more epochs.
    """
    from lrn.training import device
    from lrn.training.checkpoint import TrainingState
    from lrn.training.loop import Loop

    data = changes.pop("data", None)
    changes = {name: value for name, value in changes.items() if run.config.get(name) != value}
    task = tasks.load(run.task)
    if not run.last.exists():
        raise ValueError(f"{run.folder} has lost its last.ckpt; it cannot be resumed")
    state = TrainingState.load(run.last, run.task)
    if state.progress["finished"] and run.metrics.exists() and "epochs" not in changes:
        print(f"{run.folder} is finished", file=sys.stderr)
        return 0
    run.config |= changes
    config = task.config_of(run)
    device.check(config)
    set_threads(config.threads)
    learner = task.resume(run, data)
    loop = Loop(learner, device.fabric(config))
    loop.restore(state)
    if "epochs" in changes:
        learner.progress.finished = False

    def claim() -> Run:
        run.lock()
        run.clean()
        if changes:
            run.change(**changes)
        return run

    loop.first_does(claim)
    return _fit(task, loop, run)


def check_packages(*names: str) -> None:
    """Raise a ModuleNotFoundError now, and not after some work, if a package is missing: one for training, or
    one for the built-in data of the tasks that are named."""
    of_tasks = (package for name in names for package in tasks.settings(name).packages)
    for name in ("numpy", "lightning", "rich", *of_tasks):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def check_units(*names: str) -> None:
    """Raise a ValueError now, and not after data is read, if a user's own unit cannot be had."""
    for name in filter(own.is_own, names):
        from lrn.units import unit_class

        unit_class(name)


def set_threads(number: int) -> None:
    """Use so many threads; 0 leaves it to torch."""
    if number:
        import torch

        torch.set_num_threads(number)


def _fit(task: Any, loop: Any, run: Run) -> int:
    from lrn.training import fit
    from lrn.training.show import lines_of

    say = _say if loop.is_first else lambda text: None
    say(f"{run.folder}: {task.headline(loop.learner)}")
    for text in task.warnings(loop.learner.data, loop.learner.kept):
        say(f"warning: {text}")
    try:
        fit.fit(loop, run)
        if loop.is_first:
            for line in lines_of(task.finish(loop, run)):
                say(line)
    except (fit.Stopped, KeyboardInterrupt) as stopped:
        say(f"{str(stopped) or 'stopped'}; to go on: lrn train --resume {run.folder}")
        return 130
    except ValueError:
        if loop.is_first:
            raise
        return 2  # all processes fail together, and the first says why
    finally:
        run.release()
    return 0


def compare(plan: Plan) -> int:
    """Several units, the same settings."""
    from lrn import compare

    config = plan.config
    out = Path(config.out or f"comparisons/{plan.task}-{config.preset}")
    check_folder(out)
    units = compare.joined(out, plan).units
    check_packages()
    check_units(*units)
    _say(f"{out}: training {', '.join(units)}, one after the other …")
    from lrn.training import device

    device.check(config)
    return compare.compare(plan, out)


def survey(plans: list[Plan], folder: str) -> int:
    """Several units on several tasks."""
    from lrn import compare, survey

    out = Path(folder)
    check_folder(out)
    survey.check(out)
    for plan in plans:
        compare.joined(out / plan.task, plan)
    names = [plan.task for plan in plans]
    check_packages(*names)
    check_units(*plans[0].units)
    _say(f"{out}: training {', '.join(plans[0].units)} on {', '.join(names)}, one after the other …")
    return survey.survey(plans, out)


def evaluate(run: Run, options: Any) -> int:
    """Print the figures of a run's model as JSON."""
    task = tasks.load(run.task)
    set_threads(options.threads)
    print(json.dumps(task.evaluate(run, options)))
    return 0


def predict(run: Run, options: Any) -> int:
    """Use a run's model."""
    import torch

    from lrn.training import device

    task = tasks.load(run.task)
    set_threads(options.threads)
    loaded = task.load(run, options.accelerator)
    with torch.no_grad(), device.autocast(loaded.device, loaded.config.precision):
        task.predict(loaded, options)
    return 0


def check_model(place: str) -> None:
    """An error unless this is a run folder with weights, or could be a file that was exported from one."""
    path = Path(place)
    if path.suffix.lower() == MODEL_FILE and not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return
    if path.is_file():
        raise ValueError(f"{path}: expected a run folder, or a file that ends in {MODEL_FILE}")
    run = Run.open(path)
    run.file("best.ckpt")
    from_dict(tasks.settings(run.task).train, run.config)


def serve(options: Serve) -> int:
    """A page to try a model in, until Ctrl-C."""
    from lrn import serve, share
    from lrn.training import device

    set_threads(options.threads)
    with serve.bind(options.port) as server:
        server.show(share.load(options.run, device.choose(options.accelerator)))
        print(f"{options.run}: {server.address} (Ctrl-C ends it)", flush=True)
        if options.open:
            import webbrowser

            webbrowser.open(server.address)
        server.run()
    return 0


def check_free(files: list[str], overwrite: bool) -> None:
    """An error if one of the files to write cannot be, or is there and may not go."""
    for name in files:
        check_place(Path(name))
    there = [name for name in files if Path(name).exists()]
    if there and not overwrite:
        are = "are" if len(there) > 1 else "is"
        raise ValueError(
            f"{' and '.join(there)} {are} there already; choose other names: --out, or --overwrite"
        )


def memory(run: Run, options: Any) -> int:
    """The figure of what a classifier remembers of a text, in every form that is asked for."""
    from lrn.report.memory import Picture, write
    from lrn.text.lines import each_line

    text = options.text if options.file is None else " ".join(each_line([options.file]))
    picture = Picture.of(tasks.load(run.task).remembered(run, text), options.top)
    for name in options.out:
        write(picture, Path(name))
        print(name)
    best = ", ".join(f"{picture.words[k]} ({k + 1})" for k in picture.ranking[: options.top])
    _say(f"{picture.title}; remembered best: {best}")
    return 0


def gradients(units: list[str], options: Gradients) -> int:
    """The figure of how far back gradients reach, at first weights, on random input; the norms as well."""
    from lrn import analysis
    from lrn.report import gradients

    set_threads(options.threads)
    norms = analysis.norms_by_unit(units, options.steps, options.hidden, options.keep, options.seed)
    keep = f", keep {options.keep:g}" if options.keep else ""
    title = f"first weights{keep}; H = {options.hidden}, seed {options.seed}"
    gradients.draw(norms, Path(options.out), title)
    places = [n for n in (1, 10, 30, 100, 300) if n < options.steps] + [options.steps]
    wide = max(6, *map(len, norms)) + 1
    for name, values in norms.items():
        print(f"{name:{wide}}" + "  ".join(f"n={n}: {values[n]:.1e}" for n in places))
    print(options.out)
    _say(gradients.MEANING)
    return 0


def results(options: Results) -> int:
    """What runs have come to, as tables."""
    from lrn import results
    from lrn.report import runs

    tables = results.tables(options)
    if options.format == "json":
        print(json.dumps(runs.to_json(tables), indent=1))
    else:
        print({"md": runs.markdown, "csv": runs.comma_separated}[options.format](tables), end="")
    return 0


def params(names: list[str]) -> int:
    """Exact counts beside what the paper prints."""
    from lrn.tasks import paper

    for name in names:
        if not tasks.settings(name).counted:
            print(f"{name}: the paper counts no parameters\n")
            continue
        print(f"{name}: parameters")
        print(f"  {'preset':12} {'unit':6} {'parameters':>12} {'paper':>8}")
        for preset, unit, exact in tasks.parameters(name):
            print(f"  {preset:12} {unit:6} {exact:12,} {paper.parameters(name, preset).get(unit, ''):>8}")
        print(f"{tasks.settings(name).note}\n")
    return 0


def paper(options: Paper) -> int:
    """How the paper's tables and figures are repeated."""
    from lrn.tasks import repeating

    entries = repeating.ENTRIES if options.table is None else [repeating.find(options.table)]
    if options.format == "json":
        print(json.dumps([entry.to_json() for entry in entries], indent=1))
    else:
        print("\n".join(entry.text() for entry in entries), end="")
    return 0


def average(folder: str, last: int, out: str | None) -> int:
    """A run whose weights are the mean of those after another's latest epochs."""
    run = Run.open(folder)
    place = Path(out) if out else run.folder.resolve().with_name(f"{run.folder.resolve().name}-average")
    from lrn.training import average

    average.check_free(place)
    numbers = average.average(run, last, place)
    print(f"{place}: the mean of the weights after epochs {', '.join(map(str, numbers))}")
    return 0


def export(options: Export) -> int:
    """Best weights or whole model as files for other programs, in the form that the name's ending says."""
    from lrn import export

    print(export.export(Run.open(options.run), Path(options.file), options))
    return 0


def import_(folder: str, file: str, overwrite: bool) -> int:
    """Weights for a run whose settings fit them."""
    run, path = Run.open(folder), Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if run.best.exists() and not overwrite:
        raise ValueError(f"{run.best} exists; --overwrite replaces it")
    run.check_unlocked()
    from lrn import share
    from lrn.export.weights import size
    from lrn.training import checkpoint

    weights = share.weights_of(share.read(path)[1])
    run.lock()
    try:
        checkpoint.check_weights(weights, str(path))
        checkpoint.load_weights(tasks.load(run.task).empty(run).model, weights)
        checkpoint.save(run.best, run.task, {"model": weights, "figures": {}, "epoch": 0})
    finally:
        run.release()
    print(f"{run.best}: {size(weights)}, from {path}")
    return 0


def _say(text: str) -> None:
    """Print a line as it is, so that what it quotes can be copied."""
    print(text, file=sys.stderr, flush=True)
