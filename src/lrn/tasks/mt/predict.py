"""Translating lines as they come, and showing what of a sentence each piece of its translation attends to."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from lrn.report.views import Attention, Bar, Bars, Mark, Marks, View
from lrn.tasks.asking import Answer
from lrn.tasks.mt import generator
from lrn.tasks.mt.codes import Codes
from lrn.tasks.mt.config import MTConfig, PredictConfig
from lrn.tasks.mt.data import pair_batch, source_batch
from lrn.tasks.mt.model import Translator
from lrn.tasks.mt.search import Hypothesis, Search, beam_search, sample
from lrn.text.lines import each_line, lines_at_hand
from lrn.text.moses import Moses
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

    def answers(self, lines: Sequence[str], details: bool = False) -> list[Answer]:
        """The best translations of each line, and their scores.

        With ``details``: the pieces of the line and of its best translation, and what each of the latter
        looked at, ``attention[target][head][source]``.
        """
        found = []
        for line, best in zip(lines, self.translate(lines), strict=True):
            each = [{"text": self.written(one), "score": one.score} for one in best]
            answer: Answer = {"translation": each[0]["text"], "score": each[0]["score"], "best": each}
            found.append(answer | (self._looked(line, best[0]) if details else {}))
        return found

    def _looked(self, line: str, best: Hypothesis) -> Answer:
        if not best.pieces:
            return {"source": [], "target": [], "attention": []}
        return {
            "source": [*self.codes.source.pieces(line), END],
            "target": [*self.codes.target.vocabulary.decode(best.pieces), END],
            "attention": self.attention(line, best),
        }

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
    for some in _groups(options):
        for answer in lines.answers(some, not drawn):
            number += 1
            for rank, one in enumerate(answer["best"], 1):
                before = f"{number}\t{rank}\t{one['score']:.4f}\t" if options.nbest > 1 else ""
                print(f"{before}{one['text']}")
            if not drawn and answer["attention"]:
                _draw(answer, Path(options.alignment or ""))
                drawn = True
        sys.stdout.flush()
    if not drawn:
        raise ValueError("there is no sentence whose attention could be drawn")


def _groups(options: PredictConfig) -> Iterator[list[str]]:
    """Lines to translate together: as many as are there, so that nobody waits who writes them one by one.

    What is drawn at random depends on what is drawn with it, but must not on who was quicker: such lines of
    standard input are translated one by one.
    """
    if not options.files:
        yield from lines_at_hand(1 if options.temperature else options.batch_size)
        return
    lines = each_line(options.files)
    while some := list(islice(lines, options.batch_size)):
        yield some


def views(answer: Answer) -> list[View]:
    """The translation, the best ones by their scores, and what of the sentence each piece looks at."""
    if not answer["attention"]:
        return []
    bars = [
        Bar(one["text"], round(math.exp(one["score"]), 4), f"{one['score']:.3f}") for one in answer["best"]
    ]
    note = "Each row is a piece of the translation: the stronger a colour, the more it looks at that piece."
    return [
        Marks("translation", [Mark(answer["translation"])], large=True),
        Bars("best translations", bars),
        Attention.of("alignment", answer["target"], answer["source"], answer["attention"], note),
    ]


SENTENCES = {
    "en": "A man in a blue shirt is playing a guitar on the street.",
    "de": "Ein Mann in einem blauen Hemd spielt auf der Straße Gitarre.",
    "fr": "Un homme en chemise bleue joue de la guitare dans la rue.",
    "cs": "Muž v modré košili hraje na ulici na kytaru.",
}
"""A sentence in languages that are often translated from."""


def example(config: MTConfig) -> str:
    """A sentence like those that the model was trained on; nothing in a language that is not known."""
    if config.data is None:
        return generator.pairs(1, part="test", seed=config.seed)[0][0]
    return SENTENCES.get(Moses(config.source).language, "")


def _draw(answer: Answer, path: Path) -> None:
    from lrn.report import attention

    title = f"{answer['translation']} ({answer['score']:.3f})"
    attention.write(attention.Picture(answer["target"], answer["source"], answer["attention"], title), path)
    print(f"wrote {path}", file=sys.stderr)
