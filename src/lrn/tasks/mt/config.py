"""Settings of the translation model, and the named sets of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrn.checks import FILE, at_least, choice, probability
from lrn.tasks import paper
from lrn.tasks.mt.files import find_parts, need
from lrn.tasks.settings import TaskSettings
from lrn.training import config as training
from lrn.training.config import PARTS, TrainConfig

NORMS = ("none", "rms", "layer")
TEXTS = ("auto", "raw", "tokenised", "segmented")


@dataclass
class MTConfig(TrainConfig):
    """Machine translation: an encoder and a decoder of recurrent layers, with attention in the decoder's
    first.

    Args:
        source: language of the sentences to translate, which is also the end of their files' names.
        target: language to translate into, the same.
        text: raw, which is cut into words as Moses does and these into pieces; tokenised, whose words are cut
            into pieces; or segmented, with pieces already (`@@ `); auto tells raw from segmented.
        merges: pieces that byte-pair encoding joins, learnt from both languages together.
        threshold: pieces that one language has less often are cut into smaller ones there; of segmented text
            they are unknown.
        hidden: width of word vectors and of all layers.
        encoder_layers: layers of the encoder.
        decoder_layers: layers of the decoder.
        heads: slices of the source that are attended to by themselves.
        norm: none, rms or layer.
        dropout: on embeddings, between layers, and before the softmax.
        smoothing: of the labels.
        batch_tokens: tokens a batch at most: its sentences times the longest one's length, on either side.
        longest: pairs for training with more pieces than this on a side are dropped; 0 keeps all.
        ratio: pairs for training with so many times more pieces on one side are dropped; 0 keeps all.
        pairs: built-in data only: pairs to make for training.
    """

    source: str = "en"
    target: str = "de"
    text: str = "auto"
    merges: int = 32_000
    threshold: int = 1
    hidden: int = 1024
    encoder_layers: int = 6
    decoder_layers: int = 6
    heads: int = 8
    norm: str = "layer"
    dropout: float = 0.1
    smoothing: float = 0.1
    batch_tokens: int = 4096
    longest: int = 100
    ratio: float = 9.0
    pairs: int = 12_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.norm = choice("norm", self.norm, NORMS)
        self.text = choice("text", self.text, TEXTS)
        for name in ("threshold", "hidden", "encoder_layers", "decoder_layers", "heads", "batch_tokens"):
            at_least(self, name, 1)
        at_least(self, "pairs", 100)
        for name in ("merges", "longest", "ratio"):
            at_least(self, name, 0)
        probability(self, "dropout", "smoothing")
        for name in ("source", "target"):
            if not re.fullmatch(r"[A-Za-z][\w-]*", getattr(self, name)):
                raise ValueError(f"{name} must be a language like en, got {getattr(self, name)!r}")
        if self.source == self.target:
            raise ValueError(f"source and target must be two languages, got {self.source} twice")
        if self.hidden % self.heads:
            raise ValueError(
                f"heads must divide the width hidden, {self.hidden}, into equal parts; got {self.heads}"
            )
        if 0 < self.ratio < 1:
            raise ValueError(f"ratio must be at least 1, or 0 to keep all pairs, got {self.ratio}")
        if self.data is not None and self.pairs != MTConfig.pairs:
            raise ValueError("pairs is for the built-in data only: with --data all of it is read")


PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "epochs": 4,
        "lr": 1e-3,
        "schedule": "chen",
        "replicas": 4,
        "warmup": 50,
        "decay_from": 2_000,
        "decay_to": 3_500,
        "clip": 1.0,
        "merges": 300,
        "hidden": 96,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "heads": 4,
        "dropout": 0.0,
        "smoothing": 0.0,
        "batch_tokens": 1_000,
        "keep_epochs": 5,
    },
    "small": {
        "epochs": 12,
        "lr": 4e-4,
        "schedule": "chen",
        "replicas": 4,
        "warmup": 100,
        "decay_from": 8_000,
        "decay_to": 20_000,
        "clip": 1.0,
        "merges": 6_000,
        "threshold": 3,
        "hidden": 256,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "heads": 4,
        "dropout": 0.2,
        "batch_tokens": 1_200,
        "keep_epochs": 5,
    },
    "paper": {
        "epochs": 20,
        "lr": 5e-4,
        "schedule": "chen",
        "clip": 1.0,
        "threshold": 50,
        "accumulate": 8,
        "keep_epochs": 5,
    },
}


@dataclass
class EvaluateConfig(training.EvaluateConfig):
    """BLEU and chrF of a trained translation model, how many translations are exact, and the loss.

    Args:
        part: train, valid or test, or the name of a pair of files: test_2017_flickr for
            test_2017_flickr.en and test_2017_flickr.de.
        beam: translations that are followed at a time; 1 takes the best next piece at every step.
        length_penalty: how much longer translations are favoured; 0 is not at all.
        batch_size: sentences that are translated together.
        write: a file to write the translations to, a line each.
        overwrite: replace that file if it exists.
    """

    beam: int = 4
    length_penalty: float = 0.6
    batch_size: int = 32
    write: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        training.PredictConfig.__post_init__(self)  # whether there is such a part, the data will say
        if not self.part or "/" in self.part:
            raise ValueError(f"part must be train, valid, test or the name of files, got {self.part!r}")
        for name in ("beam", "batch_size"):
            at_least(self, name, 1)
        at_least(self, "length_penalty", 0)


@dataclass
class PredictConfig(training.PredictConfig):
    """Translate sentences, a line each.

    Args:
        files: text files, a sentence a line; none reads standard input.
        beam: translations that are followed at a time; 1 takes the best next piece at every step.
        nbest: the best translations of a sentence to give, with their numbers and scores if more than one.
        length_penalty: how much longer translations are favoured; 0 is not at all.
        temperature: above 0, draw translations instead of searching for the best: at 1 with the model's own
            probabilities, below it surer ones.
        seed: of the translations that are drawn.
        batch_size: sentences that are translated together.
        tokenised: leave words and marks apart, as the model has them.
        alignment: a file to draw into, for the first sentence, what of it each piece of the translation
            attends to: .html, .png or .svg.
        overwrite: replace that file if it exists.
    """

    files: list[str] = field(default_factory=list, metadata=FILE)
    beam: int = 4
    nbest: int = 1
    length_penalty: float = 0.6
    temperature: float = 0.0
    seed: int = 1
    batch_size: int = 32
    tokenised: bool = False
    alignment: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("beam", "nbest", "batch_size"):
            at_least(self, name, 1)
        for name in ("length_penalty", "temperature", "seed"):
            at_least(self, name, 0)
        if self.nbest > self.beam and not self.temperature:
            raise ValueError(f"nbest must be at most beam, {self.beam}, got {self.nbest}")


def _check(config: MTConfig) -> None:
    if config.data is not None:
        parts = find_parts(Path(config.data), config.source, config.target)
        names = PARTS if config.test else PARTS[:2]
        hint = "; to train without a test: --test false; without --data built-in sentences are used"
        need(parts, config.data, config.source, config.target, names, hint)
    elif (config.source, config.target) != ("en", "de"):
        raise ValueError(
            f"the built-in data is English to German; for {config.source} to {config.target} say where "
            "there is some: --data"
        )


def _check_use(options: PredictConfig) -> None:
    if options.alignment is not None:
        from lrn.report.attention import check

        check(Path(options.alignment), options.overwrite)


def _printed(config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    return paper.bleu(config.get("preset", ""), data["train"]["pairs"])


SETTINGS = TaskSettings(
    train=MTConfig,
    presets=PRESETS,
    evaluate=EvaluateConfig,
    predict=PredictConfig,
    metric="test_bleu",
    lower_is_better=False,
    printed=_printed,
    counted={"paper": {"types": 55_300}},
    note="With 55,300 types of pieces in both languages together; the paper does not say how many it had.",
    described="pairs of files like train.en and train.de",
    packages=("sacrebleu", "sacremoses", "tokenizers"),
    graphs=("encoder", "decoder"),
    check=_check,
    check_use=_check_use,
)
