"""The reading model as a task: Adadelta on questions whose paragraphs are of like length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lrn.nn import best_spans
from lrn.report.views import View
from lrn.tasks.asking import Answer, Field, Request, Settings, Slider
from lrn.tasks.base import Loaded, Progress, Score, Task, TaskLearner
from lrn.tasks.rc import predict
from lrn.tasks.rc.config import SETTINGS, EvaluateConfig, PredictConfig, RCConfig
from lrn.tasks.rc.context import FOLDER, ElmoReader
from lrn.tasks.rc.data import (
    NOWHERE,
    Codes,
    Dataset,
    Part,
    QuestionBatch,
    encode,
    encode_words,
    forms,
    known_form,
    read_builtin,
    read_folder,
)
from lrn.tasks.rc.model import Reading, ReadingModel
from lrn.tasks.rc.score import Scored, details, figures
from lrn.text.batches import in_buckets
from lrn.text.spelling import SpellingTable
from lrn.text.spelt import load_given, save_given
from lrn.text.store import Store
from lrn.text.vectors import coverage, read_table
from lrn.text.vocabulary import SPECIALS
from lrn.training.config import PARTS
from lrn.training.learner import Loss, Place
from lrn.training.run import Run
from lrn.training.show import bar

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable

QUESTIONS = 32  # to a batch when scoring

Words = Sequence[Sequence[str]]
LoadedModel = Loaded[RCConfig, "Kept", ReadingModel]


@dataclass(frozen=True)
class Kept:
    """What a run of the reading model keeps: its numbers of words and characters, given vectors, an ELMo."""

    codes: Codes
    vectors: Tensor | None = None  # [words but the special ones, width]
    elmo: ElmoReader | None = None
    about: dict[str, Any] = field(default_factory=dict)
    _known: list[tuple[Dataset, SpellingTable]] = field(default_factory=list, repr=False, compare=False)

    def table(self, data: Dataset) -> SpellingTable:
        """Every type of word in the data by number; worked out once for the same data."""
        if not self._known or self._known[0][0] is not data:
            self._known[:] = [(data, self.codes.table(data.types))]
        return self._known[0][1]

    def batch(self, data: Dataset, name: str, numbers: NDArray[np.int64]) -> QuestionBatch:
        """Make a batch of questions of a part."""
        part: Part = getattr(data, name)
        paragraphs = [part.paragraphs[part.about[number]] for number in numbers]
        questions = [part.questions[number] for number in numbers]
        batch = encode(paragraphs, questions, self.table(data), part.spans[numbers])
        return batch if self.elmo is None else self.elmo.add(batch, data, name, numbers)

    def batch_of_words(self, paragraphs: Words, questions: Words) -> QuestionBatch:
        """Make a batch of questions and paragraphs that are given as their words."""
        batch = encode_words(paragraphs, questions, self.codes)
        return batch if self.elmo is None else self.elmo.add_words(batch, paragraphs, questions)

    def read_ahead(self, data: Dataset, name: str) -> None:
        """Let an ELMo read a part of the data, which takes long, before it is needed."""
        if self.elmo is not None:
            self.elmo.read_part(data, name)

    def save(self, folder: Path) -> None:
        self.codes.save(folder)
        if self.vectors is not None:
            save_given(folder, self.vectors)
        if self.elmo is not None:
            self.elmo.save(folder)


class RCLearner(TaskLearner[RCConfig, Dataset, Kept, ReadingModel, QuestionBatch]):
    """The training of a reading model on questions with answers."""

    def __init__(self, task: RCTask, loaded: LoadedModel, data: Dataset) -> None:
        super().__init__(task, loaded, data)
        self.lengths = data.train.lengths
        self.all_lengths = self.lengths + data.train.questions.lengths
        for name in PARTS if self.config.test else PARTS[:2]:
            self.kept.read_ahead(data, name)

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        config, everything = self.config, np.arange(len(self.data.train))
        return in_buckets(everything, self.lengths, config.batch_size, seed=config.seed, epoch=epoch)

    def batch(self, piece: NDArray[np.int64], place: Place) -> QuestionBatch:
        return self.kept.batch(self.data, "train", place.of(piece))

    def tokens(self, piece: NDArray[np.int64]) -> int:
        return int(self.all_lengths[piece].sum())

    def loss(self, batch: QuestionBatch) -> Loss:
        loss = self.model.loss(batch)
        return Loss(loss, loss)


class RCTask(Task[RCConfig, Dataset, Kept, ReadingModel]):
    """Reading comprehension: SQuAD v1.1, files of its form, or texts of our own making."""

    name, title = "rc", "Reading comprehension"
    fields = (Field("text", 6_000, lines=6, blank=False), Field("question", 500, lines=1, blank=False))
    choices: ClassVar[Settings] = {"best": Slider("answers", 3, 1, 5)}
    monitor = "f1"
    tests_last_epoch = True
    settings = SETTINGS
    learner_type = RCLearner

    def read(self, config: RCConfig, source: str | None, progress: Progress) -> Dataset:
        if source is None:
            return read_builtin(config)
        return read_folder(Path(source).resolve(), config, progress)

    def first_kept(self, config: RCConfig, data: Dataset) -> Kept:
        elmo = None if config.elmo is None else _elmo(config, Path(config.elmo))
        if config.vectors is None:
            seen = zip(data.types, data.counts[:, 0].tolist(), strict=True)
            words = [word for word, count in seen if count >= config.min_count and word not in SPECIALS]
            return Kept(Codes.of(data.types, words), None, elmo)
        words, table = _vectors(config.vectors, data.types)
        kept = Kept(Codes.of(data.types, words), table, elmo)
        kept.about["vectors"] = {
            "file": Path(config.vectors).name,
            "words": len(words),
            "width": table.shape[1],
            "coverage": _coverage(data, kept),
        }
        return kept

    def load_kept(self, config: RCConfig, store: Store) -> Kept:
        codes = Codes.load(store)
        vectors = load_given(store, codes) if config.vectors else None
        return Kept(codes, vectors, _elmo(config, store.folder(FOLDER)) if config.elmo else None)

    def build(self, config: RCConfig, kept: Kept) -> ReadingModel:
        codes, elmo = kept.codes, kept.elmo
        layers, width = (0, 0) if elmo is None else (elmo.layers, elmo.width)
        return ReadingModel(config, len(codes.characters), len(codes.words), kept.vectors, layers, width)

    def describe(self, data: Dataset, kept: Kept) -> str:
        parts = "; ".join(_described(name, data.about[name]) for name in PARTS)
        share = _coverage(data, kept)["train"] if kept.vectors is not None else None
        vectors = f"; vectors for {share:.1%} of the words" if share is not None else ""
        elmo = f"; {kept.elmo.layers} layers of an ELMo" if kept.elmo is not None else ""
        return f"{data.about['source']}: {parts}{vectors}{elmo}"

    def check_fits(self, kept: Kept, data: Dataset, run: Run, options: EvaluateConfig) -> None:
        """ELMo reads the texts before their questions are answered: its bar is in nobody's way."""
        kept.read_ahead(data, options.part)

    def measure(
        self, loaded: LoadedModel, data: Dataset, options: EvaluateConfig, progress: Progress
    ) -> Score:
        part: Part = getattr(data, options.part)
        answers, losses = answer(loaded, data, options.part, progress)
        scored = [
            Scored.of(*asked)
            for asked in zip(part.asked, part.answers, (text for text, _ in answers), strict=True)
        ]
        if options.part == "test":  # the official script counts every question of the file
            scored += [Scored(question, golds) for question, golds in part.unread]
        loss = sum(losses) / len(losses) if losses else 0.0
        return Score({"questions": len(scored)}, {**figures(scored), "loss": loss}, details(scored))

    def predict(self, loaded: LoadedModel, options: PredictConfig) -> None:
        predict.run(_answerer(loaded), options)

    def answers(
        self, loaded: LoadedModel, requests: Sequence[Request], options: PredictConfig, details: bool = False
    ) -> list[Answer]:
        return predict.answer_texts(_answerer(loaded), requests, options.best, details)

    def views(self, answer: Answer) -> list[View]:
        return predict.views(answer)

    def example(self, loaded: LoadedModel) -> list[str]:
        return predict.example(loaded.config)

    def portable(self, loaded: LoadedModel, data: Dataset) -> Portable:
        from lrn.tasks.rc.portable import portable

        return portable(loaded, data)

    def cannot_leave(self, config: RCConfig) -> str:
        return "with an ELMo, which cannot leave with it; runs without --elmo can" if config.elmo else ""


def answer(
    loaded: LoadedModel, data: Dataset, name: str, progress: Progress
) -> tuple[list[tuple[str, int]], list[float]]:
    """The most probable answer to every question of a part with its place in the paragraph, and what is lost
    on those whose answer has a place; run in batches of like length."""
    part: Part = getattr(data, name)
    order = np.argsort(part.lengths, kind="stable")
    found: list[tuple[str, int]] = [("", 0)] * len(part)
    losses: list[float] = []
    for start in range(0, len(order), QUESTIONS):
        numbers = order[start : start + QUESTIONS]
        batch = loaded.kept.batch(data, name, numbers).to(loaded.device)
        reading: Reading = loaded.model(batch)
        first, last = (scores.float().log_softmax(-1) for scores in (reading.first, reading.last))
        starts, ends, _ = best_spans(first, last, loaded.config.longest_answer)
        for number, begin, end in zip(numbers, starts[:, 0].tolist(), ends[:, 0].tolist(), strict=True):
            found[number] = part.words(number, begin, end)
        placed = [row for row, number in enumerate(numbers) if tuple(part.spans[number]) != NOWHERE]
        if placed:
            lost = F.nll_loss(first[placed], batch.spans[placed, 0], reduction="none")
            lost += F.nll_loss(last[placed], batch.spans[placed, 1], reduction="none")
            losses += lost.tolist()
        progress((start + len(numbers)) / len(order))
    return found, losses


def _answerer(loaded: LoadedModel) -> predict.Answerer:
    return predict.answerer(loaded.model, loaded.kept.batch_of_words, loaded.config.longest_answer)


def _elmo(config: RCConfig, folder: Path) -> ElmoReader:
    return ElmoReader(folder, config.batch_size if config.elmo_carried else 0)


def _described(name: str, said: dict[str, int]) -> str:
    left = [
        f"{said[key]:,} {words}"
        for key, words in (("too_long", "too long"), ("misplaced", "with misplaced answers"))
        if said[key]
    ]
    return f"{name} {said['questions']:,} questions" + (f" ({', '.join(left)})" if left else "")


def _vectors(file: str, types: Sequence[str]) -> tuple[list[str], Tensor]:
    """The words that some type of the data is known as, and their vectors in the file."""
    wanted = {form for word in types for form in forms(word)} - set(SPECIALS)
    with bar("reading word vectors") as progress:
        words, table = read_table(file, wanted, progress)
    there = set(words)
    used = {known_form(word, there) for word in types}
    places = [place for place, word in enumerate(words) if word in used]
    return [words[place] for place in places], torch.from_numpy(table[places])


def _coverage(data: Dataset, kept: Kept) -> dict[str, float]:
    """The share of words, as they stand in the texts, that have a vector, by part."""
    known = kept.table(data).words >= len(SPECIALS)
    return {part: coverage(known, data.counts[:, number]) for number, part in enumerate(PARTS)}


TASK = RCTask()
