"""What ``lrn bench`` measured: all that it prints and draws, and that bench.json carries.

Every table has its rows by name: a shape is ``T,B,H``, a peer is named as in ``peers.PEERS``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from lrn.files import write_json
from lrn.report import records
from lrn.report.results import Timing

Times: TypeAlias = dict[str, Timing]  # by peer


@dataclass(frozen=True)
class Machine:
    """Where the figures come from."""

    processor: str
    cores: int
    threads: int
    python: str
    torch: str
    lrn: str
    engines: tuple[str, ...]
    device: str = "cpu"  # what was measured on it


@dataclass(frozen=True)
class Packed:
    """A training step on a packed batch, and on the same batch padded."""

    packed: Timing
    padded: Timing
    real_tokens: int
    padded_tokens: int
    mean_length: float

    @property
    def share(self) -> float:
        """The part of the padded batch that is real."""
        return self.real_tokens / self.padded_tokens

    @property
    def ratio(self) -> float:
        """The packed batch's time as a part of the padded one's."""
        return self.packed.median / self.padded.median


@dataclass(frozen=True)
class Length:
    """A training step on sequences of one length: seconds, and bytes at the peak, for each token."""

    time_per_token: float
    bytes_per_token: float
    rounds: int


@dataclass(frozen=True)
class Walk:
    """The walk over time alone, and the projection of one layer's input beside it."""

    forward: Timing
    backward: Timing
    projection: Timing


@dataclass(frozen=True)
class ImportSeconds:
    """What ``import torch`` takes, and ``import lrn`` after it."""

    torch: float
    lrn: float


@dataclass
class Bench:
    """All tables; those that were not measured (yet) are empty.

    Args:
        machine: where this was measured.
        seed: for weights and inputs.
        notes: a line for each peer that was left out.
        training: a training step of one layer, by shape.
        inference: the same without gradients.
        streaming: a single step at batch size 1, by shape.
        packed: a packed batch against a padded one, by what it is made of.
        threads: a training step by shape and number of threads.
        long: a training step by setting and length of the sequence.
        saved: numbers kept for the backward pass for each token, by setting and peer.
        import_seconds: how long importing takes.
        walks: the walk alone by shape and cell, on a device that is not the processor.
    """

    machine: Machine
    seed: int
    notes: tuple[str, ...] = ()
    training: dict[str, Times] = field(default_factory=dict)
    inference: dict[str, Times] = field(default_factory=dict)
    streaming: dict[str, Times] = field(default_factory=dict)
    packed: dict[str, Packed] = field(default_factory=dict)
    threads: dict[str, dict[str, Times]] = field(default_factory=dict)
    long: dict[str, dict[str, Length]] = field(default_factory=dict)
    saved: dict[str, dict[str, float]] = field(default_factory=dict)
    import_seconds: ImportSeconds | None = None
    walks: dict[str, dict[str, Walk]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write bench.json."""
        write_json(path, records.to_json(self))

    @classmethod
    def read(cls, path: Path) -> Bench:
        """Read bench.json; one that is damaged or something else is an error of one line."""
        return records.read(cls, path)
