"""Labelling documents: what a classifier says of them, and what it looked at and remembers when it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

import torch

from lrn.report.views import Bars, Shade, Shades, View, above_even, shares_of
from lrn.tasks.asking import Answer
from lrn.tasks.doc import generator
from lrn.tasks.doc.config import DocConfig, PredictConfig
from lrn.tasks.doc.data import Codes, DocumentBatch, encode_texts
from lrn.tasks.doc.memory import memory_of
from lrn.tasks.doc.model import Classifier
from lrn.text.lines import each_line
from lrn.units import LRN

DOCUMENTS = 64  # to a batch
REMEMBERED = 2_000  # words: a memory has a weight for every pair of them


def run(answer: Callable[[str], Answer], options: PredictConfig, longest: int = 0) -> None:
    """A document a line in; its label and the probabilities of all classes out.

    What is not read, since documents are cut to ``longest`` words, is said with the first that is, and of all
    at the end.
    """
    documents = empty = cut = words = 0
    for line in each_line(options.files):
        found = answer(line)
        documents += 1
        empty += found["label"] is None
        cut += "words_cut" in found
        words += found.get("words_cut", 0)
        if options.format == "json":
            print(json.dumps(found), flush=True)
        else:
            shown = "  ".join(f"{name} {share:.4f}" for name, share in found["probabilities"].items())
            print(f"{found['label']}\t{shown}" if found["label"] is not None else "", flush=True)
        if cut == 1 and "words_cut" in found:
            print(said_of_cuts(f"document {documents:,} has", words, longest), file=sys.stderr, flush=True)
    if cut > 1:
        print(said_of_cuts(f"{cut:,} of {documents:,} documents have", words, longest), file=sys.stderr)
    if empty:
        have = "has" if empty == 1 else "have"
        print(f"{empty:,} of {documents:,} documents {have} no words, and no label", file=sys.stderr)


def said_of_cuts(have: str, words: int, longest: int) -> str:
    """What to say of documents that were cut.

    >>> said_of_cuts("document 3 has", 35, 400)
    'document 3 has more than 400 words: the 35 words behind them were not read (longest_test)'
    """
    behind = "1 word behind them was" if words == 1 else f"{words:,} words behind them were"
    return f"{have} more than {longest:,} words: the {behind} not read (longest_test)"


def answers(
    model: Classifier,
    codes: Codes,
    texts: Sequence[Sequence[str]],
    details: bool = False,
    longest: int = 0,
) -> list[Answer]:
    """The label of each document, given as its words, and the probabilities of all classes.

    One without words has no label; one of more than ``longest`` words, unless that is 0, is cut, and its
    answer says how many were not read (``words_cut``). With ``details``: its words, how much each counted in
    the pooling (``attention``), and what is left of each in the last state (``memory``); None where the model
    has no such thing.
    """
    nothing: Answer = {"label": None, "probabilities": {}}
    found = [nothing | ({"words": [], "attention": None, "memory": None} if details else {}) for _ in texts]
    for answer, words in zip(found, texts, strict=True):
        answer |= {"words_cut": len(words) - longest} if longest and len(words) > longest else {}
    texts = [words[: longest or None] for words in texts]
    there = [number for number, words in enumerate(texts) if words]
    size = 1 if details else DOCUMENTS
    for start in range(0, len(there), size):
        numbers = there[start : start + size]
        batch = encode_texts([texts[number] for number in numbers], codes).to(model.output.weight.device)
        scores, weights = model.read(batch)
        for number, shares in zip(numbers, scores.softmax(-1).tolist(), strict=True):
            named = dict(zip(codes.classes.words, shares, strict=True))
            found[number] |= {"label": max(named, key=named.__getitem__), "probabilities": named}
        if details:
            found[numbers[0]] |= {
                "words": list(texts[numbers[0]]),
                "attention": None if weights is None else weights[0].tolist(),
                "memory": _memory(model, batch),
            }
    return found


def _memory(model: Classifier, batch: DocumentBatch) -> Answer | None:
    """What is left of each word when the last is read; only LRN and its relatives can say."""
    if not isinstance(model.unit, LRN) or len(batch.packing.places) > REMEMBERED:
        return None
    found = memory_of(model, batch)
    lasting = [None if value == torch.inf else value for value in found.half_life.tolist()]
    return {
        "left": found.curves[:, -1].tolist(),
        "half_life": lasting,
        "both_directions": model.unit.bidirectional,
    }


def views(answer: Answer) -> list[View]:
    """The probabilities, and the text with the words darker that count more."""
    if not answer["words"]:
        return []
    words, weights, memory = answer["words"], answer["attention"], answer["memory"]
    cut = answer.get("words_cut", 0)
    title = f"label, by the first {len(words):,} words: {cut:,} more were not read" if cut else "label"
    shown: list[View] = [Bars.of(title, answer["probabilities"])]
    if weights:
        shades = [
            Shade(word, share, f"{100 * weight:.1f} % of the attention")
            for word, share, weight in zip(words, above_even(weights), weights, strict=True)
        ]
        shown.append(
            Shades(
                "attention",
                shades,
                "The stronger its colour, the more a word counts when all are pooled; none is an even share.",
            )
        )
    if memory:
        part = " of the forward direction" if memory["both_directions"] else ""
        shades = [
            Shade(word, share, f"{left:.4f} left at the end; {_lasting(half)}")
            for word, share, left, half in zip(
                words, shares_of(memory["left"]), memory["left"], memory["half_life"], strict=True
            )
        ]
        note = f"The stronger its colour, the more of a word is left in the last state{part}."
        shown.append(Shades("memory", shades, note))
    return shown


def _lasting(half_life: float | None) -> str:
    if half_life is None:
        return "half-life: more than the rest of the text"
    return f"half-life: {half_life:.0f} word{'' if half_life == 1 else 's'}"


def example(config: DocConfig) -> str:
    """A document like those that the model was trained on, as far as its settings tell."""
    manner = generator.MANNERS.get(config.data or "builtin:cues")
    if manner is not None:
        (made,) = generator.documents(1, part="test", seed=config.seed, manner=manner)
        return " ".join(made.words).replace(" .", ".")
    if config.data == "builtin:docstrings":
        return (
            "Return the root element of the tree, or raise an error if the document has not been parsed yet."
        )
    return (
        "A lovely little film. The plot is thin, but the actors make every minute of it a pleasure to watch."
    )
