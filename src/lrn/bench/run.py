"""All tables in order, with progress; written to JSON as they come, and drawn at the end."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

import lrn
from lrn.bench import show, tables
from lrn.bench.peers import PEERS, available
from lrn.files import make_folder, write_json

MODES = ("training", "inference")


@dataclass(frozen=True)
class Settings:
    """What to measure. With ``shapes`` of one's own, only those are."""

    shapes: tuple[tables.Shape, ...] = ()
    seconds: float = 12.0  # for each shape and mode
    out: Path = Path("bench")


def run(settings: Settings | None = None) -> dict[str, Any]:
    """Measure, print, and write ``bench.json`` and ``bench.png`` into ``settings.out``."""
    settings = settings or Settings()
    console = Console()
    make_folder(settings.out)
    names, notes = available(list(PEERS))
    for note in notes:
        console.print(note, markup=False)
    shapes = settings.shapes or tables.SHAPES
    result: dict[str, Any] = {"machine": machine(), "notes": notes, "seed": tables.SEED}
    jobs: list[tuple[str, str, Any]] = [
        (mode, tables.label(shape), (tables.layer, names, shape, mode, settings.seconds))
        for mode in MODES
        for shape in shapes
    ]
    if not settings.shapes:
        half = settings.seconds / 2
        jobs += [
            ("streaming", "1,1,256", (tables.streaming, 256, half)),
            ("packed", "128 sentences, H=300", (tables.packed, settings.seconds)),
            ("threads", "32,128,300", (tables.threads, (32, 128, 300), half)),
            ("threads", "400,32,64", (tables.threads, (400, 32, 64), half)),
            ("long", "B=4, H=128", (tables.long_sequences, settings.seconds)),
            ("saved", "H=128", (tables.saved_numbers,)),
            ("import", "seconds", (tables.import_seconds,)),
        ]
    with Progress(console=console) as progress:
        task = progress.add_task("measuring", total=len(jobs))
        for table, row, (measure, *args) in jobs:
            progress.update(task, description=f"{table} {row}")
            result.setdefault(table, {})[row] = measure(*args)
            write_json(settings.out / "bench.json", result)
            progress.advance(task)
    show.print_tables(result, console)
    picture = show.draw(result, settings.out / "bench.png")
    drawn = f", {picture}" if picture else "; for a picture: pip install 'lrn[plot]'"
    console.print(f"written: {settings.out / 'bench.json'}{drawn}", markup=False)
    return result


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lrn": lrn.__version__,
        "engines": list(lrn.engines()),
    }
