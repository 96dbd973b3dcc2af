"""Labelling pairs of sentences, and showing what of the premise each word of the hypothesis attends to."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from lrn.tasks.nli.config import LABELS, PredictConfig
from lrn.tasks.nli.data import EMPTY, PairBatch
from lrn.tasks.nli.model import InferenceModel
from lrn.text.lines import each_line
from lrn.text.treebank import treebank_tokens

Words = Sequence[str]


@dataclass(frozen=True)
class Answer:
    """What a model says of a pair: probabilities by label, and ``[hypothesis][head][premise]`` weights."""

    premise: Words
    hypothesis: Words
    probabilities: dict[str, float]
    attention: list[list[list[float]]]

    @property
    def label(self) -> str:
        return max(self.probabilities, key=self.probabilities.__getitem__)


Answerer = Callable[[Words, Words], Answer]


def answerer(
    model: InferenceModel, encode: Callable[[Sequence[Words], Sequence[Words]], PairBatch]
) -> Answerer:
    """A function that labels a pair of sentences, given as their words, of which ``encode`` makes batches."""
    device = next(model.parameters()).device

    @torch.no_grad()
    def answer(premise: Words, hypothesis: Words) -> Answer:
        premise, hypothesis = premise or [EMPTY], hypothesis or [EMPTY]
        scores, weights = model.read(encode([premise], [hypothesis]).to(device))
        shares = scores.softmax(-1)[0].tolist()
        looked = torch.cat(weights).tolist()  # [H, heads, P]
        return Answer(premise, hypothesis, dict(zip(LABELS, shares, strict=True)), looked)

    return answer


def run(answer: Answerer, options: PredictConfig) -> None:
    """Label pairs as they come: a line each, with a tab or ||| between premise and hypothesis."""
    drawn = options.attention is None
    for premise, hypothesis in _pairs(options.files):
        found = answer(treebank_tokens(premise), treebank_tokens(hypothesis))
        if options.format == "json":
            shown = {
                "premise": list(found.premise),
                "hypothesis": list(found.hypothesis),
                "label": found.label,
                "probabilities": found.probabilities,
            }
            print(json.dumps(shown, ensure_ascii=False), flush=True)
        else:
            shares = "  ".join(f"{label} {share:.4f}" for label, share in found.probabilities.items())
            print(f"{found.label}\t{shares}", flush=True)
        if not drawn:
            _draw(found, Path(options.attention or ""))
            drawn = True
    if not drawn:
        raise ValueError("there is no pair whose attention could be drawn")


def _pairs(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of files or of standard input; in a terminal the two sentences are asked for one by one."""
    if not files and sys.stdin.isatty():
        while True:
            try:
                yield input("premise: "), input("hypothesis: ")
            except EOFError:
                print()
                return
    for number, line in enumerate(each_line(files), 1):
        sentences = line.split("\t" if "\t" in line else "|||")
        if len(sentences) != 2:
            expected = "expected a premise and a hypothesis with a tab or ||| between them"
            raise ValueError(f"line {number}: {expected}, got {line[:60]!r}")
        yield sentences[0], sentences[1]


def _draw(found: Answer, path: Path) -> None:
    from lrn.report import attention

    title = f"{found.label} ({found.probabilities[found.label]:.3f})"
    picture = attention.Picture(found.hypothesis, found.premise, found.attention, title)
    attention.write(picture, path)
    print(f"wrote {path}", file=sys.stderr)
