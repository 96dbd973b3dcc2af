"""The contract of a task: what a task says, and what the commands do with it, written once for all tasks.

A task says how its data is read, what is made of it once and kept in the run folder (vocabularies, given
vectors), what model stands on that, what is lost on a batch, how a model is scored, and how it is used. From
that follow preparing a training, resuming it, loading what it has learnt, testing and evaluating it.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from lrn import own
from lrn.report.views import View
from lrn.tasks import paper
from lrn.tasks.asking import Answer, Field, Request, Settings
from lrn.tasks.settings import TaskSettings
from lrn.text.store import Folder, Store
from lrn.training import checkpoint, device
from lrn.training.checkpoint import BestState, TrainingState, load_weights
from lrn.training.config import EvaluateConfig, TrainConfig, from_dict
from lrn.training.learner import Batch, Learner
from lrn.training.run import Run
from lrn.training.show import bar

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable
    from lrn.training.loop import Loop

Progress = Callable[[float], None]  # is told the share that is done


class Data(Protocol):
    """A data set: ``about`` says where it comes from and how large it is, and has its ``fingerprint``."""

    @property
    def about(self) -> dict[str, Any]: ...


class Kept(Protocol):
    """What is made of the data once and kept in the run folder; ``about`` is what about.json says of it."""

    @property
    def about(self) -> dict[str, Any]: ...

    def save(self, folder: Path) -> None: ...


@dataclass(frozen=True)
class Score:
    """How good a model is on a part of the data.

    Args:
        counts: how much was scored, and what share of it counts for little.
        figures: by name; they become ``test_NAME`` in metrics.json and ``valid_NAME`` there and in log.csv.
        details: more, by some division of the data.
    """

    counts: Mapping[str, float]
    figures: dict[str, float]
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**self.counts, **rounded(self.figures), **self.details}


def rounded(figures: dict[str, float], before: str = "") -> dict[str, float]:
    """Figures as they are written down, with something ``before`` their names."""
    return {before + name: round(value, 5 if name == "loss" else 4) for name, value in figures.items()}


ConfigT = TypeVar("ConfigT", bound=TrainConfig)
DataT = TypeVar("DataT", bound=Data)
KeptT = TypeVar("KeptT", bound=Kept)
ModelT = TypeVar("ModelT", bound=nn.Module)


@dataclass(frozen=True)
class Loaded(Generic[ConfigT, KeptT, ModelT]):
    """A model with its settings, and with what was kept for it."""

    config: ConfigT
    kept: KeptT
    model: ModelT

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device


class TaskLearner(Learner[ConfigT, ModelT, Batch], Generic[ConfigT, DataT, KeptT, ModelT, Batch]):
    """A task's training: its model on its data. Subclasses say what an epoch, a batch and the loss are."""

    def __init__(
        self, task: Task[ConfigT, DataT, KeptT, ModelT], loaded: Loaded[ConfigT, KeptT, ModelT], data: DataT
    ) -> None:
        super().__init__(loaded.config, loaded.model)
        self.task, self.loaded, self.data, self.kept = task, loaded, data, loaded.kept
        self.monitor, self.more_is_better = task.monitor, not task.lower_is_better
        self.about: dict[str, Any] = {"data": data.about, **loaded.kept.about}

    def validate(self) -> dict[str, float]:
        options = self.task.settings.evaluate(part="valid", **self.validation_options())
        return self.task.score(self.loaded, self.data, options).figures

    def validation_options(self) -> dict[str, Any]:
        """Options of the evaluation that differ from the usual ones when it is the validation."""
        return {}


class Task(ABC, Generic[ConfigT, DataT, KeptT, ModelT]):
    """A task. Its subclasses say what differs; ``tasks/ner/task.py`` is the shortest one."""

    name: ClassVar[str]
    title: ClassVar[str]  # the name in words
    fields: ClassVar[tuple[Field, ...]]  # the texts of a request
    choices: ClassVar[Settings] = {}  # settings of a prediction that change an answer
    monitor: ClassVar[str]  # the figure of a score by which the best weights are chosen
    tests_last_epoch: ClassVar[bool] = False  # as the paper does, beside the best on validation
    settings: ClassVar[TaskSettings]
    learner_type: ClassVar[type[TaskLearner[Any, Any, Any, Any, Any]]]

    @property
    def metric(self) -> str:
        """The figure that counts in the end, as it stands in metrics.json."""
        return self.settings.metric

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower figure is better."""
        return self.settings.lower_is_better

    @property
    def curve(self) -> str:
        """The column of log.csv that shows the figure during training."""
        return self.settings.curve

    def printed(self, config: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
        """The paper's figure by unit for a preset on this very data; nothing where the paper has none."""
        return self.settings.printed(config, data)

    # What a task says --------------------------------------------------------------------------

    @abstractmethod
    def read(self, config: ConfigT, source: str | None, progress: Progress) -> DataT:
        """Read the data at ``source``: a folder, the name of built-in data, or None for the usual one."""

    @abstractmethod
    def first_kept(self, config: ConfigT, data: DataT) -> KeptT:
        """Make of the data what the run folder will keep."""

    @abstractmethod
    def load_kept(self, config: ConfigT, store: Store) -> KeptT:
        """Read what a run folder, or a file exported from it, keeps."""

    @abstractmethod
    def build(self, config: ConfigT, kept: KeptT) -> ModelT:
        """A model with new weights."""

    @abstractmethod
    def describe(self, data: DataT, kept: KeptT) -> str:
        """Say in a line what data this is."""

    @abstractmethod
    def measure(
        self, loaded: Loaded[ConfigT, KeptT, ModelT], data: DataT, options: Any, progress: Progress
    ) -> Score:
        """Score a model on the part of the data that the options name. Callers use :meth:`score`."""

    @abstractmethod
    def predict(self, loaded: Loaded[ConfigT, KeptT, ModelT], options: Any) -> None:
        """Use a model on what the user gives, and print what it says."""

    @abstractmethod
    def answers(
        self,
        loaded: Loaded[ConfigT, KeptT, ModelT],
        requests: Sequence[Request],
        options: Any,
        details: bool = False,
    ) -> list[Answer]:
        """What a model says to each request: `lrn predict`, `lrn.load` and `lrn serve` all ask this.

        With ``details`` it also says what was remembered or looked at. It is called in evaluation mode,
        without gradients and in the model's precision.
        """

    @abstractmethod
    def views(self, answer: Answer) -> list[View]:
        """What a page shows of an answer with details."""

    @abstractmethod
    def example(self, loaded: Loaded[ConfigT, KeptT, ModelT]) -> list[str]:
        """A request to begin with, one that the model may well have an answer to; "" where none is known."""

    def printed_elsewhere(self, config: dict[str, Any], data: dict[str, Any]) -> tuple[str, dict[str, str]]:
        """The paper's figure by unit whatever preset and data there are, and before that what it is of."""
        return paper.elsewhere(self.name, config.get("preset", ""))

    def check_fits(self, kept: KeptT, data: DataT, run: Run, options: Any) -> None:
        """Raise a ValueError if a run's model cannot be evaluated on this data as the options say."""

    def warnings(self, data: DataT, kept: KeptT) -> list[str]:
        """Say what a user of this data should know before trusting a figure, a sentence each.

        They are said when a training begins, and by `lrn evaluate`.
        """
        return []

    def unread(self, learner: Any) -> list[str]:
        """Say what of the data a training never reads, a clause each."""
        return []

    def fitted(self, config: ConfigT, kept: KeptT) -> ConfigT:
        """The settings of a new run with what only its data decides."""
        return config

    def start(self, learner: Any) -> None:
        """Called before a new training is begun, for weights that do not start at random."""

    def begin(self, learner: Any, run: Run) -> None:
        """Called when a new run folder is being filled, for what belongs there beside what is kept."""

    def remembered(self, run: Run, text: str) -> Any:
        """What the run's model remembers of a text, for `lrn memory`; only some tasks can say."""
        raise ValueError(f"{run.folder} is a run of {self.name}, which cannot say what it remembers")

    def remembered_example(self, run: Run) -> Any | None:
        """The same for an example of the test data; None where there is none."""
        return None

    def portable(self, loaded: Loaded[ConfigT, KeptT, ModelT], data: DataT) -> Portable:
        """The model as graphs of plain tensors, with examples of the data: see :mod:`lrn.tasks.portable`."""
        raise ValueError(f"{self.name} has no graphs for other programs")

    def cannot_leave(self, config: ConfigT) -> str:
        """Why a model of such settings cannot be had as graphs of plain tensors; "" if it can."""
        return ""

    # What follows ------------------------------------------------------------------------------

    def prepare(self, config: ConfigT) -> TaskLearner[Any, Any, Any, Any, Any]:
        """A training that has not begun."""
        data = self._read(config, config.data)
        kept = self.first_kept(config, data)
        learner = self.learner_on(self.fitted(config, kept), data, kept)
        self.start(learner)
        learner.about["remarks"] = [*self.unread(learner), *self.warnings(data, kept)]
        return learner

    def resume(self, run: Run, moved: str | None = None) -> TaskLearner[Any, Any, Any, Any, Any]:
        """The training of a run, to be restored from its last saved state."""
        config = self.config_of(run)
        data = self._read(config, run.data(moved))
        run.check_data(data.about["fingerprint"])
        return self.learner_on(config, data, self.load_kept(config, Folder(run.folder)))

    def _read(self, config: ConfigT, source: str | None) -> DataT:
        with bar("reading data") as progress:
            return self.read(config, source, progress)

    def learner_on(self, config: ConfigT, data: DataT, kept: KeptT) -> TaskLearner[Any, Any, Any, Any, Any]:
        """A training of a new model on data that is there already."""
        torch.manual_seed(config.seed)
        return self.learner_type(self, Loaded(config, kept, self.build(config, kept)), data)

    def headline(self, learner: TaskLearner[ConfigT, DataT, KeptT, ModelT, Any]) -> str:
        """Say what is about to be trained."""
        config, parameters = learner.config, sum(p.numel() for p in learner.model.parameters())
        about = "; ".join([self.describe(learner.data, learner.kept), *self.unread(learner)])
        return f"{config.unit}, preset {config.preset}, {parameters:,} parameters; {about}"

    def fill(self, learner: Any, run: Run, state: dict[str, Any]) -> None:
        """Put into a new run folder what is there from the start, the state to resume from included."""
        learner.kept.save(run.folder)
        self.begin(learner, run)
        checkpoint.save(run.last, self.name, state)

    def config_of(self, run: Run) -> ConfigT:
        """The settings of a run."""
        config: ConfigT = from_dict(self.settings.train, run.config)
        return config

    def empty(self, run: Run) -> Loaded[ConfigT, KeptT, ModelT]:
        """A model of a run's shape with new weights."""
        return self.empty_of(self.config_of(run), Folder(run.folder))

    def empty_of(self, config: ConfigT, store: Store) -> Loaded[ConfigT, KeptT, ModelT]:
        """A model with new weights of these settings, on what was kept for it."""
        kept = self.load_kept(config, store)
        return Loaded(config, kept, self.build(config, kept))

    def load(self, run: Run, accelerator: str = "cpu", last: bool = False) -> Loaded[ConfigT, KeptT, ModelT]:
        """The best weights of a run, or those that were tested after its last epoch, ready for use."""
        path = run.file("last.ckpt" if last else "best.ckpt")
        loaded = self.empty(run)
        if last:
            state = TrainingState.load(path, self.name)
            load_weights(loaded.model, state.model)
            _use_average(loaded.model, state)
        else:
            load_weights(loaded.model, BestState.load(path, self.name).model)
        loaded.model.to(device.choose(accelerator)).eval()
        return loaded

    def score(
        self, loaded: Loaded[ConfigT, KeptT, ModelT], data: DataT, options: Any, what: str = ""
    ) -> Score:
        """Score a model: validation, the test at the end of a training and `lrn evaluate` all call this.

        ``what`` stands beside a bar; without it this is the validation of a training, whose line says enough.
        """
        model, training = loaded.model, loaded.model.training
        model.eval()
        try:
            there = device.autocast(loaded.device, loaded.config.precision)
            with bar(what or "validating", alone=bool(what)) as progress, torch.no_grad(), there:
                return self.measure(loaded, data, options, progress)
        finally:
            model.train(training)

    def evaluate(self, run: Run, options: EvaluateConfig) -> dict[str, Any]:
        """Figures of a run's model on a part of the data."""
        loaded = self.load(run, options.accelerator, options.last)
        data = self._read(loaded.config, run.data(options.data))
        self.check_fits(loaded.kept, data, run, options)
        for text in self.warnings(data, loaded.kept):
            print(f"warning: {text}", file=sys.stderr)
        return {"part": options.part, **self.score(loaded, data, options, "evaluating").to_json()}

    def leaving(self, run: Run, moved: str | None = None) -> Portable:
        """What leaves a run: the graphs of its best weights, checked on its own data."""
        config = self.config_of(run)
        reason = self.cannot_leave(config)
        if own.is_own(config.unit):
            reason = f"with {config.unit}, a unit of your own, whose walk is a loop in Python"
        if reason:
            raise ValueError(f"{run.folder} is a run of {self.name} {reason}")
        loaded = self.load(run)
        data = self._read(loaded.config, run.data(moved))
        with torch.no_grad():
            return self.portable(loaded, data)

    def finish(self, loop: Loop, run: Run) -> dict[str, Any]:
        """Test what a training has come to, and write it down: the best weights and, where the paper does so,
        those of the last epoch."""
        from lrn.training.fit import figures_of

        learner: Any = loop.learner
        options = self.settings.evaluate(part="test")
        found: dict[str, Any] = {"unit": learner.config.unit, **figures_of(learner)}
        if self.tests_last_epoch and learner.config.test:
            with learner.averaged_weights(loop.optimizer):
                last = rounded(self.score(learner.loaded, learner.data, options, "testing").figures, "test_")
            found[f"{self.metric}_last_epoch"] = last[self.metric]
        if run.best.exists():
            best = BestState.load(run.best, self.name)
            load_weights(learner.model, best.model)
            found |= rounded(best.figures, "valid_")
            if learner.config.test:
                score = self.score(learner.loaded, learner.data, options, "testing")
                found |= rounded(score.figures, "test_") | ({"test": score.details} if score.details else {})
        run.add_metrics(**found)
        return found


def _use_average(model: nn.Module, state: TrainingState) -> None:
    """Give a model the averaged weights of a saved state, where there are any."""
    parameters: list[Tensor] = list(model.parameters())
    state.check_average(parameters)
    average = state.evaluated()
    if average:
        with torch.no_grad():
            torch._foreach_copy_(parameters, average)
