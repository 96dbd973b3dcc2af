"""What the tests of the inference model share: small settings, pairs, learners and trainings."""

from pathlib import Path

from tasks.trainings import PLAIN, lrn

from lrn.tasks.nli import generator
from lrn.tasks.nli.config import NLIConfig
from lrn.tasks.nli.data import read_builtin
from lrn.tasks.nli.task import TASK

SMALL = {"word_width": 6, "char_width": 3, "hidden": 4, "heads": 2, "dropout": 0.0, "l2": 0.0}
TINY = "--word_width 8 --char_width 4 --hidden 8 --heads 2 --batch_size 16 --threads 1".split()


def learner(data=None, **own):
    """In float64, on a few made pairs; its steps change the weights by their gradients."""
    data = data or read_builtin(100)
    config = NLIConfig(**SMALL | PLAIN | {"threads": 1, "min_count": 1} | own)
    made = TASK.learner_on(config, data, TASK.first_kept(config, data))
    made.model.double()
    return made


def write_pairs(folder: Path, count: int = 60) -> Path:
    """Made pairs in three columns, as they would be exchanged, and vectors for two of their words."""
    folder.mkdir(exist_ok=True)
    for part, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        rows = [
            f"{pair.label}\t{' '.join(pair.premise)}\t{' '.join(pair.hypothesis)}\n"
            for pair in generator.pairs(count, part=part, seed=1)
        ]
        (folder / f"{name}.tsv").write_text("gold_label\tpremise\thypothesis\n" + "".join(rows))
    (folder / "vectors.txt").write_text("the 1 2 3 4\nwere 0 0 0 1\nunneeded 1 1 1 1\n")
    return folder


def train_run(folder: Path, out: Path, *words) -> int:
    """By the command, into a run folder."""
    return lrn("train", "nli", "--data", folder, "--out", out, *TINY, *words)
