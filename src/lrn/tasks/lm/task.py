"""The language model as a task: SGD that turns to averaged SGD, or Adam; then finetuning."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from torch import Tensor

from lrn.nn.softmax import EPSILON
from lrn.report.views import View
from lrn.tasks.asking import Answer, Field, Request, Settings, Slider
from lrn.tasks.base import Loaded, Progress, Score, Task, TaskLearner
from lrn.tasks.lm import predict
from lrn.tasks.lm.config import SETTINGS, EvaluateConfig, LMConfig, PredictConfig
from lrn.tasks.lm.data import (
    Corpus,
    Segment,
    batchify,
    read_builtin,
    read_folder,
    segments,
    unknown_share,
)
from lrn.tasks.lm.evaluate import Dynamic, dynamic_loss, gradient_statistics, mean_loss
from lrn.tasks.lm.model import LanguageModel, State, detach, regularisation
from lrn.text.batches import Batch
from lrn.text.store import Store
from lrn.text.vocabulary import UNKNOWN, Vocabulary
from lrn.training.checkpoint import BestState, load_weights
from lrn.training.config import PARTS
from lrn.training.fit import save_best
from lrn.training.learner import After, Loss, Place, Step
from lrn.training.run import Run
from lrn.training.schedule import optimizer
from lrn.units import map_state

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable

VOCABULARY = "vocabulary.json"

LoadedModel = Loaded[LMConfig, "Kept", LanguageModel]


@dataclass(frozen=True)
class Kept:
    """What a run of the language model keeps: its vocabulary."""

    vocabulary: Vocabulary
    about: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        self.vocabulary.save(folder / VOCABULARY)


class Piece(NamedTuple):
    """A segment of the text, and the group of columns in which it is run at a time."""

    segment: Segment
    group: int


@dataclass(frozen=True)
class TextBatch(Batch):
    """A segment of a group of columns, ``[T, B]``, and the words that follow each of its words."""

    text: Tensor
    target: Tensor
    group: int


def _check_length(data: Corpus, what: str, stream: Tensor, flag: str, columns: int, least: int) -> None:
    """An error, now and not after the first epoch, unless each column has ``least`` words."""
    if len(stream) < least * columns:
        raise ValueError(
            f"{data.about['source']}: the {what} has {len(stream):,} words, and {columns:,} columns need "
            f"{least * columns:,}: lower --{flag}, or add text"
        )


class LMLearner(TaskLearner[LMConfig, Corpus, Kept, LanguageModel, TextBatch]):
    """The training of a language model on a corpus."""

    largest_loss = -math.log(EPSILON)  # of a word that is given no probability at all

    def __init__(self, task: LMTask, loaded: LoadedModel, data: Corpus) -> None:
        super().__init__(task, loaded, data)
        config = self.config
        stream = data.train[: round(len(data.train) * config.fraction)]
        share = f" with --fraction {config.fraction:g}" if config.fraction < 1 else ""
        _check_length(data, f"training text{share}", stream, "batch_size", config.batch_size, 3)
        _check_length(data, "validation text", data.valid, "valid_columns", config.valid_columns, 2)
        self.text = batchify(stream, config.batch_size)
        self.columns = config.batch_size // (config.devices * config.nodes)  # of a process
        self.groups = math.ceil(self.columns / (config.small_batch or self.columns))
        self.losses: list[float] = []  # of validation, one an epoch
        self.averaging = config.stage == "finetune"
        self.states: list[State | None] = []

    def plan(self, epoch: int) -> list[Segment]:
        config = self.config
        return segments(
            self.text.shape[0], base=config.bptt, delta=config.delta, seed=config.seed, epoch=epoch
        )

    def split(self, work: Segment) -> list[Piece]:
        return [Piece(work, group) for group in range(self.groups)]

    def batch(self, piece: Piece, place: Place) -> TextBatch:
        mine = self.text.chunk(place.world, 1)[place.rank]
        text = mine.split(self.config.small_batch or mine.shape[1], 1)[piece.group]
        first, last = piece.segment.start, piece.segment.start + piece.segment.length
        return TextBatch(text[first:last], text[first + 1 : last + 1], piece.group)

    def _words(self, piece: Piece) -> int:
        """Words of a process's batch."""
        size = self.config.small_batch or self.columns
        return min(size, self.columns - piece.group * size) * piece.segment.length

    def shares(self, step: Step, place: Place) -> list[float]:
        whole = sum(map(self._words, step.pieces))  # all processes have equally many columns
        return [self._words(piece) / whole for piece in step.pieces]

    def tokens(self, piece: Piece) -> int:
        return self._words(piece) * self.config.devices * self.config.nodes

    def begin_epoch(self) -> None:
        self.states = []

    def loss(self, batch: TextBatch) -> Loss:
        self.states = self.states or [None] * self.groups
        features, after = self.model(batch.text, self.states[batch.group])
        self.states[batch.group] = detach(after)
        loss = self.model.loss(features, batch.target)
        return Loss(loss + regularisation(features, self.config.ar, self.config.tar), loss)

    def optimizer(self) -> Any:
        return optimizer(
            "asgd" if self.averaging else self.config.optimizer, self.model.parameters(), self.config
        )

    def rate(self, step: Step) -> float:
        different = step.pieces[:: self.groups]
        scale: float = sum(piece.segment.scale for piece in different) / len(different)
        fallen = 1.0 if self.averaging else self.fallen(step)
        return self.config.lr * scale * fallen

    def validation_options(self) -> dict[str, Any]:
        return {"columns": self.config.valid_columns}

    def end_epoch(self, figures: dict[str, float]) -> After:
        """The switch to averaged SGD or, when finetuning, the end: no progress for ``nonmono`` epochs."""
        super().end_epoch(figures)
        stuck = no_progress(self.losses, figures["loss"], self.config.nonmono)
        self.losses.append(figures["loss"])
        if self.config.stage == "finetune":
            return After.STOP if stuck else After.GO_ON
        if stuck and self.config.optimizer == "sgd" and not self.averaging:
            self.averaging = True
            return After.NEW_OPTIMIZER
        return After.GO_ON

    def extra_state(self) -> dict[str, Any]:
        own = {"losses": self.losses, "averaging": self.averaging, "states": self.states}
        return super().extra_state() | own

    def load_extra_state(self, state: dict[str, Any]) -> None:
        super().load_extra_state(state)
        losses, averaging, states = (state.get(name) for name in ("losses", "averaging", "states"))
        if not isinstance(losses, list) or not all(isinstance(loss, float) for loss in losses):
            raise ValueError(f"the saved state's losses of validation are no numbers: {losses!r:.40}")
        if not isinstance(averaging, bool) or not isinstance(states, list):
            raise ValueError("the saved state does not say where the language model was in its text")
        if len(states) not in (0, self.groups):
            raise ValueError(f"the saved state has states of {len(states)} groups, not of {self.groups}")
        self.losses, self.averaging = losses, averaging
        self.states = [None if entry is None else self._checked(entry) for entry in states]

    def _checked(self, state: Any) -> State:
        """A saved state of all layers, where the model is; a ValueError if it is none of this model's."""
        if not isinstance(state, list) or len(state) != len(self.model.layers):
            raise ValueError(f"the saved state is not one of {len(self.model.layers)} layers")
        for layer, entry in zip(self.model.layers, state, strict=True):
            parts = entry if isinstance(entry, tuple) else (entry,)
            shapes = [tuple(part.shape) if isinstance(part, Tensor) else None for part in parts]
            width: Any = layer.hidden_size
            if any(shape is None or shape[::2] != (1, width) for shape in shapes):
                raise ValueError(f"the saved state of a layer of width {width} is {shapes}")
        return [map_state(lambda part: part.to(self.loaded.device), entry) for entry in state]


def no_progress(earlier: list[float], loss: float, patience: int) -> bool:
    """NT-ASGD's trigger: worse than the best of all earlier epochs but the last ``patience``.

    >>> no_progress([5.0, 4.0, 4.1, 4.2], 4.3, patience=2)
    True
    >>> no_progress([5.0, 4.0, 3.9, 3.8], 3.7, patience=2)
    False
    """
    return len(earlier) > patience and loss > min(earlier[:-patience])


class LMTask(Task[LMConfig, Corpus, Kept, LanguageModel]):
    """Language modelling: Penn Treebank, WikiText-2, Python's own documentation, or any text."""

    name, title = "lm", "Language modelling"
    fields = (Field("text", 10_000, lines=3, blank=False),)
    choices: ClassVar[Settings] = {
        "words": Slider("words", 30, 1, 200),
        "temperature": Slider("temperature", 0.8, 0, 2, 0.1),
        "top_k": Slider("likeliest words only", 0, 0, 100),
        "seed": Slider("seed", 1, 1, 100),
        "unknown": None,
    }
    monitor = "loss"
    settings = SETTINGS
    learner_type = LMLearner

    def read(self, config: LMConfig, source: str | None, progress: Progress) -> Corpus:
        if source is None:
            corpus = read_builtin(config.min_count)
        else:
            corpus = read_folder(Path(source).resolve(), progress)
        digest = hashlib.sha256("\n".join(corpus.vocabulary.words).encode())
        for stream in (corpus.train, corpus.valid, corpus.test):
            digest.update(stream.numpy().tobytes())
        return replace(corpus, about=corpus.about | {"fingerprint": digest.hexdigest()})

    def first_kept(self, config: LMConfig, data: Corpus) -> Kept:
        return Kept(data.vocabulary)

    def load_kept(self, config: LMConfig, store: Store) -> Kept:
        return Kept(Vocabulary.read(store.text(VOCABULARY), store.place(VOCABULARY)))

    def build(self, config: LMConfig, kept: Kept) -> LanguageModel:
        return LanguageModel(config, len(kept.vocabulary))

    def describe(self, data: Corpus, kept: Kept) -> str:
        train, valid, test = (f"{n:,}" for n in data.about["tokens"].values())
        shares = (f"{part} {unknown_share(getattr(data, part), data.vocabulary):.1%}" for part in PARTS)
        unknown = f"; {UNKNOWN}: {', '.join(shares)}" if UNKNOWN in data.vocabulary else ""
        sizes = f"{train} / {valid} / {test} words, {data.about['types']:,} types"
        return f"{data.about['source']}: {sizes}{unknown}"

    def start(self, learner: LMLearner) -> None:
        """Finetuning begins with the best weights of another run, whose loss it has to beat."""
        if learner.config.stage != "finetune":
            return
        first = Run.open(learner.config.start or "")
        if first.task != self.name:
            raise ValueError(f"{first.folder} is a run of task {first.task!r}; finetuning needs one of 'lm'")
        if Vocabulary.load(first.file(VOCABULARY)) != learner.kept.vocabulary:
            raise ValueError(f"{first.folder} was trained on other data than this: their vocabularies differ")
        if self.config_of(first).residual != learner.config.residual:  # which no weight tells
            differ = "without, not with" if learner.config.residual else "with, not without"
            raise ValueError(f"{first.folder} was trained {differ} --residual")
        load_weights(learner.model, BestState.load(first.file("best.ckpt"), self.name).model)
        learner.progress.best = learner.validate()["loss"]
        learner.about["start"] = str(first.folder)

    def begin(self, learner: LMLearner, run: Run) -> None:
        if learner.config.stage == "finetune":  # the best so far are the weights it starts from
            loss = learner.progress.best
            save_best(run, learner, {"loss": loss, "perplexity": perplexity(loss)})

    def check_fits(self, kept: Kept, data: Corpus, run: Run, options: EvaluateConfig) -> None:
        if data.vocabulary != kept.vocabulary:
            raise ValueError(
                f"{run.folder} was trained with another vocabulary than this data's; "
                f"for any text file: lrn predict {run.folder} --files FILE"
            )

    def measure(
        self, loaded: LoadedModel, data: Corpus, options: EvaluateConfig, progress: Progress
    ) -> Score:
        stream: Tensor = getattr(data, options.part)
        if options.words:
            stream = stream[: options.words + 1]
        columns = 1 if options.dynamic else options.columns
        share = round(unknown_share(stream, loaded.kept.vocabulary), 4)
        counts = {"words": (len(stream) // columns - 1) * columns, "unknown_share": share}
        if not options.dynamic:
            loss = mean_loss(loaded.model, stream, columns, progress=progress)
            return Score(counts, {"loss": loss, "perplexity": perplexity(loss)})
        dynamic = Dynamic(options.rate, options.decay, options.epsilon)
        statistics = gradient_statistics(loaded.model, data.train, dynamic, progress)
        loss = dynamic_loss(loaded.model, stream, statistics, dynamic, progress)
        settings = {"rate": options.rate, "decay": options.decay, "epsilon": options.epsilon}
        return Score(counts, {"loss": loss, "perplexity": perplexity(loss)}, {"dynamic": settings})

    def predict(self, loaded: LoadedModel, options: PredictConfig) -> None:
        predict.run(loaded.model, loaded.kept.vocabulary, options)

    def answers(
        self, loaded: LoadedModel, requests: Sequence[Request], options: PredictConfig, details: bool = False
    ) -> list[Answer]:
        vocabulary = loaded.kept.vocabulary
        return [predict.answer(loaded.model, vocabulary, text, options, details) for (text,) in requests]

    def views(self, answer: Answer) -> list[View]:
        return predict.views(answer)

    def example(self, loaded: LoadedModel) -> list[str]:
        return [predict.example(loaded.config, loaded.kept.vocabulary)]

    def portable(self, loaded: LoadedModel, data: Corpus) -> Portable:
        from lrn.tasks.lm.portable import portable

        return portable(loaded, data)


def perplexity(loss: float) -> float:
    """The perplexity of a mean loss; a model that is quite wrong has a large one, not an infinite one."""
    return math.exp(min(loss, 700))


TASK = LMTask()
