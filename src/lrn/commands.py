"""What `lrn train`, `evaluate`, `predict`, `params`, `export` and `import` do, whatever the task."""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from lrn import tasks
from lrn.training.config import TrainConfig, choice
from lrn.training.run import Run


def preset(settings: Any, words: list[str]) -> dict[str, Any]:
    """The settings that the words, or the file they name, ask to start from."""
    name = _value(words, "--preset")
    file = _value(words, "--config")
    if name is None and file is not None and Path(file).is_file():
        import yaml

        try:
            content = yaml.safe_load(Path(file).read_text())
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
        name = content.get("preset") if isinstance(content, dict) else None
    name = choice("preset", name or settings.Config.preset, tuple(settings.PRESETS))
    values: dict[str, Any] = settings.PRESETS[name] | {"preset": name}
    return values


def _value(words: list[str], flag: str) -> str | None:
    """Of the last such flag, as the parser has it."""
    value = None
    for word, following in pairwise([*words, ""]):
        if word == flag:
            value = following
        if word.startswith(flag + "="):
            value = word.partition("=")[2]
    return value


def config_first(words: list[str]) -> list[str]:
    """The words with ``--config`` in front, since the parser lets what comes later win: a flag beats a file.

    >>> config_first(["--lr", "1", "--config", "my.yaml"])
    ['--config', 'my.yaml', '--lr', '1']
    """
    first: list[str] = []
    rest: list[str] = []
    after = False
    for word in words:
        (first if after or word == "--config" or word.startswith("--config=") else rest).append(word)
        after = word == "--config"
    return first + rest


def _is_first_process() -> bool:
    """Of a training in several processes, which all run this command."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0"


def train(name: str, config: TrainConfig) -> int:
    """A new run."""
    jobs = tasks.jobs(name)
    if config.nodes > 1 and "WORLD_SIZE" not in os.environ:
        raise ValueError(f"--nodes {config.nodes}: start the command on each machine with torchrun")
    if config.threads:
        import torch

        torch.set_num_threads(config.threads)
    trainee, about = jobs.prepare(config)
    if _is_first_process():
        run = Run.create(name, config, about, lambda run: jobs.begin(trainee, run))
    else:
        run = _wait_for(Run.folder_for(name, config))
    return _fit(jobs, trainee, run)


def _wait_for(folder: Path) -> Run:
    """The run folder that the first process makes."""
    for _ in range(600):
        if (folder / "config.json").exists():
            return Run.open(folder)
        time.sleep(0.1)
    raise ValueError(f"the first process has not made {folder}")


def resume(folder: str, data: str | None) -> int:
    """An interrupted run."""
    run = Run.open(folder)
    jobs = tasks.jobs(run.task)
    if not run.last.exists() and run.log.exists():
        raise ValueError(f"{run.folder} has lost its last.ckpt; it cannot be resumed")
    trainee = jobs.resume(run, data)
    if trainee.progress.finished and (run.folder / "metrics.json").exists():
        print(f"{run.folder} is finished", file=sys.stderr)
        return 0
    if _is_first_process():
        run.clean()
    return _fit(jobs, trainee, run)


def _fit(jobs: Any, trainee: Any, run: Run) -> int:
    from lrn.training import fit

    console = _console()
    _say(console, f"{run.folder}: {jobs.headline(trainee)}")
    try:
        fit.fit(trainee, run)
        if trainee.global_rank == 0:
            jobs.finish(trainee, run, console)
    except (fit.Stopped, KeyboardInterrupt) as stopped:
        _say(console, f"{str(stopped) or 'stopped'}; to go on: lrn train --resume {run.folder}")
        return 130
    except ValueError:
        if _is_first_process():
            raise
        return 2  # all processes fail together, and the first says why
    return 0


def compare(name: str, kind: type[Any], values: dict[str, Any]) -> int:
    """Several units, the same settings."""
    from lrn import compare

    units = compare.units_of(values.pop("units"))
    seeds = compare.seeds_of(str(values.pop("seeds")))
    config = kind(**values, unit=units[0], seed=seeds[0])
    out = Path(config.out or f"comparisons/{name}-{config.preset}")
    return compare.compare(name, config, units, seeds, out)


def evaluate(run: Run, options: Any) -> int:
    figures = tasks.jobs(run.task).evaluate(run, options, _console())
    print(json.dumps(figures))
    return 0


def predict(run: Run, options: Any) -> int:
    tasks.jobs(run.task).predict(run, options, _console())
    return 0


def params(names: list[str]) -> int:
    """Exact counts beside what the paper prints."""
    from rich.console import Console
    from rich.table import Table

    from lrn.report.paper import PARAMETERS

    console = Console()
    for name in names:
        jobs = tasks.jobs(name)
        table = Table("preset", "unit", title=f"{name}: parameters")
        table.add_column("parameters", justify="right")
        table.add_column("paper", justify="right")
        for preset, unit, exact in jobs.parameters():
            table.add_row(preset, unit, f"{exact:,}", PARAMETERS[name].get(preset, {}).get(unit, ""))
        console.print(table)
        console.print(jobs.PARAMETERS_NOTE, highlight=False)
    return 0


def export(folder: str, file: str) -> int:
    """Plain tensors by name; the run's settings go into the file's header."""
    from safetensors.torch import save

    from lrn.files import write_whole
    from lrn.training import checkpoint

    run, path = Run.open(folder), Path(file)
    if path.exists():
        raise ValueError(f"{path} exists; choose another name")
    weights = checkpoint.load(run.best, run.task)["model"]
    header = {"task": run.task, "config": json.dumps(run.config)}
    content = save({name: value.contiguous() for name, value in weights.items()}, header)
    write_whole(path, lambda out: out.write(content))
    print(f"{path}: {len(weights)} tensors, {sum(v.numel() for v in weights.values()):,} numbers")
    return 0


def import_(folder: str, file: str, overwrite: bool) -> int:
    """Weights for a run whose settings fit them."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    from lrn.training import checkpoint
    from lrn.training.trainee import load_weights

    run, path = Run.open(folder), Path(file)
    if run.best.exists() and not overwrite:
        raise ValueError(f"{run.best} exists; --overwrite replaces it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        weights = load(path.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from None
    jobs = tasks.jobs(run.task)
    model = jobs.empty_model(run)
    load_weights(model, weights)
    checkpoint.save(run.best, run.task, {"model": weights, "figures": {}, "epoch": 0})
    return 0


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True, quiet=not _is_first_process())


def _say(console: Any, text: str) -> None:
    """A line as it is, so that what it quotes can be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
