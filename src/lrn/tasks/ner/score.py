"""Precision, recall and F1 of entities, as conlleval counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lrn.tasks.ner.schemes import entities


@dataclass(frozen=True)
class Counts:
    """Counts of entities: right ones, those that were predicted, those that are there."""

    right: int
    predicted: int
    there: int

    @property
    def precision(self) -> float:
        return 100 * self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return 100 * self.right / self.there if self.there else 0.0

    @property
    def f1(self) -> float:
        total = self.predicted + self.there
        return 200 * self.right / total if total else 0.0


def score(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, Counts]:
    """Return counts by type, and of ``all``; an entity is right if its type and both its ends are.

    >>> score([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-PER"]])["all"].f1
    50.0
    """
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} sentences, but predictions for {len(predicted)}")
    there: Counter[str] = Counter()
    found: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for number, (wanted, got) in enumerate(zip(truth, predicted, strict=True)):
        if len(wanted) != len(got):
            raise ValueError(f"sentence {number} has {len(wanted)} words, but {len(got)} predicted tags")
        wanted_spans, got_spans = set(entities(wanted)), set(entities(got))
        there.update(span.type for span in wanted_spans)
        found.update(span.type for span in got_spans)
        right.update(span.type for span in wanted_spans & got_spans)
    kinds = sorted(set(there) | set(found))
    scores = {kind: Counts(right[kind], found[kind], there[kind]) for kind in kinds}
    return {"all": Counts(right.total(), found.total(), there.total()), **scores}
