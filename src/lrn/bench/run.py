"""All tables in order, with progress; written to JSON as they come, and drawn at the end."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from rich.console import Console
from rich.progress import Progress

import lrn
from lrn.bench import show, tables
from lrn.bench.peers import PEERS, available
from lrn.bench.results import Bench, Machine
from lrn.files import make_folder

Row = TypeVar("Row")
Job = tuple[str, Callable[[], None]]  # what it is called, and a call that measures it


@dataclass(frozen=True)
class Settings:
    """What to measure. With ``shapes`` of one's own, only those are."""

    shapes: tuple[tables.Shape, ...] = ()
    seconds: float = 12.0  # for each shape and mode
    out: Path = Path("bench")


def run(settings: Settings | None = None) -> Bench:
    """Measure, print, and write ``bench.json`` and ``bench.png`` into ``settings.out``."""
    settings = settings or Settings()
    console = Console()
    make_folder(settings.out)
    names, notes = available(list(PEERS))
    for note in notes:
        console.print(note, markup=False)
    result = Bench(machine(), tables.SEED, tuple(notes))
    jobs = list(_layers(result, names, settings))
    if not settings.shapes:
        jobs += _further(result, settings.seconds)
    with Progress(console=console) as progress:
        task = progress.add_task("measuring", total=len(jobs))
        for name, measure in jobs:
            progress.update(task, description=name)
            measure()
            result.write(settings.out / "bench.json")
            progress.advance(task)
    show.print_tables(result, console)
    picture = show.draw(result, settings.out / "bench.png")
    drawn = f", {picture}" if picture else "; for a picture: pip install 'lrn[plot]'"
    console.print(f"written: {settings.out / 'bench.json'}{drawn}", markup=False)
    return result


def _layers(result: Bench, names: list[str], settings: Settings) -> Iterator[Job]:
    """Every peer on every shape."""
    for mode, rows in (("training", result.training), ("inference", result.inference)):
        for shape in settings.shapes or tables.SHAPES:
            measure = partial(tables.layer, names, shape, mode, settings.seconds)
            yield _job(mode, rows, tables.label(shape), measure)


def _further(result: Bench, seconds: float) -> Iterator[Job]:
    """What else there is to know of LRN."""
    yield _job("streaming", result.streaming, "1,1,256", lambda: tables.streaming(256, seconds / 2))
    yield _job("packed", result.packed, "128 sentences, H=300", lambda: tables.packed(seconds))
    for shape in ((32, 128, 300), (400, 32, 64)):
        measure = partial(tables.threads, shape, seconds / 2)
        yield _job("threads", result.threads, tables.label(shape), measure)
    yield _job("long", result.long, "B=4, H=128", lambda: tables.long_sequences(seconds))
    yield _job("saved", result.saved, "H=128", tables.saved_numbers)
    yield "import", lambda: setattr(result, "import_seconds", tables.import_seconds())


def _job(table: str, rows: dict[str, Row], name: str, measure: Callable[[], Row]) -> Job:
    def fill() -> None:
        rows[name] = measure()

    return f"{table} {name}", fill


def machine() -> Machine:
    """Where the figures come from."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return Machine(
        processor=model,
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        python=platform.python_version(),
        torch=torch.__version__,
        lrn=lrn.__version__,
        engines=tuple(lrn.engines()),
    )
