"""Where a training runs: its device, its processes, its precision. Fabric knows them; nothing else asks.

Nothing here imports Lightning before :func:`fabric` is called: commands that only use a model need none.
"""

from __future__ import annotations

import ctypes
import logging
import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lrn.training.config import ACCELERATORS, TrainConfig

if TYPE_CHECKING:
    from lightning.fabric import Fabric

# The names that Fabric has for our precisions, and the types that matrix products are done in.
_FABRIC_PRECISION: dict[str, Any] = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
_AUTOCAST = {"bf16": torch.bfloat16, "16": torch.float16}

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's numbers, from malloc.h


def choose(accelerator: str) -> torch.device:
    """The device that a model is used on: ``auto`` is the machine's accelerator, else the processor."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    found = found if found and found.type in ACCELERATORS else None  # of others nothing is known
    if accelerator == "auto":
        return found or torch.device("cpu")
    if accelerator != "cpu" and (found is None or found.type != accelerator):
        there = f"cpu and {found.type}" if found else "cpu"
        raise ValueError(f"--accelerator {accelerator}: there is none here; this machine has {there}")
    return torch.device(accelerator)


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """The context in which a model of that precision runs, in training and whenever it is used afterwards."""
    kind = _AUTOCAST.get(precision)
    return nullcontext() if kind is None else torch.autocast(device.type, kind)


def check(config: TrainConfig) -> None:
    """Raise a ValueError if the settings ask for what this machine or the way it was started cannot give."""
    kind = choose(config.accelerator).type
    if config.precision == "16" and kind == "cpu":
        raise ValueError("--precision 16 needs a GPU; on the processor use bf16 or 32")
    if config.nodes > 1 and "WORLD_SIZE" not in os.environ:
        raise ValueError(f"--nodes {config.nodes}: start the command on each machine with torchrun")
    there = (os.cpu_count() or 1) if kind == "cpu" else torch.accelerator.device_count()
    if config.devices > there:
        what = "cores" if kind == "cpu" else f"of {kind}"
        raise ValueError(f"--devices {config.devices}: this machine has {there} {what}")


def fabric(config: TrainConfig) -> Fabric:
    """The settings' devices and processes, launched: from here on this is one of several processes."""
    check(config)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        from lightning.fabric import Fabric
        from lightning.fabric.strategies.ddp import DDPStrategy

        for name in ("lightning.pytorch", "lightning.fabric"):
            logging.getLogger(name).setLevel(logging.WARNING)
        processes = config.devices * config.nodes
        made = Fabric(
            accelerator=config.accelerator,
            devices=config.devices,
            num_nodes=config.nodes,
            # buffers never change, and may be as large as a table of word vectors
            strategy=DDPStrategy(broadcast_buffers=False) if processes > 1 else "auto",
            precision=_FABRIC_PRECISION[config.precision],
        )
        made.launch()
    keep_memory()
    if config.threads:  # now, since Fabric sets the threads of several processes itself
        torch.set_num_threads(config.threads)
    return made


def keep_memory() -> bool:
    """Let the C library keep what this process gives back, for the next step; False where it cannot be told.

    A step gives back all that it took. Left to itself glibc hands much of that to the system, and gets it
    back page by page: several percent of a step's time. Blocks above 32 MB go to the system all the same.
    """
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    return all([tell(_TRIM_THRESHOLD, 2**31 - 1), tell(_MMAP_THRESHOLD, 32 * 2**20)])


class Host:
    """What the processes of a training tell each other on the host, where no device has to be waited for."""

    def __init__(self, world: int) -> None:
        self.world = world
        several = world > 1
        self._group: Any = torch.distributed.new_group(backend="gloo") if several else None

    def mean(self, values: list[float]) -> list[float]:
        """The mean of each value over all processes."""
        return (self._sum(torch.tensor(values, dtype=torch.float64)) / self.world).tolist()

    def any(self, value: bool) -> bool:
        """Whether it is true in any process."""
        return bool(self._sum(torch.tensor([float(value)]))[0])

    def _sum(self, values: Tensor) -> Tensor:
        if self._group is not None and values.numel():
            torch.distributed.all_reduce(values, group=self._group)
        return values

    def gather(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        """Every process's value, in the order of their ranks."""
        if self._group is None:
            return [value]
        found: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(found, value, group=self._group)
        return found
