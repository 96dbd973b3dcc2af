"""The translation model as a task: Adam on batches of tokens, chosen by BLEU."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrn.files import check_place, write_text
from lrn.report.views import View
from lrn.tasks.asking import Answer, Field, Request, Settings, Slider
from lrn.tasks.base import Loaded, Progress, Score, Task, TaskLearner
from lrn.tasks.mt import predict
from lrn.tasks.mt.codes import Codes
from lrn.tasks.mt.config import SETTINGS, EvaluateConfig, MTConfig, PredictConfig
from lrn.tasks.mt.data import (
    Corpus,
    Numbered,
    PairBatch,
    number,
    pair_batch,
    read_builtin,
    read_folder,
    source_batch,
    without_broken,
)
from lrn.tasks.mt.model import Translator
from lrn.tasks.mt.score import judge
from lrn.tasks.mt.search import Hypothesis, Search, beam_search
from lrn.text.batches import by_tokens
from lrn.text.store import Store
from lrn.training.config import PARTS
from lrn.training.learner import Loss, Place
from lrn.training.run import Run
from lrn.training.show import bar

if TYPE_CHECKING:
    from lrn.tasks.portable import Portable

WHOLE = "train without broken pairs"  # where a run keeps them while it is used

LoadedModel = Loaded[MTConfig, "Kept", Translator]


@dataclass(frozen=True)
class Kept:
    """What a run of the translation model keeps: how its languages are written as numbers."""

    codes: Codes
    about: dict[str, Any] = field(default_factory=dict)
    _known: dict[str, tuple[Corpus, Numbered]] = field(default_factory=dict, repr=False, compare=False)

    def numbered(self, data: Corpus, name: str, progress: Progress = lambda share: None) -> Numbered:
        """A part of the data as numbers; worked out once for the same data."""
        if name not in self._known or self._known[name][0] is not data:
            self._known[name] = data, number(data.part(name), self.codes, progress)
        return self._known[name][1]

    def training(self, data: Corpus, config: MTConfig) -> Numbered:
        """The training part without broken pairs, as numbers."""
        if WHOLE not in self._known or self._known[WHOLE][0] is not data:
            with bar("cutting words into pieces") as progress:
                everything = number(data.part("train"), self.codes, progress)
            self._known[WHOLE] = data, without_broken(everything, config.longest, config.ratio)
        return self._known[WHOLE][1]

    @property
    def dropped(self) -> dict[str, int]:
        """How many pairs are not learnt from, by the reason."""
        return self._known[WHOLE][1].dropped if WHOLE in self._known else {}

    def save(self, folder: Path) -> None:
        self.codes.save(folder)


class MTLearner(TaskLearner[MTConfig, Corpus, Kept, Translator, PairBatch]):
    """The training of a translation model on pairs of sentences."""

    def __init__(self, task: MTTask, loaded: LoadedModel, data: Corpus) -> None:
        super().__init__(task, loaded, data)
        self.pairs = self.kept.training(data, self.config)
        if not len(self.pairs):
            raise ValueError(
                f"{data.where}: no pair is left for training; dropped: {_reasons(self.pairs.dropped)}"
            )
        self.lengths = self.pairs.lengths

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        config = self.config
        return by_tokens(self.lengths.max(0), config.batch_tokens, seed=config.seed, epoch=epoch)

    def batch(self, piece: NDArray[np.int64], place: Place) -> PairBatch:
        mine = place.of(piece)
        return pair_batch(
            [self.pairs.sources[place] for place in mine], [self.pairs.targets[place] for place in mine]
        )

    def tokens(self, piece: NDArray[np.int64]) -> int:
        return int(self.lengths[:, piece].sum())

    def loss(self, batch: PairBatch) -> Loss:
        """The mean over sentences of the means over their pieces."""
        loss = self.model.loss(batch, self.config.smoothing)
        return Loss(loss, loss)

    def validation_options(self) -> dict[str, Any]:
        return {"beam": 1}


class MTTask(Task[MTConfig, Corpus, Kept, Translator]):
    """Machine translation: a folder of parallel text, or sentences of our own making."""

    name, title = "mt", "Machine translation"
    fields = (Field("text", 1_000, lines=3),)
    choices: ClassVar[Settings] = {
        "beam": Slider("beam", 4, 1, 12),
        "nbest": Slider("translations", 3, 1, 12),
        "length_penalty": Slider("length penalty", 0.6, 0, 2, 0.1),
        "temperature": Slider("temperature", 0, 0, 2, 0.1),
        "seed": None,
        "batch_size": None,
        "tokenised": None,
    }
    monitor = "bleu"
    settings = SETTINGS
    learner_type = MTLearner

    def read(self, config: MTConfig, source: str | None, progress: Progress) -> Corpus:
        if source is None:
            return read_builtin(config.pairs, config.seed)
        return read_folder(Path(source).resolve(), config.source, config.target, progress)

    def first_kept(self, config: MTConfig, data: Corpus) -> Kept:
        for name in PARTS if config.test else PARTS[:2]:
            data.part(name)
        part, text = data.part("train"), data.text(config.text)
        with bar("learning pieces of words") as progress:
            codes = Codes.learn(
                (part.sources, part.targets), data.languages, text, config.merges, config.threshold, progress
            )
        kept = Kept(codes)
        pairs = kept.training(data, config)
        kept.about["pieces"] = {
            "text": text,
            "source": len(codes.source.vocabulary),
            "target": len(codes.target.vocabulary),
            "tokens": pairs.lengths.sum(1).tolist(),
            "dropped": pairs.dropped,
        }
        return kept

    def fitted(self, config: MTConfig, kept: Kept) -> MTConfig:
        return replace(config, text=kept.codes.source.text)

    def load_kept(self, config: MTConfig, store: Store) -> Kept:
        return Kept(Codes.load(store, (config.source, config.target), config.text))

    def build(self, config: MTConfig, kept: Kept) -> Translator:
        codes = kept.codes
        return Translator(config, len(codes.source.vocabulary), len(codes.target.vocabulary))

    def describe(self, data: Corpus, kept: Kept) -> str:
        there = [name for name in PARTS if name in data.about]
        parts = "; ".join(f"{name} {data.about[name]['pairs']:,} pairs" for name in there)
        dropped = f"; dropped: {_reasons(kept.dropped)}" if kept.dropped else ""
        source, target = kept.codes.source, kept.codes.target
        sizes = f"{len(source.vocabulary):,} and {len(target.vocabulary):,} pieces"
        return f"{data.where}, {source.text} text: {parts}{dropped}; {sizes}"

    def check_fits(self, kept: Kept, data: Corpus, run: Run, options: EvaluateConfig) -> None:
        """The part that is asked for is there, and so is the place to write the translations to."""
        data.part(options.part)
        if options.write is not None:
            check_place(Path(options.write))
            if Path(options.write).exists() and not options.overwrite:
                raise ValueError(f"{options.write} exists; choose another name, or add --overwrite")

    def measure(
        self, loaded: LoadedModel, data: Corpus, options: EvaluateConfig, progress: Progress
    ) -> Score:
        part, target = data.part(options.part), loaded.kept.codes.target
        pairs = loaded.kept.numbered(data, options.part)
        loss = loss_of(loaded, pairs)
        search = Search(options.beam, 1, options.length_penalty)
        began = time.perf_counter()
        found = translate(loaded, pairs, search, options.batch_size, progress)
        seconds = time.perf_counter() - began
        words = [target.words(best[0].pieces) for best in found]
        plain = [target.plain(row) for row in words]
        figures = judge(
            plain,
            [target.plain_line(line) for line in part.targets],
            words,
            [target.words_of_line(line) for line in part.targets],
        )
        if options.write is not None:
            write_text(Path(options.write), "".join(f"{line}\n" for line in plain))
        counts = {"pairs": len(part), "tokens": int(pairs.lengths[1].sum())}
        details = {
            "signatures": figures.signatures,
            "decoding": {"beam": options.beam, "ms_a_sentence": round(1e3 * seconds / len(part), 2)},
        }
        return Score(counts, {**figures.values, "loss": loss}, details)

    def predict(self, loaded: LoadedModel, options: PredictConfig) -> None:
        predict.run(predict.Lines(loaded.model, loaded.kept.codes, options), options)

    def answers(
        self, loaded: LoadedModel, requests: Sequence[Request], options: PredictConfig, details: bool = False
    ) -> list[Answer]:
        lines, size = predict.Lines(loaded.model, loaded.kept.codes, options), options.batch_size
        texts = [" ".join(text.split()) for (text,) in requests]  # a sentence is one line
        starts = range(0, len(texts), size)
        return [found for n in starts for found in lines.answers(texts[n : n + size], details)]

    def views(self, answer: Answer) -> list[View]:
        return predict.views(answer)

    def example(self, loaded: LoadedModel) -> list[str]:
        return [predict.example(loaded.config)]

    def portable(self, loaded: LoadedModel, data: Corpus) -> Portable:
        from lrn.tasks.mt.portable import portable

        return portable(loaded, data)


def in_batches(lengths: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Numbers of sequences of like length, so many at a time."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]


def loss_of(loaded: LoadedModel, pairs: Numbered, size: int = 64) -> float:
    """The mean loss of a piece, without smoothing; its exponential is the perplexity."""
    total = 0.0
    for numbers in in_batches(pairs.lengths[1], size):
        rows = [[side[n] for n in numbers] for side in (pairs.sources, pairs.targets)]
        batch = pair_batch(rows[0], rows[1]).to(loaded.device)
        total += float(loaded.model.losses(batch).sum())
    return total / float(pairs.lengths[1].sum())


def translate(
    loaded: LoadedModel, pairs: Numbered, search: Search, size: int, progress: Progress
) -> list[list[Hypothesis]]:
    """Translate the sources of a part, in batches of sentences of like length; a sentence of nothing is
    translated by nothing."""
    nothing = [Hypothesis((), 0.0, 0.0)]
    found: list[list[Hypothesis]] = [nothing for _ in range(len(pairs))]
    there = np.flatnonzero(pairs.sources.lengths)
    done = 0
    for places in in_batches(pairs.sources.lengths[there], size):
        numbers = there[places]
        batch = source_batch([pairs.sources[n] for n in numbers]).to(loaded.device)
        for place, best in zip(numbers, beam_search(loaded.model, batch, search), strict=True):
            found[place] = best
        done += len(numbers)
        progress(done / len(there))
    return found


def _reasons(dropped: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "none"


TASK = MTTask()
