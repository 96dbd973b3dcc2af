"""A trained model as files for other programs: the form goes by the ending of the file's name.

A writer is a module with two functions: ``files(run, path)`` names all files that it will write, and
``write(run, path, options)`` writes them, whole or not at all, and returns the line to print. What it needs
to import it imports there.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrn.files import check_place

if TYPE_CHECKING:
    from lrn.options import Export
    from lrn.training.run import Run

WRITERS = {
    ".safetensors": "lrn.export.weights",
    ".onnx": "lrn.export.to_onnx",
    ".pt2": "lrn.export.to_package",
}
"""The module that writes files of an ending."""


def writer(path: Path) -> Any:
    """The writer for a file; an error that lists all endings if there is none."""
    if path.suffix not in WRITERS:
        *others, last = WRITERS
        raise ValueError(f"{path}: the name must end in {', '.join(others)} or {last}")
    return importlib.import_module(WRITERS[path.suffix])


def export(run: Run, path: Path, options: Export) -> str:
    """Write a run's best weights or model to a file; returns the line to print."""
    chosen = writer(path)
    there = []
    for file in chosen.files(run, path):
        check_place(file)
        if file.is_dir():
            raise ValueError(f"{file} is a folder; choose another name")
        if file.exists() or file.is_symlink():
            there.append(str(file))
    if there and not options.overwrite:
        verb = "exist" if len(there) > 1 else "exists"
        raise ValueError(f"{' and '.join(there)} {verb}; choose another name, or add --overwrite")
    run.file("best.ckpt")
    line: str = chosen.write(run, path, options)
    return line
