"""BERT beside the inference model: its word pieces, and what it says of pairs if it stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.nli.data import Context, PairBatch, Pairs, Part
from lrn.text.batches import Packing
from lrn.text.bert import Encoder, WordPieces, word_features
from lrn.text.bert_folder import copy_folder, fingerprint, width
from lrn.text.features import Features, cached
from lrn.training.show import bar

FOLDER = "bert"  # in the run folder

Words = Sequence[Sequence[str]]


class Bert:
    """A BERT from a folder, which adds what the model needs of it to batches.

    Args:
        folder: in Hugging Face's format.
        frozen: whether it stays as it is: then its features of a data set are computed once; else the model
            trains it, and batches have its word pieces.
    """

    def __init__(self, folder: Path, frozen: bool) -> None:
        self.folder, self.frozen = folder, frozen
        self.pieces = WordPieces(folder)
        self.width = width(folder)
        self._features: dict[tuple[str, str], Features] = {}

    @cached_property
    def encoder(self) -> Encoder:
        """The BERT itself, for one that stays as it is."""
        return Encoder(self.folder).eval()

    def save(self, folder: Path) -> None:
        """Keep what a run needs: the weights only where no checkpoint has them."""
        copy_folder(self.folder, folder / FOLDER, weights=self.frozen)

    def add(
        self, batch: PairBatch, data: Pairs, name: str, numbers: NDArray[np.int64], longest: int = 0
    ) -> PairBatch:
        """Add to a batch of pairs ``numbers`` of the part ``name`` what BERT reads or says of them."""
        part: Part = getattr(data, name)
        most = longest or None
        if not self.frozen:
            premises, hypotheses = (
                [[data.types[token] for token in rows[number][:most]] for number in numbers]
                for rows in (part.premises, part.hypotheses)
            )
            return replace(batch, pieces=self.pieces.pairs(premises, hypotheses))
        features, ends = self.features(data, name), part.premises.lengths
        rows = [features.rows(number) for number in numbers]
        return replace(
            batch,
            context=Context(
                _packed(
                    [row[: ends[n]][:most] for row, n in zip(rows, numbers, strict=True)], batch.premises
                ),
                _packed(
                    [row[ends[n] :][:most] for row, n in zip(rows, numbers, strict=True)], batch.hypotheses
                ),
                torch.from_numpy(np.stack([features.pooled(number) for number in numbers])).float(),
            ),
        )

    def add_words(self, batch: PairBatch, premises: Words, hypotheses: Words) -> PairBatch:
        """The same for pairs that are given as their words."""
        if not self.frozen:
            return replace(batch, pieces=self.pieces.pairs(premises, hypotheses))
        rows, pooled = word_features(self.encoder, self.pieces, premises, hypotheses)
        ends = [len(words) for words in premises]
        first = [row[:end] for row, end in zip(rows, ends, strict=True)]
        second = [row[end:] for row, end in zip(rows, ends, strict=True)]
        context = Context(
            _packed(first, batch.premises), _packed(second, batch.hypotheses), torch.from_numpy(pooled)
        )
        return replace(batch, context=context)

    def features(self, data: Pairs, name: str) -> Features:
        """What BERT says of all pairs of a part; computed once for the same data."""
        key = (data.about["fingerprint"], name)
        if key not in self._features:
            part: Part = getattr(data, name)

            def compute(numbers: list[int]) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
                sentences = (
                    [[data.types[token] for token in rows[number]] for number in numbers]
                    for rows in (part.premises, part.hypotheses)
                )
                return word_features(self.encoder, self.pieces, *sentences)

            lengths = part.premises.lengths + part.hypotheses.lengths
            with bar(f"BERT reads {name}") as progress:
                self._features[key] = cached(
                    f"{data.about['source']} {name}",
                    f"{key[0]} {fingerprint(self.folder)}",
                    lengths,
                    self.width,
                    compute,
                    progress,
                )
        return self._features[key]


def _packed(rows: Sequence[NDArray[np.floating]], packing: Packing) -> Tensor:
    """Lay the rows of all sequences in packed order, ``[N, F]``."""
    padded = np.zeros((*packing.mask.shape, rows[0].shape[1]), np.float32)  # [B, T, F]
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return packing.pack(torch.from_numpy(padded)).data
