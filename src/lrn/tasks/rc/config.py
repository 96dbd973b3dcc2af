"""Settings of the reading model, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrn.checks import FILE, FOLDER, at_least, choice, probability
from lrn.tasks import paper
from lrn.tasks.settings import TaskSettings
from lrn.training import config as training
from lrn.training.config import TrainConfig

OFFICIAL = ("train-v1.1.json", "dev-v1.1.json")
FILES = (OFFICIAL, ("+*.json",))
DESCRIBED = "train-v1.1.json and dev-v1.1.json, or any .json of SQuAD's form, of which articles are held out"
LONGEST_TEST = (1_000, 100)
"""Tokens of paragraph and question of what is tested; training and validation have limits of their own."""


@dataclass
class RCConfig(TrainConfig):
    """Reading comprehension: a paragraph is read with a question in mind, and its answer pointed at (R-Net).

    Args:
        vectors: a file of word vectors in GloVe's form, packed or not, which are kept as they are; without it
            vectors are learnt.
        min_count: without a file of vectors: words that training has less often are unknown.
        word_width: width of the word vectors; a file of vectors decides it instead.
        char_width: width of the character vectors.
        char_hidden: width of the GRU that reads characters, each direction.
        hidden: width of every recurrent layer, each direction, and of every attention.
        dropout: one mask a sequence on what every layer and every attention reads, and on characters.
        elmo: folder with an ELMo, options.json and weights.hdf5, whose layers are used beside word vectors
            and before the answer is pointed at.
        elmo_carried: ELMo goes on, text by text and batch_size texts side by side, in the states in which it
            ended the texts before, as in the released code; else it reads each text for itself.
        elmo_dropout: one mask a sequence on each mix of ELMo's layers.
        pool_elmo: with ELMo the question is pooled from the last columns of its features, as in the released
            code; false pools what the recurrent layers say.
        batch_size: questions a batch, each with its paragraph.
        longest: longer paragraphs, in tokens, are left out of training and validation.
        longest_question: the same for questions.
        longest_answer: tokens that an answer may have when one is looked for.
        held_out: articles to test on, chosen by the seed, where the folder lacks SQuAD's two official files.
        held_out_valid: further articles to validate on; 0 validates on those of the test.
        paragraphs: built-in data only: paragraphs to make for training.
    """

    vectors: str | None = field(default=None, metadata=FILE)
    min_count: int = 2
    word_width: int = 300
    char_width: int = 8
    char_hidden: int = 100
    hidden: int = 75
    dropout: float = 0.3
    elmo: str | None = field(default=None, metadata=FOLDER)
    elmo_carried: bool = False
    elmo_dropout: float = 0.5
    pool_elmo: bool = True
    batch_size: int = 64
    longest: int = 400
    longest_question: int = 50
    longest_answer: int = 16
    held_out: int = 12
    held_out_valid: int = 4
    paragraphs: int = 1_500

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("min_count", "word_width", "char_width", "char_hidden", "hidden", "batch_size"):
            at_least(self, name, 1)
        for name in ("longest", "longest_question", "longest_answer", "held_out"):
            at_least(self, name, 1)
        at_least(self, "held_out_valid", 0)
        at_least(self, "paragraphs", 50)
        probability(self, "dropout", "elmo_dropout")
        if self.elmo is None and self.elmo_carried:
            raise ValueError("elmo_carried is for a model with --elmo only")
        if self.data is not None and self.paragraphs != RCConfig.paragraphs:
            raise ValueError("paragraphs is for the built-in data only: with --data all of it is read")


_PAPER: dict[str, Any] = {
    "epochs": 44,
    "lr": 0.5,
    "optimizer": "adadelta",
    "schedule": "plateau",
    "clip": 5.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "epochs": 3,
        "lr": 3e-3,
        "schedule": "linear",
        "clip": 5.0,
        "word_width": 64,
        "char_width": 8,
        "char_hidden": 24,
        "hidden": 48,
        "dropout": 0.0,
        "batch_size": 16,
    },
    "paper": _PAPER,
    "paper-elmo": _PAPER | {"batch_size": 16, "accumulate": 4},
}


@dataclass
class EvaluateConfig(training.EvaluateConfig):
    """Exact match and F1 of a trained reading model, as SQuAD's official script has them, also by the word
    with which questions begin and by the length of answers."""


ASKED = (
    "without --text the text is asked for in a terminal, "
    "or comes from standard input if --files has the questions"
)


@dataclass
class PredictConfig(training.PredictConfig):
    """Answer questions about a text.

    Args:
        text: a file with the text; without it the text is asked for in a terminal, or is all of standard
            input if the questions are in files.
        files: text files, a question a line; none asks for them in a terminal, or reads standard input.
        best: how many answers to give, the most probable first.
        format: text (answer, its place in the text, its probability) or json, a line a question.
        html: a page to write: the text with the answers marked, and the attention of the questions' words.
        overwrite: replace that file if it exists.
    """

    text: str | None = field(default=None, metadata=FILE | {"otherwise": ASKED})
    files: list[str] = field(default_factory=list, metadata=FILE)
    best: int = 1
    format: str = "text"
    html: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "best", 1)
        self.format = choice("format", self.format, ("text", "json"))


def _check(config: RCConfig) -> None:
    if config.elmo is not None:
        from lrn.text.elmo_folder import check_folder

        check_folder(config.elmo)


def _check_use(options: PredictConfig) -> None:
    if options.html is not None:
        from lrn.report.attention import check

        check(Path(options.html), options.overwrite, (".html",), "the page with the answers")


_COUNTED = {"characters": 1_530}


def _printed(config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    return paper.answers(config.get("preset", ""), data["train"]["asked"])


SETTINGS = TaskSettings(
    train=RCConfig,
    presets=PRESETS,
    evaluate=EvaluateConfig,
    predict=PredictConfig,
    metric="test_f1",
    lower_is_better=False,
    printed=_printed,
    counted={"paper": _COUNTED, "paper-elmo": _COUNTED | {"layers": 3, "features": 1_024}},
    note="Without word vectors, which are not trained, and without ELMo's own; 1,530 characters.",
    files=FILES,
    described=DESCRIBED,
    packages=("spacy",),
    check=_check,
    check_use=_check_use,
)
