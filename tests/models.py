"""Small models of every task as run folders, made without training: weights are random, but not small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tasks.lm.cases import SMALL as LM
from tasks.lm.cases import write_corpus

from lrn import tasks
from lrn.training import checkpoint
from lrn.training.run import Run

SIZES: dict[str, dict[str, Any]] = {
    "lm": LM | {"batch_size": 4, "bptt": 10, "valid_columns": 2},
    "ner": {"word_width": 6, "char_width": 3, "char_hidden": 4, "hidden": 5, "dense": 4, "sentences": 60},
    "doc": {"word_width": 8, "char_width": 4, "hidden": 6, "documents": 100, "longest_test": 80},
    "nli": {"word_width": 6, "char_width": 3, "hidden": 4, "heads": 2, "pairs": 100},
    "rc": {"word_width": 6, "char_width": 3, "char_hidden": 4, "hidden": 5, "paragraphs": 50},
    "mt": {"hidden": 8, "encoder_layers": 2, "decoder_layers": 2, "heads": 2, "merges": 60, "pairs": 100},
}


def make_run(task: str, folder: Path, **own: Any) -> Path:
    """A run folder as a training leaves it, and its data beside it where the task has none built in."""
    said = tasks.load(task)
    if task == "lm" and "data" not in own:
        own["data"] = str(write_corpus(folder.with_name(f"{folder.name}-text")))
    config = said.settings.train(**SIZES[task] | {"out": str(folder), "threads": 1} | own)
    learner = said.prepare(config)
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in learner.model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.4)
    state = {"model": learner.model.state_dict(), "figures": {}, "epoch": 1}

    def fill(run: Run) -> None:
        learner.kept.save(run.folder)
        checkpoint.save(run.best, task, state)

    Run.create(task, learner.config, learner.about, fill).release()
    return folder
