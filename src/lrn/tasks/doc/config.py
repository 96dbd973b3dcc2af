"""Settings of the document classifier, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from lrn.checks import FILE, at_least, choice, probability
from lrn.tasks import paper
from lrn.tasks.settings import TaskSettings
from lrn.training import config as training
from lrn.training.config import TrainConfig

BUILTIN = ("builtin:cues", "builtin:quotes", "builtin:docstrings")
POOLINGS = ("attention", "last")
ACTIVATIONS = ("tanh", "identity")
FORMS = ("png", "svg", "html", "csv", "json")  # of the memory's figure


@dataclass
class DocConfig(TrainConfig):
    """Document classification: word and character vectors, a recurrent layer, attentive pooling.

    Without data of your own (``--data``), documents are made whose deciding word stands far from their end:
    ``builtin:cues``, or ``builtin:quotes``, in which others say the same in quotation marks. With ``--data
    builtin:docstrings`` it is told by its docstrings which package of Python's library is meant.

    Args:
        vectors: a file of word vectors in GloVe's form, packed or not, which are kept as they are; without it
            vectors are learnt.
        min_count: without a file of vectors: words that training has less often are unknown.
        word_width: width of the word vectors; a file of vectors decides it instead.
        char_width: width of the character vectors.
        hidden: width of the recurrent layer, each direction.
        pooling: attention over all states of both directions, or the last state of one direction alone.
        activation: of the units that have a choice (LRN, gLRN, eLRN, ATR): tanh or identity.
        keep: first bias of the gate that keeps the state, and minus it of the one that lets words in; at 0
            only near words can be learnt from at first.
        dropout: on the input of the pooling; characters get half of it.
        drop_words: share of the words that training leaves to their characters.
        smoothing: of the labels.
        schedule: exponential, a rate that falls by epoch; constant; linear, to nothing at the end; or
            plateau, when the validation loss does not fall.
        l2: weight of half the squared norm of all weights in the loss.
        batch_size: documents a batch.
        longest: training documents are cut to this many words; 0 does not cut.
        longest_test: the same for validation, test and prediction.
        documents: built-in cues and quotes only: documents to make for training.
    """

    vectors: str | None = field(default=None, metadata=FILE)
    min_count: int = 2
    word_width: int = 300
    char_width: int = 32
    hidden: int = 64
    pooling: str = "attention"
    activation: str = "tanh"
    keep: float = 0.0
    dropout: float = 0.1
    drop_words: float = 0.1
    smoothing: float = 0.1
    schedule: str = "exponential"
    l2: float = 3e-5
    batch_size: int = 64
    longest: int = 400
    longest_test: int = 400
    documents: int = 6000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pooling = choice("pooling", self.pooling, POOLINGS)
        self.activation = choice("activation", self.activation, ACTIVATIONS)
        for name in ("min_count", "word_width", "char_width", "hidden", "batch_size"):
            at_least(self, name, 1)
        at_least(self, "documents", 100)
        for name in ("longest", "longest_test"):
            at_least(self, name, 0)
        probability(self, "dropout", "drop_words", "smoothing")
        if self.data and self.data.startswith("builtin:"):
            choice("built-in data", self.data, BUILTIN)


_PAPER: dict[str, Any] = {"epochs": 6, "lr": 1e-3, "clip": 5.0, "ema": 0.9999}
_SMALL: dict[str, Any] = {
    "clip": 5.0,
    "word_width": 64,
    "char_width": 16,
    "drop_words": 0.0,
    "smoothing": 0.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "quick": _SMALL
    | {"data": "builtin:quotes", "documents": 3000, "epochs": 5, "lr": 5e-3, "decay": 0.8, "l2": 0.0},
    "paper": _PAPER,
    "memory": _SMALL
    # Long enough for seeds to come through the plateau on which negation is not yet learnt
    | {"pooling": "last", "activation": "identity", "keep": 5.0, "hidden": 128, "clip": 1.0}
    | {"epochs": 20, "lr": 1e-2, "decay": 0.92, "l2": 0.0, "batch_size": 32},
}


@dataclass
class EvaluateConfig(training.EvaluateConfig):
    """Accuracy of a trained classifier.

    Args:
        memory: builtin:cues and builtin:quotes only: of the test documents that it gets right, the share
            whose deciding word is among the 5 % of words that the last state remembers best.
    """

    memory: bool = False


@dataclass
class PredictConfig(training.PredictConfig):
    """Label documents, a line each: from standard input, or the files given.

    Args:
        files: text files; none reads standard input.
        format: text (the label and its probabilities) or json.
    """

    files: list[str] = field(default_factory=list, metadata=FILE)
    format: str = "text"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.format = choice("format", self.format, ("text", "json"))


@dataclass
class MemoryConfig(training.PredictConfig):
    """Draw how much of each word of a document is left in the state as the reading goes on.

    Args:
        text: the document.
        file: a file that holds the document instead.
        out: files to write, by their endings: .png, .svg, .html (point at a word), .csv, .json.
        top: so many of the words remembered best are coloured and named.
        overwrite: replace files that exist.
    """

    stray: ClassVar[str] = "the document itself follows --text, a file that holds it --file"

    text: str | None = None
    file: str | None = field(default=None, metadata=FILE)
    out: list[str] = field(default_factory=lambda: ["memory.png", "memory.html"])
    top: int = 5
    overwrite: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.text is None) == (self.file is None):
            raise ValueError("give either --text, the document itself, or --file, where it is")
        at_least(self, "top", 0)
        for name in self.out:
            ending = name.rpartition(".")[2].lower() if "." in name else ""
            if ending not in FORMS:
                raise ValueError(
                    f"--out {name}: the name must end in {', '.join(f'.{form}' for form in FORMS)}"
                )


def _printed(config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    return paper.error(config.get("preset", ""), len(data["classes"]), data["train"]["documents"])


SETTINGS = TaskSettings(
    train=DocConfig,
    presets=PRESETS,
    evaluate=EvaluateConfig,
    predict=PredictConfig,
    metric="test_error",
    lower_is_better=True,
    printed=_printed,
    counted={"paper": {"characters": 145, "classes": 2}},
    note="Two classes. Of the word vectors only the three special ones count, the others stay as they are; "
    "145 characters, which the paper does not print: its figures allow 139 to 151.",
    commands={"memory": MemoryConfig},
    files=(("train.csv", "test.csv"),),  # as Zhang et al. (2015) published them
    builtin=BUILTIN,
)
