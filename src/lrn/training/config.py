"""The settings that every task has. Nothing here needs torch, so that `lrn --help` stays quick."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from lrn import checks, own
from lrn.checks import FOLDER, at_least, choice

ACCELERATORS = ("auto", "cpu", "cuda", "mps")
OPTIMIZERS = ("adam", "sgd", "adadelta")
SCHEDULES = ("constant", "linear", "exponential", "plateau", "chen")
PRECISIONS = ("32", "bf16", "16")
PARTS = ("train", "valid", "test")

_LARGEST = {
    2**63 - 1: "seed",
    10**9: "epochs keep_epochs max_steps save_steps patience nonmono min_count threshold words top_k"
    " warmup decay_from decay_to",
    10**8: "sentences documents pairs paragraphs longest longest_test longest_question held_out"
    " held_out_valid",
    10**6: "batch_size batch_tokens small_batch accumulate columns valid_columns bptt delta merges",
    65_536: "embedding hidden heads last dense word_width char_width char_hidden nodes",
    4_096: "threads devices",
    1_000: "layers encoder_layers decoder_layers experts top longest_answer best beam nbest replicas",
}
MOST = {name: most for most, names in _LARGEST.items() for name in names.split()}
"""The largest value of every whole number that can be set: beyond it is a slip of the hand, not a wish."""


def check_numbers(config: Any) -> None:
    """An error for a setting that is no number, infinite, or larger than can be meant."""
    for setting in fields(config):
        if setting.name in MOST:
            checks.at_most(config, setting.name, MOST[setting.name])
        elif type(setting.default) is float:
            checks.finite(config, setting.name)


@dataclass
class TrainConfig:
    """Settings of every training.

    Args:
        unit: the recurrent unit: lrn, olrn, glrn, elrn, atr, sru, lstm or gru; or a class of your own,
            my_module:MyUnit.
        preset: a named set of settings that the others start from.
        data: folder with the data; without it the built-in data is used.
        out: the run folder to make; by default runs/TASK-UNIT-PRESET-SEED.
        overwrite: throw away what is in that folder.
        seed: for weights, dropout and the order of the data.
        epochs: passes over the training data.
        lr: learning rate.
        clip: largest norm of the gradient; 0 does not clip.
        ema: decay of the average of the weights that is evaluated and saved as best; 0 keeps none.
        optimizer: adam, sgd or adadelta.
        schedule: constant learning rate; linear, falling to nothing at the end; exponential, by epoch;
            plateau, falling when the validation loss does not; or chen (Chen et al., 2018): rising to its
            multiple, then falling step by step.
        decay: exponential schedule: the learning rate is multiplied by it after every epoch; plateau:
            whenever patience is at its end.
        patience: plateau schedule only: epochs without a lower validation loss, after which the rate falls.
        replicas: chen schedule only: by how much the rate rises, and by how much faster time goes.
        warmup: chen schedule only: steps to rise in, times the replicas.
        decay_from: chen schedule only: where the rate begins to fall, in steps times the replicas.
        decay_to: chen schedule only: where it has fallen to half of lr, counted in the same way.
        weight_decay: of the optimizer.
        l2: weight of half the squared norm of all weights in the loss.
        accumulate: batches whose gradients are added up to one step.
        precision: 32, or bf16 or 16 for matrix products in bfloat16 or float16.
        accelerator: what computes: cpu, cuda or mps; auto takes a GPU where there is one.
        devices: processes on this machine, a device each, which share every batch.
        nodes: machines (start each with torchrun).
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
        save_steps: training steps between two saved states to resume from.
        keep_epochs: epochs whose weights are kept, the latest ones, for `lrn average`.
        max_steps: stop after this many steps in all; 0 goes on to the last epoch.
        test: score the best weights on the test data when training is done.
    """

    unit: str = "lrn"
    preset: str = "quick"
    data: str | None = field(default=None, metadata=FOLDER)
    out: str | None = field(default=None, metadata=FOLDER)
    overwrite: bool = False
    seed: int = 1
    epochs: int = 1
    lr: float = 1e-3
    clip: float = 0.0
    ema: float = 0.0
    optimizer: str = "adam"
    schedule: str = "constant"
    decay: float = 0.5
    patience: int = 3
    replicas: int = 4
    warmup: int = 400
    decay_from: int = 600_000
    decay_to: int = 1_200_000
    weight_decay: float = 0.0
    l2: float = 0.0
    accumulate: int = 1
    precision: str = "32"
    accelerator: str = "auto"
    devices: int = 1
    nodes: int = 1
    threads: int = 0
    save_steps: int = 200
    keep_epochs: int = 0
    max_steps: int = 0
    test: bool = True

    def __post_init__(self) -> None:
        if "," in str(self.unit):
            raise ValueError(
                f"unit {self.unit!r}: a training has one; "
                f"to compare several: lrn compare TASK --units {self.unit}"
            )
        self.unit = own.check("unit", self.unit)
        self.precision = choice("precision", self.precision, PRECISIONS)
        self.accelerator = choice("accelerator", self.accelerator, ACCELERATORS)
        self.optimizer = choice("optimizer", self.optimizer, OPTIMIZERS)
        self.schedule = choice("schedule", self.schedule, SCHEDULES)
        check_numbers(self)
        for name in (
            "epochs",
            "accumulate",
            "devices",
            "nodes",
            "save_steps",
            "patience",
            "replicas",
            "warmup",
        ):
            at_least(self, name, 1)
        for name in ("seed", "clip", "threads", "max_steps", "weight_decay", "l2", "keep_epochs"):
            at_least(self, name, 0)
        if not self.lr > 0:
            raise ValueError(f"lr must be positive, got {self.lr}")
        if not 0 <= self.ema < 1:
            raise ValueError(f"ema must be from 0 to below 1, got {self.ema}")
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay}")
        if not 0 <= self.decay_from < self.decay_to:
            raise ValueError(
                f"decay_from must be at least 0 and below decay_to, {self.decay_to}, got {self.decay_from}"
            )
        if (self.precision, self.accelerator) == ("16", "cpu"):
            raise ValueError("precision 16 is for GPUs; with accelerator cpu it must be 32 or bf16")


@dataclass
class PredictConfig:
    """Settings of every use of a trained model.

    Args:
        accelerator: what computes: cpu, cuda or mps; auto takes a GPU where there is one.
        threads: threads of this process, at most the cores there are; 0 leaves it to torch.
    """

    stray: ClassVar[str] = 'a text comes from standard input, echo "…" | lrn predict RUN, or from --files'

    accelerator: str = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        self.accelerator = choice("accelerator", self.accelerator, ACCELERATORS)
        check_numbers(self)
        checks.threads(self.threads)


@dataclass
class EvaluateConfig(PredictConfig):
    """Settings of every evaluation.

    Args:
        data: folder with the data; by default what the run was trained on.
        part: train, valid or test.
        last: the weights after the last epoch instead of the best on the validation data.
    """

    stray: ClassVar[str] = ""
    parts: ClassVar[tuple[str, ...]] = PARTS

    data: str | None = field(default=None, metadata=FOLDER)
    part: str = "test"
    last: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.part = choice("part", self.part, self.parts)


def from_dict(kind: type[Any], values: dict[str, Any], source: str = "config.json") -> Any:
    """A config from what a run folder, or another source, holds; settings it does not know are an error."""
    known = {setting.name: setting for setting in fields(kind)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{source} has settings that this version does not know: {', '.join(unknown)}")
    for name, value in values.items():
        if known[name].default is not MISSING and not fits(value, known[name].default):
            raise ValueError(f"{source} is damaged: {name} cannot be {value!r}")
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def fits(value: Any, default: Any) -> bool:
    """Whether a value is of the kind that the setting's default is."""
    if default is None:
        return value is None or isinstance(value, str)
    if type(default) is float:
        return type(value) in (int, float)
    return type(value) is type(default)
