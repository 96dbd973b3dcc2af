"""The inference model as a task: Adam on batches of pairs of like length, with averaged weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lrn.nn import smoothed_loss
from lrn.report.views import View
from lrn.tasks.asking import Answer, Field, Request
from lrn.tasks.base import Loaded, Progress, Score, Task, TaskLearner
from lrn.tasks.nli import predict
from lrn.tasks.nli.config import LABELS, MULTINLI, SETTINGS, EvaluateConfig, NLIConfig, PredictConfig
from lrn.tasks.nli.context import FOLDER, Bert
from lrn.tasks.nli.data import PairBatch, Pairs, Part, encode, encode_words, read_builtin, read_folder
from lrn.tasks.nli.model import InferenceModel
from lrn.text.batches import in_buckets
from lrn.text.bert import Encoder
from lrn.text.spelling import SpellingTable
from lrn.text.spelt import SpeltWords, load_given, read_given, save_given
from lrn.text.store import Store
from lrn.text.vectors import coverage
from lrn.text.vocabulary import SPECIALS
from lrn.training import schedule
from lrn.training.config import PARTS
from lrn.training.learner import Loss, Place
from lrn.training.run import Run
from lrn.training.show import bar

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable

PAIRS = 64  # to a batch when scoring

Words = Sequence[Sequence[str]]
LoadedModel = Loaded[NLIConfig, "Kept", InferenceModel]


@dataclass(frozen=True)
class Kept:
    """What a run of the inference model keeps: its numbers of words and characters, and given vectors."""

    codes: SpeltWords
    vectors: Tensor | None = None  # [words but the special ones, width]
    bert: Bert | None = None
    bert_weights: bool = False  # whether a model that trains it begins with the folder's weights
    about: dict[str, Any] = field(default_factory=dict)
    _known: list[tuple[Pairs, SpellingTable]] = field(default_factory=list, repr=False, compare=False)

    def table(self, data: Pairs) -> SpellingTable:
        """Every type of word in the pairs by number; worked out once for the same pairs."""
        if not self._known or self._known[0][0] is not data:
            self._known[:] = [(data, self.codes.table(data.types))]
        return self._known[0][1]

    def batch(self, data: Pairs, name: str, numbers: NDArray[np.int64], longest: int = 0) -> PairBatch:
        """Make a batch of pairs of a part, their sentences cut to ``longest`` words unless that is 0."""
        part: Part = getattr(data, name)
        most = longest or None
        premises = [part.premises[number][:most] for number in numbers]
        hypotheses = [part.hypotheses[number][:most] for number in numbers]
        batch = encode(premises, hypotheses, self.table(data), part.labels[numbers])
        return batch if self.bert is None else self.bert.add(batch, data, name, numbers, longest)

    def batch_of_words(self, premises: Words, hypotheses: Words) -> PairBatch:
        """Make a batch of pairs that are given as their words."""
        batch = encode_words(premises, hypotheses, self.codes)
        return batch if self.bert is None else self.bert.add_words(batch, premises, hypotheses)

    def read_ahead(self, data: Pairs, name: str) -> None:
        """Let a BERT that stays as it is read a part of the data, which takes long, before it is needed."""
        if self.bert is not None and self.bert.frozen:
            self.bert.features(data, name)

    def save(self, folder: Path) -> None:
        self.codes.save(folder)
        if self.vectors is not None:
            save_given(folder, self.vectors)
        if self.bert is not None:
            self.bert.save(folder)


class NLILearner(TaskLearner[NLIConfig, Pairs, Kept, InferenceModel, PairBatch]):
    """The training of an inference model on labelled pairs."""

    def __init__(self, task: NLITask, loaded: LoadedModel, data: Pairs) -> None:
        super().__init__(task, loaded, data)
        self.lengths = cut_lengths(data.train, self.config.longest)
        for name in PARTS if self.config.test else PARTS[:2]:
            self.kept.read_ahead(data, name)

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        config, everything = self.config, np.arange(len(self.data.train))
        lengths = self.lengths.sum(0)  # of a pair: its premise's and its hypothesis's
        return in_buckets(everything, lengths, config.batch_size, seed=config.seed, epoch=epoch)

    def batch(self, piece: NDArray[np.int64], place: Place) -> PairBatch:
        return self.kept.batch(self.data, "train", place.of(piece), self.config.longest)

    def tokens(self, piece: NDArray[np.int64]) -> int:
        return int(self.lengths[:, piece].sum())

    def loss(self, batch: PairBatch) -> Loss:
        loss = smoothed_loss(self.model(batch), batch.labels, self.config.smoothing)
        return Loss(loss, loss)

    def optimizer(self) -> torch.optim.Optimizer:
        """One optimizer for all; BERT's weights may have a learning rate of their own."""
        bert, config = self.model.bert, self.config
        if bert is None or not config.bert_lr:
            return super().optimizer()
        its = {id(weight) for weight in bert.parameters()}
        groups: list[dict[str, Any]] = [
            {"params": [weight for weight in self.model.parameters() if id(weight) not in its]},
            {"params": list(bert.parameters()), "scale": config.bert_lr / config.lr},
        ]
        return schedule.optimizer(config.optimizer, groups, config)


class NLITask(Task[NLIConfig, Pairs, Kept, InferenceModel]):
    """Natural language inference: SNLI, MultiNLI, or pairs of our own making."""

    name, title = "nli", "Natural language inference"
    fields = (Field("premise", 1_000), Field("hypothesis", 1_000))
    monitor = "accuracy"
    settings = SETTINGS
    learner_type = NLILearner

    def read(self, config: NLIConfig, source: str | None, progress: Progress) -> Pairs:
        if source is None:
            return read_builtin(config.pairs, config.seed)
        return read_folder(Path(source).resolve(), progress)

    def first_kept(self, config: NLIConfig, data: Pairs) -> Kept:
        bert = None if config.bert is None else Bert(Path(config.bert), config.bert_frozen)
        if config.vectors is None:
            seen = zip(data.types, data.counts[:, 0].tolist(), strict=True)
            words = [word for word, count in seen if count >= config.min_count and word not in SPECIALS]
            return Kept(_codes(data, words), None, bert, True)
        with bar("reading word vectors") as progress:
            words, vectors = read_given(config.vectors, data.types, progress)
        kept = Kept(_codes(data, words), vectors, bert, True)
        kept.about["vectors"] = {
            "file": Path(config.vectors).name,
            "words": len(words),
            "width": vectors.shape[1],
            "coverage": _coverage(data, kept),
        }
        return kept

    def load_kept(self, config: NLIConfig, store: Store) -> Kept:
        codes = SpeltWords.load(store)
        vectors = load_given(store, codes) if config.vectors else None
        bert = Bert(store.folder(FOLDER), config.bert_frozen) if config.bert else None
        return Kept(codes, vectors, bert)

    def build(self, config: NLIConfig, kept: Kept) -> InferenceModel:
        codes, bert = kept.codes, kept.bert
        encoder = None
        if bert is not None and not bert.frozen:
            encoder = Encoder(bert.folder, kept.bert_weights)
        return InferenceModel(
            config,
            len(codes.characters),
            len(codes.words),
            kept.vectors,
            0 if bert is None else bert.width,
            encoder,
        )

    def describe(self, data: Pairs, kept: Kept) -> str:
        parts = "; ".join(
            f"{name} {data.about[name]['pairs']:,} pairs"
            + (f" ({dropped:,} without a label dropped)" if (dropped := data.about[name]["dropped"]) else "")
            for name in PARTS
        )
        share = _coverage(data, kept)["train"] if kept.vectors is not None else None
        vectors = f"; vectors for {share:.1%} of the words" if share is not None else ""
        return f"{data.about['source']}: {parts}{vectors}"

    def unread(self, learner: Any) -> list[str]:
        longest = learner.config.longest
        lost = cut_lengths(learner.data.train, 0) - learner.lengths  # [2, pairs]
        if not lost.any():
            return []
        return [f"--longest {longest} cuts {lost.sum():,} words off {(lost > 0).sum():,} train sentences"]

    def check_fits(self, kept: Kept, data: Pairs, run: Run, options: EvaluateConfig) -> None:
        """BERT reads the pairs before they are scored: one that is too long for it is an error."""
        kept.read_ahead(data, MULTINLI.get(options.part, options.part))

    def measure(self, loaded: LoadedModel, data: Pairs, options: EvaluateConfig, progress: Progress) -> Score:
        name = MULTINLI.get(options.part, options.part)
        part: Part = getattr(data, name)
        found = classify(loaded, data, name, progress)
        labels = torch.from_numpy(part.labels)
        guessed = found.argmax(1)
        right = (guessed == labels).double()
        loss = F.nll_loss(found.clamp_min(1e-30).log(), labels).item()
        details = {
            label: {"accuracy": round(100 * right[of_label].mean().item(), 2), "pairs": int(of_label.sum())}
            for label, of_label in ((name, labels == number) for number, name in enumerate(LABELS))
            if of_label.any()
        }
        return Score({"pairs": len(part)}, {"accuracy": 100 * right.mean().item(), "loss": loss}, details)

    def predict(self, loaded: LoadedModel, options: PredictConfig) -> None:
        answer = predict.answerer(loaded.model, loaded.kept.batch_of_words)
        predict.run(partial(predict.answer_texts, answer), options)

    def answers(
        self, loaded: LoadedModel, requests: Sequence[Request], options: PredictConfig, details: bool = False
    ) -> list[Answer]:
        answer = predict.answerer(loaded.model, loaded.kept.batch_of_words)
        return [predict.answer_texts(answer, before, after, details) for before, after in requests]

    def views(self, answer: Answer) -> list[View]:
        return predict.views(answer)

    def example(self, loaded: LoadedModel) -> list[str]:
        return predict.example(loaded.config)

    def portable(self, loaded: LoadedModel, data: Pairs) -> Portable:
        from lrn.tasks.nli.portable import portable

        return portable(loaded, data)

    def cannot_leave(self, config: NLIConfig) -> str:
        return "with a BERT, which cannot leave with it; runs without --bert can" if config.bert else ""


def cut_lengths(part: Part, longest: int) -> NDArray[np.int64]:
    """The lengths of premises and hypotheses ``[2, pairs]``, cut to ``longest`` words unless that is 0."""
    lengths = np.stack([part.premises.lengths, part.hypotheses.lengths])
    return np.minimum(lengths, longest) if longest else lengths


def classify(loaded: LoadedModel, data: Pairs, name: str, progress: Progress) -> Tensor:
    """Probabilities ``[pairs, labels]`` of a part, on the host; run in batches of like length."""
    part: Part = getattr(data, name)
    order = np.argsort(cut_lengths(part, 0).sum(0), kind="stable")
    found = torch.empty(len(part), len(LABELS))
    for start in range(0, len(order), PAIRS):
        numbers = order[start : start + PAIRS]
        batch = loaded.kept.batch(data, name, numbers).to(loaded.device)
        found[torch.from_numpy(numbers)] = loaded.model(batch).softmax(-1).to(found)
        progress((start + len(numbers)) / len(order))
    return found


def _codes(data: Pairs, words: list[str]) -> SpeltWords:
    counts = data.counts.sum(1).tolist()
    return SpeltWords(*SpeltWords.vocabularies(data.types, counts, words))


def _coverage(data: Pairs, kept: Kept) -> dict[str, float]:
    """The share of words, as they stand in the text, that have a vector, by part."""
    known = kept.table(data).words >= len(SPECIALS)
    return {part: coverage(known, data.counts[:, number]) for number, part in enumerate(PARTS)}


TASK = NLITask()
