"""Settings of the tagger, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lrn.checks import FILE, at_least, choice, probability
from lrn.tasks import paper
from lrn.tasks.settings import TaskSettings
from lrn.training import config as training
from lrn.training.config import TrainConfig


@dataclass
class NERConfig(TrainConfig):
    """Named entity recognition: words and characters, a bidirectional recurrent layer, a CRF.

    Args:
        vectors: a file of word vectors in GloVe's form, packed or not; without it they start at random.
        all_vectors: keep the vectors of all words of that file, not only of those in the data.
        word_width: width of the word vectors; a file of vectors decides it instead.
        char_width: width of the character vectors.
        char_hidden: width of the characters' recurrent layer, each direction.
        hidden: width of the words' recurrent layer, each direction.
        dense: width of the layer before the CRF.
        dropout: on the words' representation.
        drop_words: share of the words that training takes for unknown ones.
        constrain: rule out tags that cannot follow each other.
        batch_size: sentences a batch.
        sentences: built-in data only: sentences to make for training.
    """

    vectors: str | None = field(default=None, metadata=FILE)
    all_vectors: bool = False
    word_width: int = 100
    char_width: int = 25
    char_hidden: int = 25
    hidden: int = 100
    dense: int = 100
    dropout: float = 0.5
    drop_words: float = 0.0
    constrain: bool = False
    batch_size: int = 32
    sentences: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = ("word_width", "char_width", "char_hidden", "hidden", "dense", "batch_size", "sentences")
        for name in sizes:
            at_least(self, name, 1)
        probability(self, "dropout", "drop_words")
        if self.data is not None and self.sentences != NERConfig.sentences:
            raise ValueError("sentences is for the built-in data only: with --data all of it is read")


PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"epochs": 6, "lr": 4e-3, "word_width": 50, "hidden": 50, "dense": 50, "drop_words": 0.3},
    "paper": {"epochs": 30, "lr": 1e-3},
}


@dataclass
class EvaluateConfig(training.EvaluateConfig):
    """Precision, recall and F1 of a trained tagger."""


@dataclass
class PredictConfig(training.PredictConfig):
    """Tag text: from standard input, or the files given.

    Args:
        files: text files; none reads standard input.
        split: lines are words separated by blanks already; otherwise punctuation is split off.
        format: colour (in a terminal), conll or json.
    """

    files: list[str] = field(default_factory=list, metadata=FILE)
    split: bool = False
    format: str = "colour"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.format = choice("format", self.format, ("colour", "conll", "json"))


def _printed(config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    return paper.f1(config.get("preset", ""), data["train"]["sentences"])


SETTINGS = TaskSettings(
    train=NERConfig,
    presets=PRESETS,
    evaluate=EvaluateConfig,
    predict=PredictConfig,
    metric="test_f1",
    lower_is_better=False,
    printed=_printed,
    counted={"paper": {"characters": 517, "tags": 10}},
    note="Without the word vectors, as the paper counts; 517 characters, those of all of GloVe's words.",
    files=(
        ("eng.train", "eng.testa", "eng.testb"),  # as CoNLL-2003 was distributed
        ("train.txt", "valid.txt", "test.txt"),
    ),
)
