"""Translating: beam search, and drawing translations at random.

A translation's score is the logarithm of its probability, its end included, divided by
``((5 + pieces) / 6) ** length_penalty``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lrn.recurrence import Memory
from lrn.text.vocabulary import END, SPECIALS
from lrn.units.unit import UserState, map_state

if TYPE_CHECKING:
    from lrn.tasks.mt.data import SourceBatch
    from lrn.tasks.mt.model import Opened, Translator

FURTHER = 50  # pieces that a translation may be longer than its source
_END = SPECIALS.index(END)
_NEVER = [number for number, word in enumerate(SPECIALS) if word != END]  # padding and unknown are not said


@dataclass(frozen=True)
class Hypothesis:
    """A translation: its pieces without the end, the logarithm of its probability, and its score."""

    pieces: tuple[int, ...]
    logarithm: float
    score: float


@dataclass(frozen=True)
class Search:
    """How translations are looked for.

    Args:
        beam: hypotheses that a sentence has at a time; 1 takes the best next piece at every step.
        nbest: translations to give of each sentence, at most ``beam``.
        length_penalty: how much longer ones are favoured.
        further: pieces that a translation may be longer than its source, the ends counted; then it is ended.
    """

    beam: int = 4
    nbest: int = 1
    length_penalty: float = 0.6
    further: int = FURTHER

    def norm(self, pieces: int) -> float:
        """What the logarithm of a translation of so many pieces, its end included, is divided by.

        >>> Search(length_penalty=1.0).norm(7)
        2.0
        """
        divided: float = ((5 + pieces) / 6) ** self.length_penalty
        return divided


class _Sentence:
    """What has been found for a sentence: hypotheses that are over, and those that are followed."""

    def __init__(self, search: Search, limit: int) -> None:
        self.search, self.limit = search, limit
        self.over: list[Hypothesis] = []
        self.open: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]

    def extend(self, candidates: list[tuple[float, int, int]]) -> list[tuple[int, int]]:
        """Take the best of the candidates, each a logarithm, the hypothesis that it extends, and its piece.

        One that ends takes a place from those that are followed. Returns which hypotheses go on, and how.
        """
        candidates.sort(key=lambda candidate: -candidate[0])
        before, self.open, chosen = self.open, [], []
        for logarithm, parent, piece in candidates[: self.search.beam - len(self.over)]:
            pieces = before[parent][1]
            if piece == _END:
                score = logarithm / self.search.norm(len(pieces) + 1)
                self.over.append(Hypothesis(pieces, logarithm, score))
            else:
                self.open.append((logarithm, (*pieces, piece)))
                chosen.append((parent, piece))
        if self._is_decided():
            self.open, chosen = [], []
        return chosen

    def _is_decided(self) -> bool:
        """Whether nothing that is still followed can come to be among the best."""
        if len(self.over) < self.search.nbest or not self.open:
            return False
        least = sorted((found.score for found in self.over), reverse=True)[self.search.nbest - 1]
        return max(logarithm for logarithm, _ in self.open) / self.search.norm(self.limit) <= least

    def best(self) -> list[Hypothesis]:
        return sorted(self.over, key=lambda found: -found.score)[: self.search.nbest]


def beam_search(model: Translator, batch: SourceBatch, search: Search) -> list[list[Hypothesis]]:
    """Translate the sentences of a batch; returns for each the best translations, best first.

    Hypotheses that are over leave the batch, and so do those that cannot win any more.
    """
    opened = model.open(batch)
    found = [_Sentence(search, length + search.further) for length in opened.lengths]
    rows = _Rows.of(opened)
    tokens: Tensor | None = None
    while rows.sentences:
        logarithms = rows.step(model, tokens, [found[number].limit for number in rows.sentences])
        most = min(search.beam, logarithms.shape[1])
        values, pieces = logarithms.topk(most)  # [rows, beam]
        candidates: dict[int, list[tuple[float, int, int]]] = {}
        parents: dict[int, int] = {}  # of each sentence, its first row
        for row, (number, best, which) in enumerate(
            zip(rows.sentences, values.tolist(), pieces.tolist(), strict=True)
        ):
            parent = row - parents.setdefault(number, row)
            so_far = found[number].open[parent][0]
            candidates.setdefault(number, []).extend(
                (so_far + logarithm, parent, piece)
                for logarithm, piece in zip(best, which, strict=True)
                if logarithm > -torch.inf
            )
        going = [
            (number, parents[number] + parent, piece)
            for number, its in candidates.items()
            for parent, piece in found[number].extend(its)
        ]
        rows.keep([row for _, row, _ in going], [number for number, _, _ in going])
        tokens = logarithms.new_tensor([piece for _, _, piece in going], dtype=torch.int64)
    return [sentence.best() for sentence in found]


def sample(
    model: Translator, batch: SourceBatch, search: Search, temperature: float, seed: int
) -> list[list[Hypothesis]]:
    """Draw ``nbest`` translations of each sentence at random, the best first.

    Pieces are as likely as the model says at a ``temperature`` of 1; near 0 the likeliest is always drawn.
    """
    torch.manual_seed(seed)
    opened = model.open(batch)
    rows = _Rows.of(opened)
    rows.keep(
        [number for number in rows.sentences for _ in range(search.nbest)],
        [number for number in rows.sentences for _ in range(search.nbest)],
    )
    drawn: list[tuple[int, list[int], float]] = [(number, [], 0.0) for number in rows.sentences]
    going, tokens = list(range(len(drawn))), None
    while going:
        limits = [opened.lengths[number] + search.further for number in rows.sentences]
        logarithms = rows.step(model, tokens, limits)  # [rows, types]
        pieces = (logarithms.double() / temperature).softmax(-1).multinomial(1)  # [rows, 1]
        values = logarithms.gather(1, pieces)[:, 0].tolist()
        kept = []
        for row, (place, piece, value) in enumerate(zip(going, pieces[:, 0].tolist(), values, strict=True)):
            number, said, logarithm = drawn[place]
            drawn[place] = number, said, logarithm + value
            if piece != _END:
                said.append(piece)
                kept.append(row)
        tokens = pieces[:, 0].index_select(0, pieces.new_tensor(kept, dtype=torch.int64))
        rows.keep(kept, [rows.sentences[row] for row in kept])
        going = [going[row] for row in kept]
    found: list[list[Hypothesis]] = [[] for _ in opened.lengths]
    for number, said, logarithm in drawn:
        found[number].append(Hypothesis(tuple(said), logarithm, logarithm / search.norm(len(said) + 1)))
    return [sorted(each, key=lambda hypothesis: -hypothesis.score) for each in found]


class _Rows:
    """The hypotheses that are followed, those of a sentence beside each other: states and what they see."""

    def __init__(
        self, opened: Opened, sentences: list[int], states: Sequence[UserState], memory: Memory
    ) -> None:
        self.opened, self.sentences, self.states, self.memory = opened, sentences, states, memory
        self.pieces = 0  # that each of them has

    @classmethod
    def of(cls, opened: Opened) -> _Rows:
        """One for each sentence, with nothing said."""
        sentences = list(range(len(opened.lengths)))
        return cls(opened, sentences, opened.states, opened.memory(sentences))

    def step(self, model: Translator, tokens: Tensor | None, limits: Sequence[int]) -> Tensor:
        """Go a piece further; returns the logarithms of all next ones' probabilities, ``[rows, types]``.

        What may not come has none: padding, unknown words, an end before anything else, and anything but an
        end where the limit is reached.
        """
        scores, self.states = model.step(tokens, self.memory, self.states)
        self.pieces += 1
        precise = torch.promote_types(scores.dtype, torch.float32)  # bfloat16 is too coarse to add up
        logarithms = scores.to(precise).log_softmax(-1)
        logarithms[:, _NEVER] = -torch.inf
        for row, limit in enumerate(limits):
            if self.pieces >= limit:
                end = logarithms[row, _END].clone()
                logarithms[row] = -torch.inf
                logarithms[row, _END] = end
            elif self.pieces == 1:
                logarithms[row, _END] = -torch.inf
        return logarithms

    def keep(self, rows: list[int], sentences: list[int]) -> None:
        """Go on with these rows, of these sentences; nothing is copied where nothing has moved."""
        if not rows:
            self.sentences = []
            return
        if rows != list(range(len(self.sentences))):
            places = torch.tensor(rows).to(self.opened.keys.device)
            self.states = [map_state(partial(_select, places=places), state) for state in self.states]
        if sentences != self.sentences:
            self.memory = self.opened.memory(sentences)
        self.sentences = sentences


def _select(state: Tensor, places: Tensor) -> Tensor:
    return state.index_select(1, places)
