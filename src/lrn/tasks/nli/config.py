"""Settings of the inference model, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from lrn.checks import FILE, FOLDER, at_least, choice, probability
from lrn.tasks import paper
from lrn.tasks.settings import TaskSettings
from lrn.training import config as training
from lrn.training.config import PARTS, TrainConfig

LABELS = ("entailment", "neutral", "contradiction")
NORMS = ("none", "rms", "layer")
MULTINLI = {"matched": "valid", "mismatched": "test"}
"""What MultiNLI calls its two sets for evaluation, and which part each one serves as."""

_SNLI = tuple(
    f"snli_1.0_{part}*.jsonl|snli_1.0_{part}*.txt|{part}.tsv|{part}.txt|{part}.jsonl"
    for part in ("train", "dev", "test")
)
_MULTINLI = tuple(
    f"multinli_1.0_{part}.jsonl|multinli_1.0_{part}.txt"
    for part in ("train", "dev_matched", "dev_mismatched")
)
FILES = (_SNLI, _MULTINLI)
DESCRIBED = (
    "snli_1.0_train, snli_1.0_dev and snli_1.0_test (.jsonl or .txt), "
    "multinli_1.0_train, …_dev_matched and …_dev_mismatched (the same), or train.tsv, dev.tsv and test.tsv"
)


@dataclass
class NLIConfig(TrainConfig):
    """Natural language inference: a premise is read, then a hypothesis with attention to the premise.

    Args:
        vectors: a file of word vectors in GloVe's form, packed or not, which are kept as they are; without it
            vectors are learnt.
        min_count: without a file of vectors: words that training has less often are unknown.
        word_width: width of the word vectors; a file of vectors decides it instead.
        char_width: width of the character vectors.
        hidden: width of every recurrent layer, each direction.
        heads: slices of the premise that are attended to by themselves.
        norm: none, rms or layer: the paper's +LN is rms.
        bert: folder with a BERT in Hugging Face's form, whose features of the words are used beside their
            vectors.
        bert_frozen: keep BERT as it is, with its features computed once.
        bert_lr: learning rate of BERT's own weights; 0 takes that of all others.
        dropout: between consecutive layers and on BERT's features; characters get half of it.
        smoothing: of the labels.
        l2: weight of half the squared norm of all weights in the loss.
        batch_size: pairs a batch.
        longest: sentences of training are cut to this many words; 0 does not cut.
        pairs: built-in data only: pairs to make for training.
    """

    vectors: str | None = field(default=None, metadata=FILE)
    min_count: int = 2
    word_width: int = 300
    char_width: int = 64
    hidden: int = 300
    heads: int = 4
    norm: str = "none"
    bert: str | None = field(default=None, metadata=FOLDER)
    bert_frozen: bool = False
    bert_lr: float = 0.0
    dropout: float = 0.3
    smoothing: float = 0.1
    l2: float = 3e-5
    batch_size: int = 128
    longest: int = 100
    pairs: int = 24_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.norm = choice("norm", self.norm, NORMS)
        for name in ("min_count", "word_width", "char_width", "hidden", "heads", "batch_size"):
            at_least(self, name, 1)
        at_least(self, "pairs", 100)
        for name in ("bert_lr", "longest"):
            at_least(self, name, 0)
        probability(self, "dropout", "smoothing")
        if 2 * self.hidden % self.heads:
            raise ValueError(
                f"heads must divide twice the width hidden, {2 * self.hidden}, into equal parts; "
                f"got {self.heads}"
            )
        if self.bert is None and (self.bert_frozen or self.bert_lr):
            raise ValueError("bert_frozen and bert_lr are for a model with --bert only")
        if self.bert_frozen and self.bert_lr:
            raise ValueError("bert_lr is for a BERT that is trained; with bert_frozen it is kept as it is")
        if self.data is not None and self.pairs != NLIConfig.pairs:
            raise ValueError("pairs is for the built-in data only: with --data all of it is read")


_PAPER: dict[str, Any] = {"epochs": 10, "lr": 1e-3, "schedule": "exponential", "clip": 5.0, "ema": 0.9999}
_BERT: dict[str, Any] = _PAPER | {"epochs": 5, "lr": 2e-5, "schedule": "constant", "batch_size": 32}

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "epochs": 6,
        "lr": 3e-3,
        "schedule": "exponential",
        "decay": 0.75,
        "clip": 5.0,
        "word_width": 64,
        "char_width": 16,
        "hidden": 64,
        "dropout": 0.1,
        "smoothing": 0.0,
        "l2": 0.0,
        "batch_size": 32,
    },
    "paper": _PAPER,
    "paper-ln": _PAPER | {"norm": "rms"},
    "paper-bert": _BERT,
    "paper-ln-bert": _BERT | {"norm": "rms"},
}


@dataclass
class EvaluateConfig(training.EvaluateConfig):
    """Accuracy of a trained inference model. MultiNLI's parts go by their names: matched, mismatched."""

    parts: ClassVar[tuple[str, ...]] = (*PARTS, *MULTINLI)


@dataclass
class PredictConfig(training.PredictConfig):
    """Label pairs of sentences, a line each, or typed one after the other in a terminal.

    Args:
        files: text files, a pair a line with a tab or ||| between premise and hypothesis; none reads standard
            input.
        format: text (the label and its probabilities) or json.
        attention: a file to draw the attention of each hypothesis word to the premise into, for the first
            pair: .html, .png or .svg.
        overwrite: replace that file if it exists.
    """

    files: list[str] = field(default_factory=list, metadata=FILE)
    format: str = "text"
    attention: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.format = choice("format", self.format, ("text", "json"))


def _check(config: NLIConfig) -> None:
    if config.bert is not None:
        from lrn.text.bert_folder import check_folder

        check_folder(config.bert)


def _check_use(options: PredictConfig) -> None:
    if options.attention is not None:
        from lrn.report.attention import check

        check(Path(options.attention), options.overwrite)


_COUNTED = {"characters": 95}


def _printed(config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    return paper.accuracy(config.get("preset", ""), data["train"]["pairs"])


SETTINGS = TaskSettings(
    train=NLIConfig,
    presets=PRESETS,
    evaluate=EvaluateConfig,
    predict=PredictConfig,
    metric="test_accuracy",
    lower_is_better=False,
    printed=_printed,
    counted={"paper": _COUNTED, "paper-ln": _COUNTED},
    note="Of the word vectors only the three special ones, as the paper counts; 95 characters.",
    files=FILES,
    described=DESCRIBED,
    check=_check,
    check_use=_check_use,
)
