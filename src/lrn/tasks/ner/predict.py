"""Tagging lines of text, and showing what was found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from lrn.tasks.ner.config import PredictConfig
from lrn.tasks.ner.data import PAD, Codes, encode
from lrn.tasks.ner.model import Tagger
from lrn.tasks.ner.schemes import entities
from lrn.text.lines import each_line

if TYPE_CHECKING:
    from rich.text import Text

TOKEN = r"'s\b|\w+(?:[-.&/]\w+)*|\S"  # words and punctuation apart
COLOURS = {"PER": "bold cyan", "LOC": "bold green", "ORG": "bold yellow", "MISC": "bold magenta"}


def tokenise(text: str) -> list[str]:
    """Words and punctuation apart, roughly as CoNLL-2003 has them.

    >>> tokenise("Anna's in Lugano, since 1996.")
    ['Anna', "'s", 'in', 'Lugano', ',', 'since', '1996', '.']
    """
    return re.findall(TOKEN, text)


def run(model: Tagger, codes: Codes, device: torch.device, options: PredictConfig) -> None:
    """Tag lines of text as they come, blank ones too: what comes out can be laid beside what went in."""
    for line in each_line(options.files):
        words = line.split() if options.split else tokenise(line)
        tags = tags_of(model, codes, device, words)
        if options.format == "json":
            found = {"words": words, "tags": tags, "entities": _spans(line, words, tags)}
            print(json.dumps(found), flush=True)
        elif options.format == "conll":
            for word, tag in zip(words, tags, strict=True):
                print(f"{word}\t{tag}")
            print(flush=True)
        else:
            from rich.console import Console

            Console().print(_coloured(words, tags), soft_wrap=True)


def tags_of(model: Tagger, codes: Codes, device: torch.device, words: list[str]) -> list[str]:
    """The tags of one sentence. A model that has hardly learnt may say <pad>, which is no tag for a word."""
    if not words:
        return []
    return ["O" if tag == PAD else tag for tag in model.tag(encode([words], codes).to(device))[0]]


def _spans(line: str, words: list[str], tags: list[str]) -> list[dict[str, Any]]:
    """The entities, as places among the words and as they stand in the line."""
    places = []
    end = 0
    for word in words:
        start = line.index(word, end)
        end = start + len(word)
        places.append((start, end))
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
