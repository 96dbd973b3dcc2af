"""Weights as safetensors: plain tensors by name, with the run's settings in the file's header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrn.files import write_whole

if TYPE_CHECKING:
    from lrn.options import Export
    from lrn.training.run import Run


def files(run: Run, path: Path) -> list[Path]:
    """All that is written."""
    return [path]


def write(run: Run, path: Path, options: Export) -> str:
    """Write the best weights of a run."""
    from safetensors.torch import save

    from lrn.training.checkpoint import BestState

    weights = BestState.load(run.file("best.ckpt"), run.task).model
    header = {"task": run.task, "config": json.dumps(run.config)}
    content = save({name: value.contiguous() for name, value in weights.items()}, header)
    try:
        write_whole(path, lambda out: out.write(content))
    except OSError as error:
        raise OSError(f"{error.strerror}; choose another place") from None
    return f"{path}: {size(weights)}"


def size(weights: dict[str, Any]) -> str:
    """How much there is of weights."""
    return f"{len(weights)} tensors, {sum(value.numel() for value in weights.values()):,} numbers"
