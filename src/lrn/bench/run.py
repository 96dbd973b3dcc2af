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
from lrn.bench import show, tables, walks
from lrn.bench.peers import PEERS, SRU_PACKAGE, available
from lrn.bench.results import Bench, Machine
from lrn.checks import install
from lrn.files import make_folder

Row = TypeVar("Row")
Job = tuple[str, Callable[[], None]]  # what it is called, and a call that measures it


@dataclass(frozen=True)
class Settings:
    """What to measure. With ``shapes`` of one's own, only those are."""

    shapes: tuple[tables.Shape, ...] = ()
    seconds: float = 12.0  # for each shape and mode
    out: Path = Path("bench")
    device: str = "cpu"  # its type


def run(settings: Settings | None = None) -> Bench:
    """Measure, print, and write ``bench.json`` and ``bench.png`` into ``settings.out``."""
    settings = settings or Settings()
    device = find(settings.device)
    console = Console()
    make_folder(settings.out)
    here = device.type == "cpu"
    names, notes = available([name for name in PEERS if here or name != SRU_PACKAGE])
    for note in notes:
        console.print(note, markup=False)
    result = Bench(machine(device), tables.SEED, tuple(notes))
    jobs = list(_layers(result, names, settings, device))
    if not here:
        jobs += _walks(result, settings, device)
    elif not settings.shapes:
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
    drawn = f", {picture}" if picture else f"; for a picture: {install('plot')}"
    console.print(f"written: {settings.out / 'bench.json'}{drawn}", markup=False)
    return result


def find(kind: str) -> torch.device:
    """The device of a type, which must be here."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if kind != "cpu" and (found is None or found.type != kind):
        there = "cpu" if found is None else f"cpu, {found.type}"
        raise ValueError(f"--device {kind}: there is none here; this machine has: {there}")
    return torch.device(kind)


def _layers(result: Bench, names: list[str], settings: Settings, device: torch.device) -> Iterator[Job]:
    """Every peer on every shape."""
    for mode, rows in (("training", result.training), ("inference", result.inference)):
        for shape in settings.shapes or tables.SHAPES:
            measure = partial(tables.layer, names, shape, mode, settings.seconds, device)
            yield _job(mode, rows, tables.label(shape), measure)


def _walks(result: Bench, settings: Settings, device: torch.device) -> Iterator[Job]:
    """The walk alone, of the cells that differ in what they read."""
    for shape in settings.shapes or tables.SHAPES:
        rows = result.walks.setdefault(tables.label(shape), {})
        for cell in ("lrn_tanh", "olrn", "glrn_tanh", "elrn_tanh", "sru"):
            measure = partial(walks.walk, cell, shape, device, settings.seconds / 5)
            yield _job(f"walk {tables.label(shape)}", rows, cell, measure)


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


def machine(device: torch.device | None = None) -> Machine:
    """Where the figures come from."""
    on = "cpu"
    if device is not None and device.type != "cpu":
        module = torch.get_device_module(device)
        on = module.get_device_name() if hasattr(module, "get_device_name") else device.type
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
        device=on,
    )
