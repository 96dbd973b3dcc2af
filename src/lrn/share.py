"""Models to give away: one file with all that a model needs, and the way back from it to predictions.

The file is a safetensors file: tensors by name and a header of texts, so that nothing in it can run. Beside
the weights it has what the run folder keeps for the model: texts like vocabularies in the header, given word
vectors as tensors; both under names that begin with ``kept/``. All of it is checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import lrn
from lrn import tasks
from lrn.checks import EXTRAS, choice, install, kind, nearest
from lrn.files import write_whole
from lrn.names import MODEL_FILE, TASKS
from lrn.tasks.asking import Answer, checked, chosen
from lrn.tasks.base import Loaded, Task
from lrn.text.store import Folder
from lrn.training import checkpoint, device
from lrn.training.checkpoint import BestState
from lrn.training.config import TrainConfig, from_dict
from lrn.training.run import BUILTIN, Run

FORMAT = "1"  # of the file; raised when an older version's can no longer be used
KEPT = "kept/"  # before the names of what is no weight


class TrainedModel(nn.Module):
    """A trained model that is ready for use: texts in, plain results out.

    Args:
        task: what the model was trained for.
        loaded: the model with its settings, and with what is kept for it.
        source: the file or folder that it is from.

    Attributes:
        model: the network itself.
        task: what it was trained for; ``task.name`` is ``doc``, for example.
        config: the settings of its training.
    """

    def __init__(self, task: Task[Any, Any, Any, Any], loaded: Loaded[Any, Any, Any], source: Path) -> None:
        super().__init__()
        self.model: nn.Module = loaded.model
        self.task, self.loaded, self.source = task, loaded, source
        self.config: TrainConfig = loaded.config

    def forward(self, batch: Any) -> Any:
        """What the network says of a batch of the task's own making; texts are for :meth:`predict`."""
        if isinstance(batch, str | list | tuple):
            raise TypeError("this is called with a batch; for texts call its method: model.predict([…])")
        return self.model(batch)

    def predict(self, texts: Any, *, details: bool = False, **options: Any) -> list[Answer]:
        """What the model says of each text, as a dictionary of texts and numbers.

        ======  ===============================  ===========================================================
        task    an entry of ``texts``            what is in the result
        ======  ===============================  ===========================================================
        doc     a document                       label, probabilities
        ner     a text                           words, tags, entities
        nli     (premise, hypothesis)            label, probabilities, premise, hypothesis
        rc      (text, question)                 text (the answer), start, end, probability, best
        mt      a sentence                       translation, score, best
        lm      the beginning of a text          continuation, next, perplexity, words
        ======  ===============================  ===========================================================

        Args:
            texts: a list; what its entries are depends on the task.
            details: also what was looked at or remembered.
            options: settings of `lrn predict` that change an answer: ``best=3`` (rc), ``beam=1``, ``nbest=4``
                (mt), ``words=20``, ``temperature=0.0`` (lm).
        """
        requests = checked(texts, self.task.fields)
        settings = chosen(self.task.settings.predict, self.task.choices, options)
        there = device.autocast(self.loaded.device, self.config.precision)
        with _hint(self.task.name), self._in_use(), torch.no_grad(), there:
            return self.task.answers(self.loaded, requests, settings, details)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Without dropout, for the time being."""
        before = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(before)

    def extra_repr(self) -> str:
        return f"task={self.task.name}, unit={self.config.unit}"


# Out ------------------------------------------------------------------------------------------------


def save(run: Run, path: Path) -> dict[str, Tensor]:
    """Write the best weights of a run, and all that they need, to a new file; returns the weights."""
    from safetensors.torch import save

    task = tasks.load(run.task)
    config = task.config_of(run)
    weights = BestState.load(run.file("best.ckpt"), run.task).model
    kept = _Noted(run.folder)
    header = {
        "lrn": lrn.__version__,
        "format": FORMAT,
        "task": run.task,
        "config": json.dumps(_without_places(run.config, type(config))),
    }
    try:
        task.load_kept(config, kept)
    except _ElsewhereError as other:
        header["elsewhere"] = other.args[0]
    header |= {KEPT + name: text for name, text in kept.texts.items()}
    tensors = weights | {KEPT + name: table for name, table in kept.tables.items()}
    content = save({name: value.contiguous() for name, value in tensors.items()}, header)
    try:
        write_whole(path, lambda out: out.write(content))
    except OSError as error:
        raise OSError(f"{error.strerror}; choose another place") from None
    return weights


class _ElsewhereError(Exception):
    """The run keeps a folder of somebody else's files, a BERT's for example, which no text or tensor is."""


class _Noted(Folder):
    """A run folder that notes what is read from it: that is what a model needs, no more and no less."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.texts: dict[str, str] = {}
        self.tables: dict[str, Tensor] = {}

    def text(self, name: str) -> str:
        self.texts[name] = super().text(name)
        return self.texts[name]

    def table(self, name: str, rows: int) -> Tensor:
        self.tables[name] = super().table(name, rows)
        return self.tables[name]

    def folder(self, name: str) -> Path:
        raise _ElsewhereError(name)


def _without_places(config: dict[str, Any], kind: type[TrainConfig]) -> dict[str, Any]:
    """Settings in which files and folders have their names, and no longer where they are on this machine."""
    named = {entry.name for entry in fields(kind) if entry.metadata.get("names") in ("file", "folder", "run")}
    return {
        name: Path(value).name or name if name in named and value and not value.startswith(BUILTIN) else value
        for name, value in config.items()
    }


# And in ---------------------------------------------------------------------------------------------


def load(path: str | Path, device: str | torch.device = "cpu") -> TrainedModel:
    """A model from a file that `lrn export` has written, or from a run folder, ready for use.

    Nothing in the file runs, and all of it is checked: a file that is truncated, of another program or of no
    such model is a ``ValueError``.

    Args:
        path: a file whose name ends in ``.safetensors``, or a run folder.
        device: where the model is to be.

    >>> load("model.onnx")
    Traceback (most recent call last):
    ValueError: model.onnx: expected a file that ends in .safetensors, or a run folder

    After `lrn export RUN model.safetensors`::

        model = lrn.load("model.safetensors")
        model.predict(["In my opinion it was not dull."])
    """
    path = Path(path)
    if path.is_dir() or not (path.suffix or path.exists()):  # what is not there has no ending of a file's
        run = Run.open(path)
        with _hint(run.task):
            task = tasks.load(run.task)
            return TrainedModel(task, task.load(run), path).eval().to(device)
    if path.suffix.lower() != MODEL_FILE:
        raise ValueError(f"{path}: expected a file that ends in {MODEL_FILE}, or a run folder")
    if not path.is_file():
        there = [str(file) for file in path.parent.glob(f"*{MODEL_FILE}")]
        raise FileNotFoundError(f"there is no file {path}{nearest(path, there)}")
    try:
        return _load(path).eval().to(device)
    except (RuntimeError, TypeError, LookupError, AssertionError) as error:  # of a model that cannot be
        first = str(error).strip().splitlines()[:1]
        raise ValueError(f"{path} cannot be used: {''.join(first)}") from None


def _load(path: Path) -> TrainedModel:
    with _hint():
        header, tensors = read(path)
    name = _task(path, header)
    with _hint(name):
        return _model(path, tasks.load(name), header, tensors)


def _model(
    path: Path, task: Task[Any, Any, Any, Any], header: dict[str, str], tensors: dict[str, Tensor]
) -> TrainedModel:
    """The model that a file holds, of a task whose name it says."""
    config = from_dict(task.settings.train, _config(path, header), f"{path}")
    if "elsewhere" in header:
        raise ValueError(
            f"{path} has weights alone: its run keeps a folder, {header['elsewhere']!r:.40}, without which "
            "they cannot be used; use the run folder"
        )
    weights = weights_of(tensors)
    checkpoint.check_weights(weights, str(path))
    kept = task.load_kept(config, _File(path, header, tensors))
    with torch.device("meta"), _Undrawn():  # no memory, however large the settings say that the model is
        shape = task.build(config, kept)
    checkpoint.check_fit(shape, weights, str(path))
    with torch.random.fork_rng(devices=[]):  # first weights are drawn, in vain
        model = task.build(config, kept)
    model.load_state_dict(weights)
    return TrainedModel(task, Loaded(config, kept, model), path)


@contextmanager
def _hint(task: str = "") -> Iterator[None]:
    """Say which extra brings a package that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or "pip install" in str(error):
            raise
        extra = task if task in EXTRAS.values() else EXTRAS.get(package, "train")
        said = f"to use this model takes {package}: {install(extra)}"
        raise ModuleNotFoundError(said, name=package) from None


class _Undrawn(TorchFunctionMode):
    """Where first weights would be drawn, tensors stay as they are.

    To draw on no device (meta) torch imports its compiler, which takes longer than all the rest.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("normal_", "uniform_", "orthogonal_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The header and the tensors of a safetensors file; anything else is a ``ValueError``."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from None


def weights_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights among the tensors of a file."""
    return {name: value for name, value in tensors.items() if not name.startswith(KEPT)}


def _task(path: Path, header: dict[str, str]) -> str:
    """The task that a file says it is of; an error unless this version can read the file."""
    if "task" not in header or "config" not in header:
        raise ValueError(f"{path} is not a model of lrn's: its header does not say of which task")
    if "format" not in header:
        raise ValueError(
            f"{path} has weights alone, as older versions of lrn exported them; export the run anew: "
            f"lrn export RUN {path.name}"
        )
    if header["format"] != FORMAT:
        raise ValueError(
            f"{path} was exported by lrn {header.get('lrn', 'of another version')!r:.20}, whose files this "
            f"version ({lrn.__version__}) does not read; export the run anew, or use that version"
        )
    try:
        return choice("task", header["task"], TASKS)
    except ValueError as error:
        raise ValueError(f"{path}: {error!s:.200}") from None


def _config(path: Path, header: dict[str, str]) -> dict[str, Any]:
    try:
        config = json.loads(header["config"])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: its settings are not JSON ({error!s:.100})") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} is damaged: its settings are no settings but {kind(config)}")
    return config


class _File:
    """The store that an exported file is."""

    def __init__(self, path: Path, header: dict[str, str], tensors: dict[str, Tensor]) -> None:
        self.path, self._header, self._tensors = path, header, tensors

    def text(self, name: str) -> str:
        found = self._header.get(KEPT + name)
        if found is None:
            raise ValueError(f"{self.path} cannot be used: its {name} is missing")
        return found

    def table(self, name: str, rows: int) -> Tensor:
        found = self._tensors.get(KEPT + name)
        if found is None:
            raise ValueError(f"{self.path} cannot be used: its {name} is missing")
        if found.dim() != 2 or len(found) != rows or found.dtype != torch.float32:
            raise ValueError(f"{self.place(name)} is damaged: it does not hold the vectors of {rows:,} words")
        checkpoint.check_weights({name: found}, str(self.path))
        return found

    def folder(self, name: str) -> Path:
        raise ValueError(f"{self.path} cannot be used: its folder {name} is missing")

    def place(self, name: str) -> str:
        return f"{self.path}: {name}"
