"""``lrn results``: what runs have come to, by task, from the files of their folders; no model is loaded."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from lrn import checks, names, tasks
from lrn.options import Results
from lrn.report.runs import RunTable, Trained, read_curve, read_metrics, table
from lrn.tasks import paper
from lrn.training.config import TrainConfig, from_dict
from lrn.training.run import Run

# Settings that have a column of their own, or that change nothing in what comes of a training.
_APART = ("unit", "seed", "epochs", "data", "out", "overwrite")
_OUTSIDE = ("accelerator", "threads", "save_steps", "keep_epochs", "test")


def tables(options: Results) -> list[RunTable]:
    """A table for every task, in the order in which the runs are named."""
    runs: dict[str, list[Run]] = {}
    places: dict[Path, str] = {}
    for folder in options.run:
        run = Run.open(folder)
        if run.folder.resolve() in places:
            raise ValueError(f"{folder} is named twice, first as {places[run.folder.resolve()]}")
        places[run.folder.resolve()] = folder
        runs.setdefault(checks.choice("task", run.task, names.TASKS), []).append(run)
    if options.paper is not None:
        presets = [name for task in runs for name in tasks.settings(task).presets]
        checks.choice("preset", options.paper, tuple(dict.fromkeys(presets)))
    return [_table(task, found, options) for task, found in runs.items()]


def _table(task: str, runs: list[Run], options: Results) -> RunTable:
    said = tasks.settings(task)
    return table(
        task,
        [
            _trained(run, options.paper, data)
            for run, data in zip(runs, _data_names([*map(_data, runs)]), strict=True)
        ],
        metric=said.metric,
        lower_is_better=said.lower_is_better,
        validation=options.validation,
        tests=options.tests(),
        single=options.single,
    )


def _trained(run: Run, preset: str | None, data: str) -> Trained:
    """What a run has come to, and what the paper has beside it."""
    said = tasks.settings(run.task)
    config: TrainConfig = from_dict(said.train, run.config, str(run.folder / "config.json"))
    usual: dict[str, Any] = {setting.name: setting.default for setting in fields(said.train)}
    usual |= said.presets.get(config.preset, {})
    if not run.metrics.exists() and not run.last.exists():  # made by lrn average, for example
        raise ValueError(
            f"{run.folder} was not trained and has no figures: lrn evaluate {run.folder} finds them"
        )
    settings = _shown(config)
    curve = read_curve(run.log, said.curve)
    parameters, epochs, tests = read_metrics(run.metrics) if run.metrics.exists() else (None, None, {})
    if epochs is not None:  # a run that is told to go further has more in its log than in its figures
        curve = tuple((epoch, value) for epoch, value in curve if epoch <= epochs)
    return Trained(
        folder=str(run.folder),
        unit=config.unit,
        seed=config.seed,
        settings={"data": data, **settings},
        usual={name: usual[name] for name in settings if name != "preset"},
        planned=config.epochs,
        epochs=epochs,
        parameters=parameters,
        curve=curve,
        tests=tests,
        paper=_paper(run, config, preset or config.preset),
    )


def _shown(config: TrainConfig) -> dict[str, object]:
    """The settings that may tell runs apart; of a file its name, since its place says nothing to others."""
    places = {setting.name for setting in fields(config) if setting.metadata.get("names")}
    found = {name: value for name, value in asdict(config).items() if name not in (*_APART, *_OUTSIDE)}
    return {name: _names(value) if name in places else value for name, value in found.items()}


def _names(value: str | list[str] | None) -> object:
    if isinstance(value, list):
        return ", ".join(Path(part).name for part in value)
    return value if value is None else Path(value).name


def _data(run: Run) -> tuple[str, str]:
    """The name of a run's data, and the fingerprint that tells it from other data of this name."""
    source = run.config.get("data")
    about = run.about().get("data")
    if not isinstance(about, dict) or not isinstance(about.get("fingerprint"), str):
        raise ValueError(f"{run.folder / 'about.json'} is damaged: it does not say what the data was")
    return Path(source).name if isinstance(source, str) else "built-in", about["fingerprint"]


def _data_names(found: list[tuple[str, str]]) -> list[str]:
    """A name for the data of each run, the same for the same data wherever it was."""
    first: dict[str, str] = {}
    for name, print_ in found:
        taken = name in first.values() and print_ not in first
        first.setdefault(print_, f"{name} ({print_[:8]})" if taken else name)
    return [first[print_] for _, print_ in found]


def _paper(run: Run, config: TrainConfig, preset: str) -> dict[str, str]:
    """The paper's figure for the run's unit, by its heading: on this very data or else on its own."""
    said = tasks.settings(run.task)
    heading = "paper" if preset == config.preset else f"paper, preset {preset}"
    try:
        printed = said.printed({**asdict(config), "preset": preset}, run.about()["data"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{run.folder / 'about.json'} is damaged: its data has no {error}") from None
    if printed:
        return {heading: printed[config.unit]} if config.unit in printed else {}
    return {
        f"{heading}, on its own data: {data}": figures[config.unit]
        for data, figures in paper.on_its_data(run.task, preset).items()
        if config.unit in figures
    }
