"""Labelling pairs of sentences, and showing what of the premise each word of the hypothesis attends to."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from lrn.report.views import Attention, Bars, View
from lrn.tasks import asking
from lrn.tasks.nli import generator
from lrn.tasks.nli.config import LABELS, NLIConfig, PredictConfig
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

    def to_json(self, details: bool = False) -> asking.Answer:
        """In plain texts and numbers, the attention only with ``details``."""
        found: asking.Answer = {
            "premise": list(self.premise),
            "hypothesis": list(self.hypothesis),
            "label": self.label,
            "probabilities": self.probabilities,
        }
        return found | ({"attention": self.attention} if details else {})


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


def answer_texts(answer: Answerer, premise: str, hypothesis: str, details: bool = False) -> asking.Answer:
    """Label a pair of sentences."""
    return answer(treebank_tokens(premise), treebank_tokens(hypothesis)).to_json(details)


def run(ask: Callable[[str, str, bool], asking.Answer], options: PredictConfig) -> None:
    """Label pairs as they come: a line each, with a tab or ||| between premise and hypothesis."""
    drawn = options.attention is None
    for premise, hypothesis in _pairs(options.files):
        found = ask(premise, hypothesis, not drawn)
        if options.format == "json":
            shown = {name: value for name, value in found.items() if name != "attention"}
            print(json.dumps(shown, ensure_ascii=False), flush=True)
        else:
            shares = "  ".join(f"{label} {share:.4f}" for label, share in found["probabilities"].items())
            print(f"{found['label']}\t{shares}", flush=True)
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


def views(answer: asking.Answer) -> list[View]:
    """The probabilities of the labels, and what of the premise each word of the hypothesis looks at."""
    note = "Each row is a word of the hypothesis: the stronger a colour, the more it looks at that word."
    return [
        Bars.of("label", answer["probabilities"]),
        Attention.of("attention", answer["hypothesis"], answer["premise"], answer["attention"], note),
    ]


def example(config: NLIConfig) -> list[str]:
    """A pair like those that the model was trained on, as far as its settings tell."""
    if config.data is None:
        made = generator.pairs(1, part="test", seed=config.seed)[0]
        return [" ".join(made.premise), " ".join(made.hypothesis)]
    return ["Two dogs are running through a snowy field.", "The animals are outside."]


def _draw(found: asking.Answer, path: Path) -> None:
    from lrn.report import attention

    title = f"{found['label']} ({found['probabilities'][found['label']]:.3f})"
    picture = attention.Picture(found["hypothesis"], found["premise"], found["attention"], title)
    attention.write(picture, path)
    print(f"wrote {path}", file=sys.stderr)
