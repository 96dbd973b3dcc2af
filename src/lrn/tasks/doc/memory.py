"""What a classifier remembers of a document when it decides: the paper's structure analysis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from lrn.analysis import Memory, memory
from lrn.tasks.doc import generator
from lrn.tasks.doc.data import Codes, DocumentBatch, encode_texts
from lrn.tasks.doc.model import Classifier


@dataclass(frozen=True)
class Remembered:
    """The memory of the layer's forward direction over a document, and the probabilities of its classes."""

    words: list[str]
    memory: Memory
    probabilities: dict[str, float]
    both_directions: bool  # if so, the backward direction has a memory of its own

    @property
    def label(self) -> str:
        return max(self.probabilities, key=self.probabilities.__getitem__)


def memory_of(model: Classifier, batch: DocumentBatch) -> Memory:
    """What the layer's forward direction remembers of a document, a batch by itself."""
    return memory(model.forward_unit(), model.embed(batch))


@torch.no_grad()
def remember(model: Classifier, codes: Codes, words: list[str]) -> Remembered:
    """Read a document, and return what is left of its words and how it is classified."""
    if not words:
        raise ValueError("the text has no words")
    batch = encode_texts([words], codes).to(model.output.weight.device)
    found = memory_of(model, batch)
    shares = dict(zip(codes.classes.words, model.probabilities(batch)[0].tolist(), strict=True))
    return Remembered(words, found, shares, model.unit.bidirectional)


def cues_remembered(
    model: Classifier, codes: Codes, documents: Iterable[generator.Document], share: float = 0.05
) -> dict[str, float]:
    """Count the documents that are classified rightly, and those of them whose deciding word is remembered.

    It is if it is among the ``share`` of the document's words that the last state remembers best.
    """
    right = kept = 0
    for document in documents:
        found = remember(model, codes, list(document.words))
        if found.label != generator.CLASSES[document.label]:
            continue
        right += 1
        kept += found.memory.ranking().index(document.cue) < share * len(document.words)
    return {"right": right, "cue_remembered": round(kept / max(1, right), 4)}
