"""What the tests of the tagger share: small settings, sentences, learners and trainings."""

from pathlib import Path

from tasks.trainings import PLAIN, lrn

from lrn.tasks.ner import generator
from lrn.tasks.ner.config import NERConfig
from lrn.tasks.ner.data import Codes, read_builtin
from lrn.tasks.ner.task import TASK, Kept

SMALL = {"word_width": 6, "char_width": 3, "char_hidden": 4, "hidden": 5, "dense": 4, "dropout": 0.0}
TINY = "--word_width 8 --char_width 4 --char_hidden 4 --hidden 8 --dense 8 --threads 1".split()


def learner(**own):
    """In float64, on a few made sentences; its steps change the weights by their gradients."""
    dataset = read_builtin(20)
    config = NERConfig(**SMALL | PLAIN | {"threads": 1} | own)
    made = TASK.learner_on(config, dataset, Kept(Codes.of(dataset.train)))
    made.model.double()
    return made


def write_sentences(folder: Path, count: int = 40) -> Path:
    """Made sentences as CoNLL-2003 has them, and vectors for two of their words."""
    for part in ("train", "valid", "test"):
        with (folder / f"{part}.txt").open("w") as file:
            for words, tags in generator.sentences(count, part=part):
                file.writelines(f"{w} {t}\n" for w, t in zip(words, tags, strict=True))
                file.write("\n")
    (folder / "vectors.txt").write_text(". 1 2 3 4\nin 0 0 0 1\nunneeded 1 1 1 1\n")
    return folder


def train_run(folder: Path, out: Path, *words) -> int:
    """By the command, into a run folder."""
    return lrn("train", "ner", "--data", folder, "--out", out, *TINY, *words)
