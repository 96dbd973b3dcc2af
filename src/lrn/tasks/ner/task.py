"""The tagger as a task: Adam on batches of sentences of like length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from lrn.report.views import View
from lrn.tasks.asking import Answer, Field, Request, Settings
from lrn.tasks.base import Loaded, Progress, Score, Task, TaskLearner
from lrn.tasks.ner import predict
from lrn.tasks.ner.config import SETTINGS, EvaluateConfig, NERConfig, PredictConfig
from lrn.tasks.ner.data import (
    LONGEST,
    LONGEST_ALONE,
    Codes,
    Dataset,
    Sentence,
    SentenceBatch,
    encode,
    read_builtin,
    read_folder,
)
from lrn.tasks.ner.model import Tagger
from lrn.tasks.ner.score import Counts, score
from lrn.text.batches import by_length
from lrn.text.store import Store
from lrn.text.vectors import coverage, read_vectors
from lrn.training.config import PARTS
from lrn.training.learner import Loss, Place
from lrn.training.schedule import optimizer
from lrn.training.show import bar

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable

LoadedTagger = Loaded[NERConfig, "Kept", Tagger]


@dataclass(frozen=True)
class Kept:
    """What a run of the tagger keeps: the numbers of words, characters and tags.

    The given vectors are kept in the weights that start from them.
    """

    codes: Codes
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        self.codes.save(folder)


class NERLearner(TaskLearner[NERConfig, Dataset, Kept, Tagger, SentenceBatch]):
    """The training of a tagger on tagged sentences."""

    def __init__(self, task: NERTask, loaded: LoadedTagger, data: Dataset) -> None:
        super().__init__(task, loaded, data)
        self.lengths = [len(sentence.words) for sentence in data.train]

    def plan(self, epoch: int) -> list[list[int]]:
        return by_length(self.lengths, self.config.batch_size, seed=self.config.seed, epoch=epoch)

    def batch(self, piece: list[int], place: Place) -> SentenceBatch:
        sentences = [self.data.train[number] for number in place.of(piece)]
        return encode([s.words for s in sentences], self.kept.codes, [s.tags for s in sentences])

    def tokens(self, piece: list[int]) -> int:
        return sum(self.lengths[number] for number in piece)

    def loss(self, batch: SentenceBatch) -> Loss:
        loss = self.model.loss(batch)
        return Loss(loss, loss)

    def optimizer(self) -> torch.optim.Optimizer:
        if self.config.optimizer != "adam":
            return super().optimizer()
        return optimizer("adam", self.model.parameters(), self.config, eps=1e-7)


class NERTask(Task[NERConfig, Dataset, Kept, Tagger]):
    """Named entity recognition: CoNLL-2003, or sentences of our own making."""

    name, title = "ner", "Named entity recognition"
    fields = (Field("text", 10_000, lines=4),)
    choices: ClassVar[Settings] = {"split": None}
    monitor = "f1"
    tests_last_epoch = True
    settings = SETTINGS
    learner_type = NERLearner

    def read(self, config: NERConfig, source: str | None, progress: Progress) -> Dataset:
        if source is None:
            return read_builtin(config.sentences, config.seed)
        return read_folder(Path(source).resolve(), progress)

    def first_kept(self, config: NERConfig, data: Dataset) -> Kept:
        if config.vectors is None:
            return Kept(Codes.of(data.train))
        needed = {
            word.lower() for part in PARTS for sentence in getattr(data, part) for word in sentence.words
        }
        with bar("reading word vectors") as progress:
            vectors = read_vectors(config.vectors, None if config.all_vectors else needed, progress)
        if not vectors:
            raise ValueError(f"{config.vectors} has no vector for any word of the data")
        about = {"file": Path(config.vectors).name, "width": _width(vectors), "words": len(vectors)}
        about["coverage"] = {part: _coverage(vectors, getattr(data, part)) for part in PARTS}
        return Kept(Codes.of(data.train, vectors), vectors, {"vectors": about})

    def load_kept(self, config: NERConfig, store: Store) -> Kept:
        return Kept(Codes.load(store))

    def fitted(self, config: NERConfig, kept: Kept) -> NERConfig:
        """A file of vectors decides their width."""
        return replace(config, word_width=_width(kept.vectors)) if kept.vectors else config

    def build(self, config: NERConfig, kept: Kept) -> Tagger:
        return Tagger(config, kept.codes)

    def start(self, learner: NERLearner) -> None:
        """Words begin with their given vectors, or with zeros where they have none."""
        vectors = learner.kept.vectors
        if not vectors:
            return
        table = torch.zeros_like(learner.model.word_vectors.weight)
        for number, word in enumerate(learner.kept.codes.words.words):
            if word in vectors:
                table[number] = torch.from_numpy(vectors[word])
        learner.model.load_vectors(table)

    def describe(self, data: Dataset, kept: Kept) -> str:
        parts = "; ".join(
            f"{name} {data.about[name]['sentences']:,} sentences, {data.about[name]['tokens']:,} tokens, "
            f"{data.about[name]['entities']:,} entities"
            for name in PARTS
        )
        words = kept.codes.words
        known = sum(word in kept.vectors for word in words.words)
        vectors = f"; {known:,} of {len(words):,} words have a vector" if kept.vectors else ""
        return f"{data.about['source']}: {parts}{vectors}"

    def warnings(self, data: Dataset, kept: Kept) -> list[str]:
        said = []
        for part in PARTS:
            sentences: list[Sentence] = getattr(data, part)
            longest = max(len(sentence.words) for sentence in sentences)
            if longest > (LONGEST if len(sentences) > 1 else LONGEST_ALONE):
                doubt = "is there a blank line after each sentence?"
                said.append(f"{part}: the longest sentence has {longest:,} words; {doubt}")
            counts = Counter(tag for sentence in sentences for tag in sentence.tags)
            unknown = [f"{tag} ({n:,})" for tag, n in sorted(counts.items()) if tag not in kept.codes.tags]
            if unknown:
                said.append(
                    f"{part} has tags that were never trained and cannot be found: {', '.join(unknown)}"
                )
        return said

    def measure(
        self, loaded: LoadedTagger, data: Dataset, options: EvaluateConfig, progress: Progress
    ) -> Score:
        sentences: list[Sentence] = getattr(data, options.part)
        words = [sentence.words for sentence in sentences]
        tags = predict.tag_all(loaded.model, loaded.kept.codes, words, progress)
        found = score([sentence.tags for sentence in sentences], tags)
        whole = found.pop("all")
        figures = {"precision": whole.precision, "recall": whole.recall, "f1": whole.f1}
        details = {name: _numbers(counts) for name, counts in found.items()}
        return Score({"sentences": len(sentences), "entities": whole.there}, figures, details)

    def predict(self, loaded: LoadedTagger, options: PredictConfig) -> None:
        predict.run(lambda line: self.answers(loaded, [[line]], options)[0], options)

    def answers(
        self, loaded: LoadedTagger, requests: Sequence[Request], options: PredictConfig, details: bool = False
    ) -> list[Answer]:
        texts = [text for (text,) in requests]
        return predict.answers(loaded.model, loaded.kept.codes, texts, options, details)

    def views(self, answer: Answer) -> list[View]:
        return predict.views(answer)

    def example(self, loaded: LoadedTagger) -> list[str]:
        return [predict.example(loaded.config)]

    def portable(self, loaded: LoadedTagger, data: Dataset) -> Portable:
        from lrn.tasks.ner.portable import portable

        return portable(loaded, data)


def _width(vectors: dict[str, NDArray[np.float32]]) -> int:
    return len(next(iter(vectors.values())))


def _coverage(vectors: dict[str, NDArray[np.float32]], sentences: list[Sentence]) -> float:
    """The share of words, as they stand in the text, that have a vector."""
    counts = Counter(word.lower() for sentence in sentences for word in sentence.words)
    return coverage([word in vectors for word in counts], list(counts.values()))


def _numbers(counts: Counts) -> dict[str, float]:
    return {
        "precision": round(counts.precision, 2),
        "recall": round(counts.recall, 2),
        "f1": round(counts.f1, 2),
        "entities": counts.there,
    }


TASK = NERTask()
