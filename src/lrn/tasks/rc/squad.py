"""Files of SQuAD's form: articles, their paragraphs, questions about them, and where the answers stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lrn.files import not_utf8
from lrn.tasks.rc.config import DESCRIBED, FILES, OFFICIAL, RCConfig
from lrn.text.folders import find_files

HOLDERS = {
    "data": "the top level",
    "paragraphs": "an article",
    "context": "a paragraph",
    "qas": "a paragraph",
    "question": "a question",
    "answers": "a question",
    "text": "an answer",
    "answer_start": "an answer",
}
"""What of a file has which part."""


@dataclass(frozen=True)
class Asked:
    """A question, and its answers as annotators gave them: the text, and the place of its first character."""

    text: str
    answers: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Passage:
    """A paragraph and the questions about it."""

    text: str
    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class Article:
    """Paragraphs about one subject."""

    title: str
    passages: tuple[Passage, ...]


def read_articles(path: Path) -> list[Article]:
    """Read a file of SQuAD v1.1; one of v2.0, whose questions may have no answer, is refused."""
    try:
        content = json.loads(path.read_bytes())
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    try:
        _refuse_second(path, content)
        return [
            Article(
                str(article.get("title", "")),
                tuple(
                    Passage(_part(paragraph, "context"), tuple(map(_asked, paragraph["qas"])))
                    for paragraph in _listed(article, "paragraphs")
                ),
            )
            for article in _listed(content, "data")
        ]
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not in SQuAD's form: {error}") from None


def _refuse_second(path: Path, content: Any) -> None:
    """Raise a ValueError if this is version 2.0."""
    paragraphs = (p for article in _listed(content, "data") for p in _listed(article, "paragraphs"))
    version = str(content.get("version", "")).lstrip("v")
    asked = (question for paragraph in paragraphs for question in _listed(paragraph, "qas"))
    if version.startswith("2") or any(question.get("is_impossible") is not None for question in asked):
        raise ValueError(
            f"{path} is SQuAD v2.0, some of whose questions have no answer; "
            "this model always points at one: expected v1.1"
        )


def _part(parent: Any, name: str) -> Any:
    """What something of the format must have."""
    if not isinstance(parent, dict) or name not in parent:
        raise TypeError(f"{HOLDERS[name]} has no {name!r}")
    return parent[name]


def _listed(parent: Any, name: str) -> list[Any]:
    """One of the format's lists, in what has it."""
    found = _part(parent, name)
    if not isinstance(found, list):
        raise TypeError(f"{name} must be a list, got {repr(found)[:40]}")
    return found


def _asked(question: Any) -> Asked:
    answers = tuple(
        (_part(answer, "text"), _part(answer, "answer_start")) for answer in _listed(question, "answers")
    )
    for text, start in answers:
        if not isinstance(text, str) or type(start) is not int:
            raise TypeError(f"an answer is {text!r:.40} at {start!r:.40}")
    return Asked(_part(question, "question"), answers)


@dataclass(frozen=True)
class Split:
    """The passages of the three parts of a data set, and what there is to say of where they come from."""

    train: Sequence[Passage]
    valid: Sequence[Passage]
    test: Sequence[Passage]
    about: dict[str, Any]


def read_split(folder: Path, config: RCConfig, progress: Callable[[float], None]) -> Split:
    """Read a folder: SQuAD's two official files, of which the second serves as validation and test, or any
    files of that form, of which some articles, chosen by the seed, are held out."""
    paths = find_files(folder, FILES, "without --data texts of our own making are used", DESCRIBED)
    read = []
    for number, path in enumerate(paths, 1):
        read.append(read_articles(path))
        progress(number / len(paths))
    files = [path.name for path in paths]
    if files == list(OFFICIAL):
        given = (config.held_out, config.held_out_valid)
        if given != (RCConfig.held_out, RCConfig.held_out_valid):
            raise ValueError(
                f"held_out is for folders without {' and '.join(OFFICIAL)}: {folder} has both, "
                "and the second is what is validated and tested on"
            )
        train, test = map(_passages, read)
        return Split(train, test, test, {"files": files})
    return _held_out(folder, [article for articles in read for article in articles], config, files)


def _held_out(folder: Path, articles: Sequence[Article], config: RCConfig, files: list[str]) -> Split:
    by_title: dict[object, list[Article]] = {}  # an article that two files have must not be in two parts
    for number, article in enumerate(articles):
        by_title.setdefault(article.title or number, []).append(article)
    groups = list(by_title.values())
    tested, validated = config.held_out, config.held_out_valid
    if len(groups) <= tested + validated:
        raise ValueError(
            f"{folder} has {len(groups)} articles: held_out {tested} and held_out_valid {validated} "
            "leave none to train on"
        )
    order = np.random.default_rng(config.seed).permutation(len(groups)).tolist()
    chosen = [order[:tested], order[tested : tested + validated], sorted(order[tested + validated :])]
    test, valid, train = ([article for place in places for article in groups[place]] for places in chosen)
    about: dict[str, Any] = {
        "files": files,
        "articles": {"train": len(chosen[2]), "valid": len(chosen[1]), "test": len(chosen[0])},
        "tested_articles": [groups[place][0].title for place in chosen[0]],
    }
    return Split(_passages(train), _passages(valid or test), _passages(test), about)


def _passages(articles: Sequence[Article]) -> list[Passage]:
    """All paragraphs, those that are there twice with the same questions once."""
    return list(dict.fromkeys(passage for article in articles for passage in article.passages))
