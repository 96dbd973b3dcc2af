"""Settings of the language model, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from lrn.checks import FILE, RUN, at_least, choice, probability
from lrn.tasks import paper
from lrn.tasks.settings import TaskSettings
from lrn.training import config as training
from lrn.training.config import TrainConfig

STAGES = ("train", "finetune")


@dataclass
class LMConfig(TrainConfig):
    """Language modelling: an AWD-style recurrent network with a mixture of softmaxes.

    Args:
        stage: train, or finetune: averaged SGD from the best weights of another run.
        start: the run that finetune starts from.
        min_count: built-in data only: rarer words become <unk>.
        embedding: width of the word vectors.
        hidden: width of all recurrent layers but the last.
        last: width of the last recurrent layer.
        layers: recurrent layers.
        residual: add to the output of each recurrent layer what it has read, where both are of one width.
        experts: softmaxes that are mixed; 1 is the plain softmax.
        drop_words: dropout of whole words in the input.
        drop_input: dropout of the word vectors, one mask for all of time.
        drop_hidden: the same between recurrent layers.
        drop_output: the same on the last layer's output.
        drop_latent: the same on the experts' vectors.
        drop_weights: dropout of the entries of all recurrent layers' matrices, one mask a segment; 0 is off.
        batch_size: columns of text that are read in parallel.
        small_batch: columns at a time, with gradients added up to one step; 0 takes all at once.
        bptt: usual length of a segment.
        delta: a segment is at most this much longer.
        optimizer: adam, or sgd, which turns to averaged SGD when validation no longer improves.
        schedule: linear, a rate that falls to nothing at the end; constant; exponential, by epoch; or
            plateau, when the validation loss does not fall.
        nonmono: epochs without improvement before averaging begins.
        ar: weight of the activation regularisation.
        tar: weight of the temporal activation regularisation.
        fraction: share of the training text to use, from its beginning.
        valid_columns: columns for evaluation on the validation text.
        init: word vectors start between minus this and this.
    """

    stage: str = "train"
    start: str | None = field(default=None, metadata=RUN)
    min_count: int = 3
    embedding: int = 128
    hidden: int = 256
    last: int = 128
    layers: int = 3
    residual: bool = False
    experts: int = 1
    drop_words: float = 0.0
    drop_input: float = 0.1
    drop_hidden: float = 0.1
    drop_output: float = 0.1
    drop_latent: float = 0.0
    drop_weights: float = 0.0
    batch_size: int = 20
    small_batch: int = 0
    bptt: int = 70
    delta: int = 40
    schedule: str = "linear"
    nonmono: int = 5
    ar: float = 0.0
    tar: float = 0.0
    fraction: float = 1.0
    valid_columns: int = 10
    init: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stage = choice("stage", self.stage, STAGES)
        sizes = ("embedding", "hidden", "last", "layers", "experts", "batch_size", "bptt", "min_count")
        for name in (*sizes, "valid_columns", "nonmono"):
            at_least(self, name, 1)
        for name in ("small_batch", "delta", "ar", "tar"):
            at_least(self, name, 0)
        probability(
            self, "drop_words", "drop_input", "drop_hidden", "drop_output", "drop_latent", "drop_weights"
        )
        if self.data is not None and self.min_count != LMConfig.min_count:
            raise ValueError("min_count is for the built-in data only: with --data every word is kept")
        if self.residual and not any(n == m for n, m in pairwise(self.widths)):
            raise ValueError(
                "residual needs a recurrent layer whose output is as wide as its input; embedding, hidden "
                f"and last make them {' → '.join(map(str, self.widths))} wide"
            )
        if not self.init > 0:
            raise ValueError(f"init must be positive, got {self.init}")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction must be above 0 and at most 1, got {self.fraction}")
        if self.small_batch and self.batch_size % self.small_batch:
            raise ValueError(
                f"small_batch must divide batch_size, got {self.small_batch} and {self.batch_size}"
            )
        processes = self.devices * self.nodes
        if self.batch_size % processes:
            raise ValueError(
                f"batch_size {self.batch_size} cannot be shared equally by {processes} processes"
            )
        if (self.stage == "finetune") != (self.start is not None):
            raise ValueError(
                "--stage finetune needs --start RUN, a finished run to go on from; other stages take none"
            )

    @property
    def widths(self) -> list[int]:
        """The width of the word vectors, and of what each recurrent layer puts out."""
        return [self.embedding, *[self.hidden] * (self.layers - 1), self.last]


_PAPER: dict[str, Any] = {
    "epochs": 1000,
    "clip": 0.25,
    "layers": 3,
    "experts": 15,
    "drop_words": 0.1,
    "drop_output": 0.4,
    "drop_latent": 0.29,
    "drop_weights": 0.5,
    "optimizer": "sgd",
    "schedule": "constant",
    "weight_decay": 1.2e-6,
    "ar": 2.0,
    "tar": 1.0,
}

# With few steps, Adam and larger first word vectors: from the paper's small ones plain softmax models go
# through a long spell of saturated states.
_SMALL: dict[str, Any] = {"lr": 4e-3, "clip": 0.25, "batch_size": 20, "bptt": 35, "delta": 10, "init": 0.5}

PRESETS: dict[str, dict[str, Any]] = {
    "quick": _SMALL | {"epochs": 3, "lr": 1e-2, "layers": 2, "embedding": 64, "hidden": 128, "last": 64},
    "small": _SMALL | {"epochs": 5, "embedding": 100, "hidden": 200, "last": 100},
    "paper-ptb": _PAPER
    | {
        "lr": 10.0,
        "seed": 28,
        "embedding": 280,
        "hidden": 960,
        "last": 620,
        "drop_input": 0.4,
        "drop_hidden": 0.225,
        "batch_size": 12,
        "delta": 40,
    },
    "paper-wt2": _PAPER
    | {
        "lr": 15.0,
        "seed": 1882,
        "embedding": 300,
        "hidden": 1150,
        "last": 650,
        "drop_input": 0.55,
        "drop_hidden": 0.2,
        "batch_size": 15,
        "small_batch": 5,
        "delta": 20,
    },
}


@dataclass
class EvaluateConfig(training.EvaluateConfig):
    """Perplexity of a trained language model.

    Args:
        columns: columns of text side by side; 1 reads the text in one go.
        dynamic: go on learning from the text while it is scored (dynamic evaluation).
        rate: dynamic evaluation's learning rate.
        decay: dynamic evaluation's pull back to the trained weights.
        epsilon: dynamic evaluation's addition to the gradients' scale.
        words: score this many words from the beginning only; 0 scores all.
    """

    columns: int = 1
    dynamic: bool = False
    rate: float = 0.002
    decay: float = 0.075
    epsilon: float = 0.001
    words: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "columns", 1)
        for name in ("rate", "decay", "epsilon", "words"):
            at_least(self, name, 0)
        if self.dynamic and not (self.rate > 0 and self.decay > 0 and self.epsilon > 0):
            raise ValueError("dynamic evaluation needs rate, decay and epsilon above 0")


@dataclass
class PredictConfig(training.PredictConfig):
    """Go on with a text, or score text files.

    Args:
        prompt: the beginning of the text to go on with.
        files: text files to score instead, a perplexity for each.
        words: words to write.
        temperature: below 1 plays safe, above 1 takes risks; 0 always takes the likeliest word.
        top_k: draw from this many likeliest words only; 0 draws from all.
        seed: for the drawing.
        unknown: allow the model to write <unk>.
    """

    stray: ClassVar[str] = "the text to go on with follows --prompt, files to score follow --files"

    prompt: str | None = None
    files: list[str] = field(default_factory=list, metadata=FILE)
    words: int = 50
    temperature: float = 1.0
    top_k: int = 0
    seed: int = 1
    unknown: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("words", "temperature", "top_k", "seed"):
            at_least(self, name, 0)


def _check_use(options: PredictConfig) -> None:
    if (options.prompt is None) == (not options.files):
        raise ValueError("give either --prompt, a text to go on with, or --files, texts to score")


def _printed(config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    return paper.perplexity(config.get("preset", ""), data.get("tokens", {}).get("train", 0))


SETTINGS = TaskSettings(
    train=LMConfig,
    presets=PRESETS,
    evaluate=EvaluateConfig,
    predict=PredictConfig,
    metric="test_perplexity",
    lower_is_better=True,
    printed=_printed,
    counted={"paper-ptb": {"words": 10_000}, "paper-wt2": {"words": 33_278}},
    note="LSTM: the paper's 22M is 21.49M here. With nn.LSTM's two bias vectors a gate it would be "
    "21,500,620, which rounds to 22M; one bias a gate, as in the paper's own code, gives 21,490,460.",
    files=(
        ("train.txt", "valid.txt", "test.txt"),  # Mikolov's Penn Treebank
        ("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),  # WikiText as distributed
    ),
    check_use=_check_use,
)
