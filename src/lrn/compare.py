"""``lrn compare``: the same model, only the unit changed; quality, parameters and time of each.

Every unit and seed is a run of its own, in a process of its own, one after the other. What is finished is
kept, so a comparison that was stopped goes on where it was. Times are measured afterwards: training steps of
all units, taking turns in one process, on the same batches.
"""

from __future__ import annotations

import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from lrn import tasks
from lrn.bench.timing import alternate
from lrn.checks import choice
from lrn.files import read_json, write_json
from lrn.names import UNITS
from lrn.report import page, tables
from lrn.report.memory import Picture, inline
from lrn.training.config import TrainConfig
from lrn.training.run import Run, command, versions

SECONDS = 30.0  # for timing


def compare(task: str, config: TrainConfig, units: list[str], seeds: list[int], out: Path) -> int:
    """Train, measure, and write results.json, table.md, table.tex and report.html into ``out``."""
    console = Console()
    _claim(out, task, config, units, seeds)
    plan = [(unit, seed) for seed in seeds for unit in units]
    if not _train_all(task, config, plan, out, console):
        console.print(f"stopped; the same command goes on where it was ({out})", highlight=False)
        return 130
    results = _results(task, config, units, seeds, out)
    if "times" not in results:
        console.print("measuring the time of training steps, taking turns …")
        results["times"] = time_units(task, config, units)
        write_json(out / "times.json", results["times"])
    results |= _memory(task, units, seeds, out)
    write_json(out / "results.json", results)
    tables.write(results, out)
    page.write(results, out / "report.html")
    console.print(tables.terminal(results))
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)
    return 0


def _claim(out: Path, task: str, config: TrainConfig, units: list[str], seeds: list[int]) -> None:
    """Make the folder, or see that it is that of this very comparison."""
    wanted = {"task": task, "units": units, "seeds": seeds, "config": _settings(config)}
    path = out / "compare.json"
    if path.exists() and not config.overwrite:
        found = read_json(path)
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        if differing:
            raise ValueError(
                f"{out} holds a comparison with other {' and '.join(differing)}; choose another --out, "
                "or --overwrite"
            )
        return
    if out.exists() and any(out.iterdir()):
        if not path.exists():
            raise ValueError(f"{out} exists and is not a comparison; choose another --out")
        import shutil

        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, wanted)


def _settings(config: TrainConfig) -> dict[str, Any]:
    """What all runs share."""
    shared = asdict(config)
    for name in ("unit", "seed", "out", "overwrite"):
        shared.pop(name)
    return shared


def _folder(out: Path, unit: str, seed: int) -> Path:
    return out / "runs" / f"{unit}-{seed}"


# Training ---------------------------------------------------------------------------------------


def _train_all(
    task: str, config: TrainConfig, plan: list[tuple[str, int]], out: Path, console: Console
) -> bool:
    """Train what is not finished; False if the user stopped it."""
    said = dict.fromkeys(plan, "waiting")
    start = time.perf_counter()
    with Live(_table(said, 0, start), console=console, refresh_per_second=2, transient=True) as live:
        for done, run in enumerate(plan):
            folder = _folder(out, *run)
            if not (folder / "metrics.json").exists():
                child = _start(task, config, *run, out)
                try:
                    for line in _lines_of(child):
                        said[run] = line
                        live.update(_table(said, done, start))
                    code = child.wait()
                except KeyboardInterrupt:
                    child.wait()
                    return False
                if code == 130:
                    return False
                if code:
                    raise ValueError(f"training {run[0]} (seed {run[1]}) failed: {said[run]}")
            metrics = read_json(folder / "metrics.json")
            figure = metrics.get(tasks.jobs(task).METRIC)
            said[run] = f"done: {figure:.2f}" if figure is not None else "done"
            live.update(_table(said, done + 1, start))
    return True


def _start(task: str, config: TrainConfig, unit: str, seed: int, out: Path) -> subprocess.Popen[str]:
    folder = _folder(out, unit, seed)
    words = [sys.executable, "-m", "lrn", "train"]
    if (folder / "config.json").exists():
        words += ["--resume", str(folder)]
    else:
        settings = out / "settings.json"  # which YAML reads too
        write_json(settings, {**_settings(config), "unit": unit, "seed": seed, "out": str(folder)})
        words += [task, "--config", str(settings)]
    return subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LRN_QUIET_SECONDS": "1", "COLUMNS": "200"},
    )


def _lines_of(child: subprocess.Popen[str]) -> Iterator[str]:
    assert child.stderr is not None
    for line in child.stderr:
        if line.strip():
            yield line.strip()


def _table(said: dict[tuple[str, int], str], done: int, start: float) -> Table:
    passed = time.perf_counter() - start
    left = f", about {passed / done * (len(said) - done) / 60:.0f} min left" if done else ""
    table = Table("unit", "seed", "", title=f"{done} of {len(said)} trained{left}")
    for (unit, seed), line in said.items():
        table.add_row(unit, str(seed), line[:90])
    return table


# Measuring --------------------------------------------------------------------------------------


def time_units(task: str, config: TrainConfig, units: list[str], seconds: float = SECONDS) -> dict[str, Any]:
    """Seconds of a training step of each unit, on the same few batches, taking turns."""
    import torch

    if config.threads:
        torch.set_num_threads(config.threads)
    jobs = tasks.jobs(task)
    calls = {}
    for unit in units:
        trainee, _ = jobs.prepare(replace(config, unit=unit))
        step = trainee.alone()
        # not the first, which begins an epoch, unless there is no other
        work = list(islice(trainee.steps(), 1, 9)) or list(islice(trainee.steps(), 1))
        turns = iter(range(1 << 62))
        trainee.train()

        def call(step: Any = step, work: Any = work, turns: Any = turns) -> None:
            step(work[next(turns) % len(work)])

        trainee.progress.epoch_seconds.append(0.0)
        calls[unit] = call
    return {unit: taken.to_json() for unit, taken in alternate(calls, seconds).items()}


def _results(task: str, config: TrainConfig, units: list[str], seeds: list[int], out: Path) -> dict[str, Any]:
    """Everything that tables and report show, as plain data."""
    jobs = tasks.jobs(task)
    rows = {}
    for unit in units:
        metrics = [read_json(_folder(out, unit, seed) / "metrics.json") for seed in seeds]
        figures = [m[jobs.METRIC] for m in metrics if jobs.METRIC in m]
        if not figures:
            raise ValueError(f"the runs of {unit} have no {jobs.METRIC}: nothing to compare")
        rows[unit] = {
            "parameters": metrics[0]["parameters"],
            "figures": figures,
            "mean": statistics.fmean(figures),
            "deviation": _deviation(figures),
            "curves": [_curve(_folder(out, unit, seed) / "log.csv", jobs.CURVE) for seed in seeds],
        }
    results = {
        "task": task,
        "metric": jobs.METRIC,
        "lower_is_better": jobs.LOWER_IS_BETTER,
        "curve": jobs.CURVE,
        "units": rows,
        "seeds": seeds,
        "config": _settings(config),
        "data": read_json(_folder(out, units[0], seeds[0]) / "about.json").get("data", {}),
        "versions": versions(),
        "command": command(),
    }
    if (out / "times.json").exists():
        results["times"] = read_json(out / "times.json")
    return results


def _deviation(figures: list[float]) -> float | None:
    """None where there is none: of one figure, or if a training came to nothing finite."""
    if len(figures) < 2 or not all(map(math.isfinite, figures)):
        return None
    return statistics.stdev(figures)


def _memory(task: str, units: list[str], seeds: list[int], out: Path) -> dict[str, Any]:
    """For classifiers: the picture of what LRN remembers of a document, if it can be drawn."""
    example = getattr(tasks.jobs(task), "remembered_example", None)
    if example is None or "lrn" not in units or importlib.util.find_spec("matplotlib") is None:
        return {}
    found = example(Run.open(_folder(out, "lrn", seeds[0])))
    if found is None:
        return {}
    picture = Picture.of(found)
    return {"memory": {"caption": f"A test document, {picture.title}.", "svg": inline(picture)}}


def _curve(path: Path, name: str) -> list[tuple[int, float]]:
    """Epoch and figure, for every epoch."""
    import csv

    with path.open(newline="") as file:
        return [(int(row["epoch"]), float(row[name])) for row in csv.DictReader(file) if row.get(name)]


def units_of(text: str) -> list[str]:
    """A list of units as typed, each known and none twice."""
    names = [choice("unit", name.strip(), UNITS) for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"--units must be different units separated by commas, like lstm,lrn; got {text!r}")
    return names


def seeds_of(text: str) -> list[int]:
    """A list of seeds as typed."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ValueError(
            f"--seeds must be different whole numbers separated by commas, like 1,2,3; got {text!r}"
        )
    return seeds
