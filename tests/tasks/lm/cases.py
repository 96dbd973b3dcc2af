"""What the tests of the language model share: small settings, models, texts and learners."""

from pathlib import Path

import torch
from helpers import randn
from tasks.trainings import lrn

from lrn.tasks.lm.config import LMConfig
from lrn.tasks.lm.data import Corpus
from lrn.tasks.lm.model import LanguageModel
from lrn.tasks.lm.task import TASK, Kept, LMLearner, LMTask
from lrn.text.vocabulary import END, UNKNOWN, Vocabulary
from lrn.training.run import Run

WORDS = 13

SMALL = {"embedding": 4, "hidden": 6, "last": 5} | dict.fromkeys(
    ("drop_words", "drop_input", "drop_hidden", "drop_output", "drop_latent", "drop_weights"), 0.0
)


SIZES = "--embedding 4 --hidden 6 --last 5 --batch_size 4 --bptt 10 --delta 5 --valid_columns 2 --threads 1"
SGD = "--optimizer sgd --schedule constant --drop_weights 0.2"


def small(**own):
    """Settings of a small model without dropout, trained by plain SGD with all that comes with it."""
    trained = {"optimizer": "sgd", "schedule": "constant", "batch_size": 4, "bptt": 10, "delta": 5, "lr": 0.5}
    return LMConfig(**SMALL | trained | {"valid_columns": 2, "threads": 1} | own)


def model(words=WORDS, seed=0, **own):
    """In float64, with every parameter random; in eval mode."""
    made = LanguageModel(small(**own), words).double().eval()
    named = {_plain(name): parameter for name, parameter in made.named_parameters()}
    with torch.no_grad():
        for number, name in enumerate(sorted(named)):
            named[name].copy_(0.5 * randn(*named[name].shape, seed=seed + number))
    return made


def _plain(name):
    """A parameter's name, weight drop or not."""
    return name.replace("parametrizations.", "").removesuffix(".original")


def text(length, words=WORDS, seed=0):
    return torch.randint(words, (length,), generator=torch.Generator().manual_seed(seed))


def corpus(train=160, valid=60, test=40):
    vocabulary = Vocabulary([END, UNKNOWN, *(f"w{n}" for n in range(WORDS - 2))])
    about = {"source": "made", "tokens": {"train": train, "valid": valid, "test": test}, "types": WORDS}
    return Corpus(vocabulary, text(train), text(valid, seed=1), text(test, seed=2), about)


def write_corpus(folder: Path, words=("<unk>", "a", "b", "c", "d"), lines=(60, 20, 20)):
    """A folder of texts in which a word is mostly followed by the next of ``words``."""
    folder.mkdir(parents=True, exist_ok=True)
    jumps = text(sum(lines) * 6, 20, seed=3)
    numbers = iter((torch.where(jumps < 14, 1, jumps).cumsum(0) % len(words)).tolist())
    for part, count in zip(("train", "valid", "test"), lines, strict=True):
        made = [" ".join(words[next(numbers)] for _ in range(6)) for _ in range(count)]
        made[0] = " ".join(words)  # in this order in every vocabulary
        (folder / f"{part}.txt").write_text("\n".join(made) + "\n")
    return folder


def learner(config, kind=LMLearner):
    """A training on :func:`corpus`, of whatever kind."""

    class Task(LMTask):
        learner_type = kind

    return Task().learner_on(config, corpus(), Kept(corpus().vocabulary))


def train_run(data: Path, out: Path, *words) -> Path:
    """By the command, into a run folder."""
    assert lrn("train", "lm", *SIZES.split(), *SGD.split(), "--data", data, "--out", out, *words) == 0
    return out


def best(run: Path) -> LanguageModel:
    """A run's best model."""
    return TASK.load(Run.open(run)).model


def log_probabilities_of(made, inputs, target, state=None):
    """Of each target word, by way of the probabilities of all words; and the state after."""
    features, after = made(inputs, state)
    return made.log_probabilities(features).gather(-1, target.unsqueeze(-1)).squeeze(-1), after
