"""Tagging lines of text, and showing what was found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lrn.report.views import Mark, Marks, View
from lrn.tasks.asking import Answer
from lrn.tasks.ner import generator
from lrn.tasks.ner.config import NERConfig, PredictConfig
from lrn.tasks.ner.data import PAD, Codes, encode
from lrn.tasks.ner.model import Tagger
from lrn.tasks.ner.schemes import entities, split
from lrn.text.lines import Progress, each_line, ignore

if TYPE_CHECKING:
    from rich.text import Text

SENTENCES = 64  # to a batch
TOKEN = r"'s\b|\w+(?:[-.&/]\w+)*|\S"  # words and punctuation apart
COLOURS = {"PER": "bold cyan", "LOC": "bold green", "ORG": "bold yellow", "MISC": "bold magenta"}


def tokenise(text: str) -> list[str]:
    """Words and punctuation apart, roughly as CoNLL-2003 has them.

    >>> tokenise("Anna's in Lugano, since 1996.")
    ['Anna', "'s", 'in', 'Lugano', ',', 'since', '1996', '.']
    """
    return re.findall(TOKEN, text)


def run(answer: Callable[[str], Answer], options: PredictConfig) -> None:
    """Tag lines of text as they come, blank ones too: what comes out can be laid beside what went in."""
    for line in each_line(options.files):
        found = answer(line)
        words, tags = found["words"], found["tags"]
        if options.format == "json":
            print(json.dumps(found), flush=True)
        elif options.format == "conll":
            for word, tag in zip(words, tags, strict=True):
                print(f"{word}\t{tag}")
            print(flush=True)
        else:
            from rich.console import Console

            Console().print(_coloured(words, tags), soft_wrap=True)


def answers(
    model: Tagger, codes: Codes, texts: Sequence[str], options: PredictConfig, details: bool = False
) -> list[Answer]:
    """The words, tags and entities of each text.

    A model that has hardly learnt may say <pad>, which is no tag for a word. With ``details``: the text in
    ``parts``, cut where entities stand, and all ``types`` of entities that the model knows.
    """
    types = list(dict.fromkeys(split(tag)[1] for tag in codes.tags.words if "-" in tag))
    words = [text.split() if options.split else tokenise(text) for text in texts]
    found: list[Answer] = []
    for text, row, said in zip(texts, words, tag_all(model, codes, words), strict=True):
        tags = ["O" if tag == PAD else tag for tag in said]
        places = _places(text, row)
        answer: Answer = {"words": row, "tags": tags, "entities": _spans(text, places, tags)}
        more = {"parts": _parts(text, places, tags), "types": types} if details else {}
        found.append(answer | more)
    return found


def tag_all(
    model: Tagger, codes: Codes, sentences: Sequence[Sequence[str]], progress: Progress = ignore
) -> list[list[str]]:
    """Tags of all sentences, in their order; run in batches of like length. One without words has none."""
    device = model.dense.weight.device
    there = [number for number, words in enumerate(sentences) if words]
    order = sorted(there, key=lambda number: len(sentences[number]))
    tags: list[list[str]] = [[] for _ in sentences]
    for start in range(0, len(order), SENTENCES):
        part = order[start : start + SENTENCES]
        batch = encode([sentences[number] for number in part], codes).to(device)
        for number, row in zip(part, model.tag(batch), strict=True):
            tags[number] = row
        progress((start + len(part)) / len(order))
    return tags


def _places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where each word begins and ends in the text."""
    places, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places


def _parts(text: str, places: Sequence[tuple[int, int]], tags: Sequence[str]) -> list[Answer]:
    """The whole text in parts, each an entity with its type or what stands between two, without one."""
    parts, done = [], 0
    for entity in entities(tags):
        start, end = places[entity.start][0], places[entity.end - 1][1]
        parts += [{"text": text[done:start], "type": ""}, {"text": text[start:end], "type": entity.type}]
        done = end
    return [part for part in [*parts, {"text": text[done:], "type": ""}] if part["text"]]


def views(answer: Answer) -> list[View]:
    """The text with the entities marked, each type in a colour of its own."""
    if not answer["words"]:
        return []
    ranks = {kind: rank for rank, kind in enumerate(answer["types"])}
    marks = [Mark(part["text"], part["type"], ranks.get(part["type"], -1)) for part in answer["parts"]]
    return [Marks("entities", marks, large=True)]


def example(config: NERConfig) -> str:
    """A sentence like those that the model was trained on, as far as its settings tell."""
    if config.data is None:
        made = generator.sentences(3, part="test", seed=config.seed)
        return " ".join(" ".join(words) for words, _ in made).replace(" .", ".").replace(" ,", ",")
    return "Anna Becker flew from Lugano to the United Nations in New York, where German ministers met."


def _spans(line: str, places: Sequence[tuple[int, int]], tags: Sequence[str]) -> list[dict[str, Any]]:
    """The entities, as places among the words and as they stand in the line."""
    return [
        {
            "type": e.type,
            "start": e.start,
            "end": e.end,
            "text": line[places[e.start][0] : places[e.end - 1][1]],
        }
        for e in entities(tags)
    ]


def _coloured(words: list[str], tags: Iterable[str]) -> Text:
    """Entities in colour, with their type behind them."""
    from rich.text import Text

    text = Text()
    spans = {entity.start: entity for entity in entities(list(tags))}
    place = 0
    while place < len(words):
        entity = spans.get(place)
        end = entity.end if entity else place + 1
        style = COLOURS.get(entity.type, "bold blue") if entity else ""
        text.append(" ".join(words[place:end]), style)
        if entity:
            text.append(f"[{entity.type}]", "dim")
        text.append(" ")
        place = end
    return text
