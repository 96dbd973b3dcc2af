"""A model in one safetensors file: its best weights with all that they need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrn.options import Export
    from lrn.training.run import Run


def files(run: Run, path: Path) -> list[Path]:
    """All that is written."""
    return [path]


def write(run: Run, path: Path, options: Export) -> str:
    """Write the best weights of a run, for :func:`lrn.load`."""
    from lrn import share

    return f"{path}: {size(share.save(run, path))}"


def size(weights: dict[str, Any]) -> str:
    """How much there is of weights."""
    return f"{len(weights)} tensors, {sum(value.numel() for value in weights.values()):,} numbers"
