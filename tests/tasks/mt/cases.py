"""What the tests of the translation model share: small settings, sentences, models, trainings."""

from pathlib import Path

import numpy as np
import torch
from tasks.trainings import PLAIN, lrn

from lrn.tasks.mt import generator
from lrn.tasks.mt.config import MTConfig
from lrn.tasks.mt.data import read_builtin
from lrn.tasks.mt.model import Translator
from lrn.tasks.mt.task import TASK

SMALL = {"hidden": 8, "encoder_layers": 2, "decoder_layers": 2, "heads": 2, "dropout": 0.0, "merges": 60}
TINY = (
    "--hidden 16 --encoder_layers 2 --decoder_layers 2 --heads 2 --merges 60 --batch_tokens 400 --threads 1"
).split()


def sentences(*lengths, types=9, seed=1):
    """Numbers of pieces that are none of the special ones."""
    draw = np.random.default_rng(seed)
    return [draw.integers(3, types, length).astype(np.int32) for length in lengths]


def model_of(unit="lrn", sources=11, targets=9, spread=0.5, **own):
    """In float64, ready for use, with weights large enough that everything counts."""
    torch.manual_seed(3)
    config = MTConfig(**SMALL | {"unit": unit} | own)
    model = Translator(config, sources, targets).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn(parameter.shape, dtype=torch.float64))
    return model


def learner(data=None, **own):
    """In float64, on a few made sentences; its steps change the weights by their gradients."""
    data = data or read_builtin(100)
    config = MTConfig(**SMALL | PLAIN | {"threads": 1} | own)
    made = TASK.learner_on(config, data, TASK.first_kept(config, data))
    made.model.double()
    return made


def write_pairs(folder: Path, count: int = 40) -> Path:
    """Made sentences in pairs of files, with a second test part."""
    folder.mkdir(exist_ok=True)
    for part, names in (("train", ["train"]), ("valid", ["val"]), ("test", ["test_2016", "test_2017"])):
        found = generator.pairs(count * len(names), part=part, seed=1)
        for place, name in enumerate(names):
            some = found[place * count : (place + 1) * count]
            for side, language in enumerate(("en", "de")):
                (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in some))
    return folder


def train_run(folder: Path, out: Path, *words) -> int:
    """By the command, into a run folder."""
    return lrn("train", "mt", "--data", folder, "--out", out, *TINY, *words)
