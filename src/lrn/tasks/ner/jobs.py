"""What the commands do for named entity recognition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.text import Text
from torch import Tensor

from lrn.names import UNITS
from lrn.tasks.ner.config import PRESETS, EvaluateConfig, NERConfig, PredictConfig
from lrn.tasks.ner.data import CODES, PAD, Codes, Dataset, encode, read_builtin, read_folder
from lrn.tasks.ner.model import Tagger, count
from lrn.tasks.ner.schemes import entities
from lrn.tasks.ner.score import Score
from lrn.tasks.ner.task import NERTrainee
from lrn.tasks.ner.task import evaluate as scores_of
from lrn.text.lines import each_line
from lrn.text.vectors import read_vectors
from lrn.training import checkpoint
from lrn.training.config import from_dict
from lrn.training.fit import figures_of
from lrn.training.run import Run
from lrn.training.show import bar, print_figures
from lrn.training.trainee import load_weights

METRIC, LOWER_IS_BETTER = "test_f1", False
CURVE = "valid_f1"  # in log.csv
CHARACTERS, TAGS = 517, 10  # of the paper's data: all of GloVe's characters; nine tags and padding
COLOURS = {"PER": "bold cyan", "LOC": "bold green", "ORG": "bold yellow", "MISC": "bold magenta"}


def read_dataset(config: NERConfig, folder: str | None) -> Dataset:
    if folder is None:
        return read_builtin(config.sentences, config.seed)
    return read_folder(Path(folder).resolve())


def prepare(config: NERConfig) -> tuple[NERTrainee, dict[str, Any]]:
    """A training that has not begun, and what about.json should say of its data."""
    dataset = read_dataset(config, config.data)
    vectors = _vectors(config, dataset)
    codes = Codes.of(dataset.train, vectors)
    width = len(next(iter(vectors.values()))) if vectors else config.word_width
    trainee = NERTrainee(config, dataset, codes, width)
    if vectors:
        trainee.model.load_vectors(_table(vectors, codes, width))
    about: dict[str, Any] = {"data": dataset.about}
    if config.vectors:
        if not vectors:
            raise ValueError(f"{config.vectors} has no vector for any word of the data")
        about["vectors"] = {"file": Path(config.vectors).name, "width": width} | _coverage(vectors, dataset)
    return trainee, about


def _vectors(config: NERConfig, dataset: Dataset) -> dict[str, Any]:
    if config.vectors is None:
        return {}
    parts = (dataset.train, dataset.valid, dataset.test)
    needed = {word.lower() for part in parts for sentence in part for word in sentence.words}
    with bar("reading word vectors") as progress:
        return read_vectors(config.vectors, None if config.all_vectors else needed, progress)


def _table(vectors: dict[str, Any], codes: Codes, width: int) -> Tensor:
    """A row a word: its vector, or zeros."""
    table = torch.zeros(len(codes.words), width)
    for number, word in enumerate(codes.words.words):
        if word in vectors:
            table[number] = torch.from_numpy(vectors[word])
    return table


def _coverage(vectors: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """The share of words, as they stand in the text, that have a vector."""
    shares = {}
    for name in ("train", "valid", "test"):
        words = [word.lower() for sentence in getattr(dataset, name) for word in sentence.words]
        shares[name] = round(sum(word in vectors for word in words) / len(words), 4)
    return {"words": len(vectors), "coverage": shares}


def begin(trainee: NERTrainee, run: Run) -> None:
    """What the run folder holds from the start."""
    trainee.model.codes.save(run.folder)


def resume(run: Run, data: str | None = None) -> NERTrainee:
    """The training of an interrupted run, where its last saved state left it."""
    config: NERConfig = from_dict(NERConfig, run.config)
    if not run.last.exists():
        return prepare(replace(config, data=run.data(data)))[0]
    dataset = read_dataset(config, run.data(data))
    run.check_data(dataset.about["fingerprint"])
    state = checkpoint.load(run.last, "ner")
    trainee = NERTrainee(config, dataset, _codes(run), _width(state))
    trainee.restore(state)
    return trainee


def _width(state: dict[str, Any]) -> int:
    """Of the word vectors in a saved state."""
    return int(state["model"]["words.weight"].shape[1])


def headline(trainee: NERTrainee) -> str:
    """What is about to be trained."""
    about, parameters = trainee.dataset.about, sum(p.numel() for p in trainee.model.parameters())
    parts = "; ".join(
        f"{name} {about[name]['sentences']:,} sentences, {about[name]['tokens']:,} tokens, "
        f"{about[name]['entities']:,} entities"
        for name in ("train", "valid", "test")
    )
    vectors = ""
    if trainee.config.vectors:
        table = trainee.model.words.weight
        there = int(table.detach().any(1).sum())
        vectors = f"; {there:,} of {len(table):,} words have a vector"
    settings = f"{trainee.config.unit}, preset {trainee.config.preset}, {parameters:,} parameters"
    return f"{settings}; {about['source']}: {parts}{vectors}"


def finish(trainee: NERTrainee, run: Run, console: Console) -> None:
    """After training: test the weights of the last epoch, as the paper does, and the best on validation."""
    figures: dict[str, Any] = {"unit": trainee.config.unit, **figures_of(trainee)}
    with trainee.evaluated_weights():
        figures["test_f1_last_epoch"] = round(scores_of(trainee.model, trainee.dataset.test)["all"].f1, 4)
    if run.best.exists():
        best = checkpoint.load(run.best, "ner")
        load_weights(trainee.model, best["model"])
        if "f1" in best["figures"]:  # weights that were imported have none
            figures["valid_f1"] = round(best["figures"]["f1"], 4)
        scores = scores_of(trainee.model, trainee.dataset.test)
        figures["test_f1"] = round(scores["all"].f1, 4)
        figures["test"] = {name: _numbers(value) for name, value in scores.items()}
    run.add_metrics(**figures)
    by_type = figures.pop("test", {})
    print_figures(console, figures)
    for name, row in by_type.items():
        shown = "  ".join(f"{key} {value:6}" for key, value in row.items())
        console.print(f"  {name:6} {shown}", highlight=False, markup=False)


def _numbers(score: Score) -> dict[str, float]:
    return {
        "precision": round(score.precision, 2),
        "recall": round(score.recall, 2),
        "f1": round(score.f1, 2),
        "entities": score.there,
    }


def empty_model(run: Run) -> Tagger:
    """A model of a run's shape."""
    config: NERConfig = from_dict(NERConfig, run.config)
    path = run.best if run.best.exists() else run.last
    width = _width(checkpoint.load(path, "ner")) if path.exists() else config.word_width
    return Tagger(config, _codes(run), width)


def _codes(run: Run) -> Codes:
    for name in CODES:
        run.file(name)
    return Codes.load(run.folder)


def load(run: Run, last: bool = False) -> Tagger:
    """The best weights of a run, or the last ones, ready for use."""
    path = run.file("last.ckpt" if last else "best.ckpt")
    model = empty_model(run)
    load_weights(model, checkpoint.load(path, "ner")["model"])
    return model.eval()


def evaluate(run: Run, options: EvaluateConfig, console: Console) -> dict[str, Any]:
    """Precision, recall and F1 on a part of the data, by type."""
    model = load(run, options.last)
    dataset = read_dataset(from_dict(NERConfig, run.config), run.data(options.data))
    scores = scores_of(model, getattr(dataset, options.part))
    return {"part": options.part, **{name: _numbers(value) for name, value in scores.items()}}


def tokenise(text: str) -> list[str]:
    """Words and punctuation apart, roughly as CoNLL-2003 has them.

    >>> tokenise("Anna's in Lugano, since 1996.")
    ['Anna', "'s", 'in', 'Lugano', ',', 'since', '1996', '.']
    """
    return re.findall(r"'s\b|\w+(?:[-.&/]\w+)*|\S", text)


def predict(run: Run, options: PredictConfig, console: Console) -> None:
    """Tag lines of text as they come, blank ones too: what comes out can be laid beside what went in."""
    model = load(run)
    for line in each_line(options.files):
        words = line.split() if options.split else tokenise(line)
        tags = _tags(model, words)
        if options.format == "json":
            found = {"words": words, "tags": tags, "entities": _spans(line, words, tags)}
            print(json.dumps(found), flush=True)
        elif options.format == "conll":
            for word, tag in zip(words, tags, strict=True):
                print(f"{word}\t{tag}")
            print(flush=True)
        else:
            Console().print(_coloured(words, tags), soft_wrap=True)


def _tags(model: Tagger, words: list[str]) -> list[str]:
    """Of one sentence. A model that has hardly learnt may say <pad>, which is no tag for a word."""
    if not words:
        return []
    return ["O" if tag == PAD else tag for tag in model.tag(encode([words], model.codes))[0]]


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


def parameters() -> list[tuple[str, str, int]]:
    """Preset, unit and exact count of the paper's setting."""
    configs = [NERConfig(**PRESETS["paper"] | {"unit": unit}) for unit in UNITS]
    return [("paper", config.unit, count(config, CHARACTERS, TAGS)) for config in configs]


PARAMETERS_NOTE = (
    "Without the word vectors, as the paper counts; 517 characters, those of all of GloVe's words."
)
