"""What the tests of the classifier share: small settings, documents, learners and trainings."""

import csv
from pathlib import Path

from runs import flags
from tasks.trainings import PLAIN, lrn

from lrn.tasks.doc import generator
from lrn.tasks.doc.config import DocConfig
from lrn.tasks.doc.data import Codes, frequent_words
from lrn.tasks.doc.task import TASK, Kept

SMALL = {"word_width": 8, "char_width": 4, "hidden": 6, "dropout": 0.0, "drop_words": 0.0, "longest": 30}
TINY = flags(
    **{"word_width": 8, "char_width": 4, "hidden": 8, "batch_size": 16, "longest": 60, "longest_test": 80},
    **{"documents": 100, "epochs": 2, "save_steps": 1, "threads": 1},
)
"""Two epochs of six steps."""


def learner(cues, **own):
    """In float64; its steps change the weights by their gradients."""
    config = DocConfig(**SMALL | PLAIN | {"documents": 100, "threads": 1} | own)
    made = TASK.learner_on(config, cues, Kept(Codes.of(cues, frequent_words(cues, 1))))
    made.model.double()
    return made


def train_run(out: Path, *words) -> int:
    """By the command, into a run folder."""
    return lrn("train", "doc", "--out", out, *TINY, *words)


def write_documents(folder: Path) -> Path:
    """Made documents as Zhang et al. publish theirs."""
    for part, count in (("train", 100), ("test", 20)):
        with (folder / f"{part}.csv").open("w", newline="") as file:
            rows = ((d.label + 1, " ".join(d.words)) for d in generator.documents(count, part=part))
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    (folder / "classes.txt").write_text("against\nfor\n")
    return folder
