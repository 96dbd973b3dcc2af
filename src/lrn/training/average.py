"""The mean of the weights after a run's latest epochs, as a run of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from torch import Tensor

from lrn.files import hindrance
from lrn.training import checkpoint
from lrn.training.checkpoint import BestState
from lrn.training.lock import NAME as LOCK
from lrn.training.run import Run


def average(run: Run, last: int, out: Path) -> list[int]:
    """Make a run folder ``out`` whose best weights are the mean of those of the ``last`` epochs of a run.

    All else that its model needs comes from the run; it cannot be trained further. Returns the epochs.
    """
    kept = run.epochs()
    if not kept:
        raise ValueError(f"{run.folder} has kept the weights of no epoch; train with --keep_epochs {last}")
    if len(kept) < last:
        raise ValueError(
            f"{run.folder} has the weights of {len(kept)} epoch{'s' if len(kept) > 1 else ''}; "
            f"for the mean of {last} train with --keep_epochs {last} or more, or ask for fewer: --last"
        )
    numbers = sorted(kept)[-last:]
    weights = mean([BestState.load(kept[number], run.task).model for number in numbers])
    temporary = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        shutil.copytree(run.folder, temporary, ignore=_of_the_training)
        checkpoint.save(
            temporary / "best.ckpt", run.task, {"model": weights, "figures": {}, "epoch": numbers[-1]}
        )
        os.rename(temporary, out)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"cannot make the run folder {out} ({reason}); choose another: --out") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return numbers


def check_free(out: Path) -> None:
    """Raise a ValueError if a run folder cannot be made there."""
    reason = hindrance(out.absolute().parent)
    if reason:
        raise ValueError(f"cannot make the run folder {out} ({reason}); choose another: --out")
    if os.path.lexists(out):
        raise ValueError(f"{out} exists; choose another folder: --out")


def mean(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several models' weights; what is no fraction, a count for example, is the last one's.

    >>> import torch
    >>> mean([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 2.0])}])
    {'w': tensor([2., 2.])}
    """
    for state in states[1:]:
        if {name: value.shape for name, value in state.items()} != {
            name: value.shape for name, value in states[0].items()
        }:
            raise ValueError("the weights of these epochs are not those of one model")
    found = {}
    for name, value in states[-1].items():
        if value.is_floating_point():
            total = sum(state[name].double() for state in states)
            assert isinstance(total, Tensor)
            value = (total / len(states)).to(value.dtype)
        found[name] = value
    return found


def _of_the_training(folder: str, names: list[str]) -> list[str]:
    """What of a run folder belongs to its training alone, and not to its model."""
    own = {LOCK, "log.csv", "metrics.json"}
    return [name for name in names if name in own or name.endswith((".ckpt", ".part"))]
