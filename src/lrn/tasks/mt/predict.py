"""Translating lines as they come, and showing what of a sentence each piece of its translation attends to."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from lrn.tasks.mt.codes import Codes
from lrn.tasks.mt.config import PredictConfig
from lrn.tasks.mt.data import pair_batch, source_batch
from lrn.tasks.mt.model import Translator
from lrn.tasks.mt.search import Hypothesis, Search, beam_search, sample
from lrn.text.lines import each_line
from lrn.text.vocabulary import END

Answers = list[list[Hypothesis]]


class Lines:
    """A model that translates lines of text.

    Args:
        model: the model, ready for use.
        codes: how its languages are written as numbers.
        options: how translations are found.
    """

    def __init__(self, model: Translator, codes: Codes, options: PredictConfig) -> None:
        self.model, self.codes, self.options = model, codes, options
        self.device = next(model.parameters()).device
        self._drawn = 0

    @torch.no_grad()
    def translate(self, lines: Sequence[str]) -> Answers:
        """The translations of each line, best first; of an empty line nothing."""
        options = self.options
        rows = [np.array(self.codes.source.encode(line), np.int32) for line in lines]
        there = [place for place, row in enumerate(rows) if len(row)]
        found: Answers = [[Hypothesis((), 0.0, 0.0)] for _ in lines]
        if not there:
            return found
        batch = source_batch([rows[place] for place in there]).to(self.device)
        search = Search(options.beam, options.nbest, options.length_penalty)
        if options.temperature:
            self._drawn += 1  # so that no two batches are drawn alike
            best = sample(self.model, batch, search, options.temperature, options.seed + self._drawn - 1)
        else:
            best = beam_search(self.model, batch, search)
        for place, answers in zip(there, best, strict=True):
            found[place] = answers
        return found

    def written(self, answer: Hypothesis) -> str:
        """A translation as text."""
        words = self.codes.target.words(answer.pieces)
        return " ".join(words) if self.options.tokenised else self.codes.target.plain(words)

    @torch.no_grad()
    def attention(self, line: str, answer: Hypothesis) -> list[list[list[float]]]:
        """What of a line each piece of its translation attends to, ``[piece][head][piece of the line]``."""
        source = np.array(self.codes.source.encode(line), np.int32)
        batch = pair_batch([source], [np.array(answer.pieces, np.int32)]).to(self.device)
        _, weights = self.model.read(batch)
        found: list[list[list[float]]] = torch.cat(weights).float().tolist()
        return found


def run(lines: Lines, options: PredictConfig) -> None:
    """Translate lines as they come, in their order."""
    drawn = options.alignment is None
    number = 0
    for some in _groups(each_line(options.files), options.batch_size):
        for line, answers in zip(some, lines.translate(some), strict=True):
            number += 1
            for rank, answer in enumerate(answers, 1):
                before = f"{number}\t{rank}\t{answer.score:.4f}\t" if options.nbest > 1 else ""
                print(f"{before}{lines.written(answer)}")
            if not drawn and answers[0].pieces:
                _draw(lines, line, answers[0], Path(options.alignment or ""))
                drawn = True
        sys.stdout.flush()
    if not drawn:
        raise ValueError("there is no sentence whose attention could be drawn")


def _groups(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """So many lines at a time; one by one for somebody who types them."""
    size = 1 if sys.stdin.isatty() else size
    while some := list(islice(lines, size)):
        yield some


def _draw(lines: Lines, line: str, answer: Hypothesis, path: Path) -> None:
    from lrn.report import attention

    source = [*lines.codes.source.pieces(line), END]
    target = [*lines.codes.target.vocabulary.decode(answer.pieces), END]
    title = f"{lines.written(answer)} ({answer.score:.3f})"
    attention.write(attention.Picture(target, source, lines.attention(line, answer), title), path)
    print(f"wrote {path}", file=sys.stderr)
