"""The classifier as a task: Adam on batches of documents of like length, with averaged weights."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.nn import smoothed_loss
from lrn.report.views import View
from lrn.tasks import paper
from lrn.tasks.asking import Answer, Field, Request
from lrn.tasks.base import Loaded, Progress, Score, Task, TaskLearner
from lrn.tasks.doc import csv_set, generator, predict
from lrn.tasks.doc.config import SETTINGS, DocConfig, EvaluateConfig, PredictConfig
from lrn.tasks.doc.data import (
    Codes,
    DocumentBatch,
    cut_lengths,
    cut_off,
    encode,
    frequent_words,
    read_documents,
    split,
    without_words,
)
from lrn.tasks.doc.documents import PARTS, Documents
from lrn.tasks.doc.memory import Remembered, cues_remembered, remember
from lrn.tasks.doc.model import Classifier
from lrn.text.batches import in_buckets
from lrn.text.spelling import SpellingTable
from lrn.text.spelt import load_given, read_given, save_given
from lrn.text.store import Store
from lrn.text.tokens import basic_tokens
from lrn.text.vectors import coverage
from lrn.text.vocabulary import SPECIALS
from lrn.training.learner import Loss, Place
from lrn.training.run import Run
from lrn.training.show import bar

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable

DOCUMENTS = 64  # to a batch when scoring

LoadedClassifier = Loaded[DocConfig, "Kept", Classifier]


@dataclass(frozen=True)
class Kept:
    """What a run of the classifier keeps: its numbers of words, characters and classes, and given vectors,
    which never change, so that no checkpoint has them."""

    codes: Codes
    vectors: Tensor | None = None  # [words but the special ones, width]
    about: dict[str, Any] = field(default_factory=dict)
    _known: list[tuple[Documents, SpellingTable]] = field(default_factory=list, repr=False, compare=False)

    def table(self, data: Documents) -> SpellingTable:
        """Every type of word in the documents by number; worked out once for the same documents."""
        if not self._known or self._known[0][0] is not data:
            self._known[:] = [(data, self.codes.table(data.types))]
        return self._known[0][1]

    def save(self, folder: Path) -> None:
        self.codes.save(folder)
        if self.vectors is not None:
            save_given(folder, self.vectors)


class DocLearner(TaskLearner[DocConfig, Documents, Kept, Classifier, DocumentBatch]):
    """The training of a classifier on documents."""

    def __init__(self, task: DocTask, loaded: LoadedClassifier, data: Documents) -> None:
        super().__init__(task, loaded, data)
        self.table = self.kept.table(data)
        self.numbers, held_out = split(data, self.config.seed)
        self.lengths = cut_lengths(data.train, self.config.longest)
        self.about["cut"] = {
            "train": cut_off(data.train, self.numbers, self.config.longest),
            "valid": cut_off(data.train, held_out, self.config.longest_test),
            "test": cut_off(data.test, np.arange(len(data.test)), self.config.longest_test),
        }

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        config = self.config
        return in_buckets(self.numbers, self.lengths, config.batch_size, seed=config.seed, epoch=epoch)

    def batch(self, piece: NDArray[np.int64], place: Place) -> DocumentBatch:
        part, mine = self.data.train, place.of(piece)
        documents = [part.document(number, self.config.longest) for number in mine]
        return encode(documents, self.table, part.labels[mine])

    def tokens(self, piece: NDArray[np.int64]) -> int:
        return int(self.lengths[piece].sum())

    def loss(self, batch: DocumentBatch) -> Loss:
        loss = smoothed_loss(self.model(batch), batch.labels, self.config.smoothing)
        return Loss(loss, loss)


class DocTask(Task[DocConfig, Documents, Kept, Classifier]):
    """Document classification: the sets of Zhang et al. (2015), or documents of our own making."""

    name, title = "doc", "Document classification"
    fields = (Field("text", 20_000, lines=6),)
    monitor = "error"
    settings = SETTINGS
    learner_type = DocLearner

    def read(self, config: DocConfig, source: str | None, progress: Progress) -> Documents:
        return read_documents(config, source, progress)

    def first_kept(self, config: DocConfig, data: Documents) -> Kept:
        if config.vectors is None:
            return Kept(Codes.of(data, frequent_words(data, config.min_count)))
        with bar("reading word vectors") as progress:
            words, vectors = read_given(config.vectors, data.types, progress)
        codes = Codes.of(data, words)
        kept = Kept(codes, vectors)
        kept.about["vectors"] = {
            "file": Path(config.vectors).name,
            "words": len(words),
            "width": vectors.shape[1],
            "coverage": _coverage(data, kept),
        }
        return kept

    def load_kept(self, config: DocConfig, store: Store) -> Kept:
        codes = Codes.load(store)
        return Kept(codes, load_given(store, codes) if config.vectors else None)

    def build(self, config: DocConfig, kept: Kept) -> Classifier:
        codes = kept.codes
        return Classifier(config, len(codes.characters), len(codes.classes), len(codes.words), kept.vectors)

    def describe(self, data: Documents, kept: Kept) -> str:
        parts = "; ".join(
            f"{name} {data.about[name]['documents']:,} documents, {data.about[name]['tokens']:,} words"
            + (f", {empty:,} without any word" if (empty := data.about[name]["without_words"]) else "")
            for name in PARTS
        )
        share = _coverage(data, kept)["train"] if kept.vectors is not None else None
        vectors = f"; vectors for {share:.1%} of the words" if share is not None else ""
        return f"{data.about['source']}: {len(data.about['classes'])} classes; {parts}{vectors}"

    def unread(self, learner: Any) -> list[str]:
        flags = {part: "longest" if part == "train" else "longest_test" for part in learner.about["cut"]}
        return [
            f"--{flags[part]} {getattr(learner.config, flags[part])} cuts {lost['words']:,} words off "
            f"{lost['documents']:,} {part} documents"
            for part, lost in learner.about["cut"].items()
            if lost["words"]
        ]

    def warnings(self, data: Documents, kept: Kept) -> list[str]:
        return [
            f"{file}: the row that begins on line {found['first_line']:,}"
            + (f", and {more:,} more," if (more := found["rows"] - 1) else "")
            + f" goes on over lines that look like rows, or over more than {csv_set.MOST_LINES:,} lines; "
            "is there a quote that is not closed?"
            for file, found in data.about.get("doubtful", {}).items()
        ]

    def check_fits(self, kept: Kept, data: Documents, run: Run, options: EvaluateConfig) -> None:
        if options.memory and data.about["source"] not in generator.MANNERS:
            raise ValueError(
                "--memory needs to know the deciding words: it is for runs on "
                f"{' and '.join(generator.MANNERS)}, and {run.folder} is on {data.about['source']}"
            )
        if data.classes != kept.codes.classes.words:
            raise ValueError(
                f"the data has the classes {', '.join(data.classes)}; "
                f"{run.folder} tells {', '.join(kept.codes.classes.words)}"
            )

    def measure(
        self, loaded: LoadedClassifier, data: Documents, options: EvaluateConfig, progress: Progress
    ) -> Score:
        part = data.test if options.part == "test" else data.train
        train, valid = split(data, loaded.config.seed)
        numbers = {"train": train, "valid": valid, "test": np.arange(len(data.test))}[options.part]
        found = classify(loaded, data, options.part, numbers, progress)
        labels = torch.from_numpy(part.labels[numbers].astype(np.int64))
        right = (found.argmax(1) == labels).double().mean().item()
        loss = torch.nn.functional.nll_loss(found.clamp_min(1e-30).log(), labels).item()
        details: dict[str, Any] = {}
        if options.memory:
            manner = generator.MANNERS[data.about["source"]]
            made = generator.documents(len(data.test), part="test", seed=data.about["seed"], manner=manner)
            details = cues_remembered(loaded.model, loaded.kept.codes, made)
        counts = {"documents": len(numbers)}
        lost = cut_off(part, numbers, loaded.config.longest_test)
        if lost["words"]:
            counts |= {"documents_cut": lost["documents"], "words_cut": lost["words"]}
        if empty := without_words(data.types, part, numbers):
            counts["documents_without_words"] = empty
        return Score(counts, {"error": 100 * (1 - right), "loss": loss}, details)

    def predict(self, loaded: LoadedClassifier, options: PredictConfig) -> None:
        longest = loaded.config.longest_test
        predict.run(lambda line: self.answers(loaded, [[line]], options)[0], options, longest)

    def answers(
        self,
        loaded: LoadedClassifier,
        requests: Sequence[Request],
        options: PredictConfig,
        details: bool = False,
    ) -> list[Answer]:
        texts = [basic_tokens(text) for (text,) in requests]
        return predict.answers(loaded.model, loaded.kept.codes, texts, details, loaded.config.longest_test)

    def views(self, answer: Answer) -> list[View]:
        return predict.views(answer)

    def example(self, loaded: LoadedClassifier) -> list[str]:
        return [predict.example(loaded.config)]

    def portable(self, loaded: LoadedClassifier, data: Documents) -> Portable:
        from lrn.tasks.doc.portable import portable

        return portable(loaded, data)

    def printed_elsewhere(self, config: dict[str, Any], data: dict[str, Any]) -> tuple[str, dict[str, str]]:
        return paper.elsewhere(self.name, config.get("preset", ""), len(data["classes"]))

    def remembered(self, run: Run, text: str) -> Remembered:
        """What the run's model remembers of a text."""
        loaded = self.load(run)
        words, longest = basic_tokens(text), loaded.config.longest_test
        if longest and len(words) > longest:
            print(predict.said_of_cuts("the document has", len(words) - longest, longest), file=sys.stderr)
        return remember(loaded.model, loaded.kept.codes, words[: longest or None])

    def remembered_example(self, run: Run) -> Remembered | None:
        """The same for a test document of twelve words or more that the model gets right, if there is one."""
        loaded = self.load(run)
        data = self._read(loaded.config, run.data())
        test, codes = data.test, loaded.kept.codes
        by_length = np.argsort(test.lengths, kind="stable")
        for number in by_length[test.lengths[by_length] >= 12][:50].tolist():
            words = [data.types[int(token)] for token in test.document(number, loaded.config.longest_test)]
            found = remember(loaded.model, codes, words)
            if found.label == codes.classes.words[test.labels[number]]:
                return found
        return None


def classify(
    loaded: LoadedClassifier, data: Documents, part: str, numbers: NDArray[np.int64], progress: Progress
) -> Tensor:
    """Probabilities ``[len(numbers), classes]``, on the host; run in batches of like length."""
    documents = data.test if part == "test" else data.train
    longest, table = loaded.config.longest_test, loaded.kept.table(data)
    order = np.argsort(cut_lengths(documents, longest)[numbers], kind="stable")
    found = torch.empty(len(numbers), loaded.model.output.out_features)
    for start in range(0, len(order), DOCUMENTS):
        places = order[start : start + DOCUMENTS]
        batch = encode([documents.document(n, longest) for n in numbers[places]], table)
        shares = loaded.model.probabilities(batch.to(loaded.device))
        found[torch.from_numpy(places)] = shares.to(found)
        progress((start + len(places)) / len(order))
    return found


def _coverage(documents: Documents, kept: Kept) -> dict[str, float]:
    """The share of words, as they stand in the text, that have a vector, by part."""
    known, counts = kept.table(documents).words >= len(SPECIALS), documents.counts
    return {part: coverage(known, counts[:, number]) for number, part in enumerate(("train", "test"))}


TASK = DocTask()
