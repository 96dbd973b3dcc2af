"""ELMo beside the reading model: what its layers say of paragraphs and questions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.rc.data import Context, Dataset, Part, QuestionBatch
from lrn.text.batches import RowPacking
from lrn.text.elmo import Elmo
from lrn.text.elmo_folder import copy_folder, fingerprint, read_options
from lrn.text.features import Features, cached
from lrn.text.sentences import Sentences
from lrn.training.show import bar

FOLDER = "elmo"  # in the run folder
TEXTS = ("paragraphs", "questions")

Words = Sequence[Sequence[str]]
Layers = NDArray[Any]  # [length, layers, width] of one text


class ElmoReader:
    """An ELMo from a folder, which adds what it says of paragraphs and questions to batches.

    It stays as it is: what it says of a data set is computed once and kept on the disk, of every paragraph
    once, however many questions there are about it. Texts are read whole, each as one sentence.

    Args:
        folder: with ``options.json`` and ``weights.hdf5``.
        carried: how many texts of a data set it reads side by side, in their order and each in the states in
            which it ended the text before; paragraphs and questions have states of their own. 0 reads each
            text for itself, as texts that are given as their words always are.
    """

    def __init__(self, folder: Path, carried: int = 0) -> None:
        options = read_options(folder)
        self.folder, self.carried = folder, carried
        self.layers, self.width = options.kept_layers, options.width
        self._features: dict[tuple[str, str, str], Features] = {}
        self._last: tuple[Words, list[Layers]] = [], []

    @cached_property
    def model(self) -> Elmo:
        """The ELMo itself, which is not needed where all is known that it would say."""
        return Elmo(self.folder, carried=self.carried > 0)

    @cached_property
    def fingerprint(self) -> str:
        """What tells this ELMo from others."""
        return fingerprint(self.folder)

    def save(self, folder: Path) -> None:
        """Keep what a run needs: options and weights."""
        copy_folder(self.folder, folder / FOLDER)

    def read_part(self, data: Dataset, name: str) -> None:
        """Read all texts of a part, unless it was done before."""
        for texts in TEXTS:
            self.features(data, name, texts)

    def add(
        self, batch: QuestionBatch, data: Dataset, name: str, numbers: NDArray[np.int64]
    ) -> QuestionBatch:
        """Add to a batch of questions ``numbers`` of the part ``name`` what ELMo says of them."""
        part: Part = getattr(data, name)
        paragraphs, questions = (self.features(data, name, texts) for texts in TEXTS)
        return self._joined(
            batch,
            [self._apart(paragraphs.rows(number)) for number in part.about[numbers].tolist()],
            [self._apart(questions.rows(number)) for number in numbers.tolist()],
        )

    def add_words(self, batch: QuestionBatch, paragraphs: Words, questions: Words) -> QuestionBatch:
        """The same for texts that are given as their words; asked again, paragraphs are not read again."""
        if self._last[0] != paragraphs:
            self._last = paragraphs, self._read(paragraphs)
        return self._joined(batch, self._last[1], self._read(questions))

    def features(self, data: Dataset, name: str, texts: str) -> Features:
        """What ELMo says of all paragraphs, or all questions, of a part; computed once for the same texts."""
        key = (data.about["fingerprint"], name, texts)
        if key not in self._features:
            self._features[key] = self._cached(data, name, texts)
        return self._features[key]

    def _cached(self, data: Dataset, name: str, texts: str) -> Features:
        sentences: Sentences = getattr(getattr(data, name), texts)

        def compute(numbers: list[int]) -> tuple[list[Layers], None]:
            if numbers[0] == 0 and self.carried:
                self.model.forget()
            rows = [[data.types[token] for token in sentences[number]] for number in numbers]
            return [found.reshape(len(found), -1) for found in self.model.read(rows)], None

        count = len(sentences.lengths)
        steps = range(0, count, self.carried) if self.carried else ()
        with bar(f"ELMo reads {name}'s {texts}") as progress:
            return cached(
                f"{data.about['source']} {name} {texts} elmo",
                f"{_digest(data.types, sentences)} {self.fingerprint} {self.carried}",
                sentences.lengths,
                self.layers * self.width,
                compute,
                progress,
                order=[[*range(start, min(start + self.carried, count))] for start in steps],
            )

    def _read(self, texts: Words) -> list[Layers]:
        self.model.forget()
        return [*self.model.read(texts)]

    def _apart(self, rows: NDArray[Any]) -> Layers:
        return rows.reshape(len(rows), self.layers, self.width)

    def _joined(
        self, batch: QuestionBatch, paragraphs: Sequence[Layers], questions: Sequence[Layers]
    ) -> QuestionBatch:
        context = Context(_packed(paragraphs, batch.paragraphs), _packed(questions, batch.questions))
        return replace(batch, context=context)


def _packed(rows: Sequence[Layers], packing: RowPacking) -> Tensor:
    """Lay what is said of all texts' words in packed order, ``[layers, N, width]``."""
    flat = torch.from_numpy(np.concatenate(rows))  # [N, layers, width], one text after the other
    return flat.index_select(0, packing.from_row).float().transpose(0, 1).contiguous()


def _digest(types: Sequence[str], sentences: Sentences) -> str:
    """What changes when a word of the texts does; which texts are used depends on settings, too."""
    words = hashlib.sha256()
    for number in range(len(sentences.lengths)):
        words.update("\0".join(types[token] for token in sentences[number]).encode() + b"\n")
    return words.hexdigest()
