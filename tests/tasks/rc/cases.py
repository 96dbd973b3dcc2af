"""What the tests of the reading model share: small settings, questions, learners and trainings."""

import json
from pathlib import Path

import torch
from tasks.trainings import PLAIN, lrn

from lrn.tasks.rc import generator
from lrn.tasks.rc.config import RCConfig
from lrn.tasks.rc.data import Codes, Context, encode_words, read_builtin
from lrn.tasks.rc.model import ReadingModel
from lrn.tasks.rc.task import TASK

SIZES = {"word_width": 6, "char_width": 3, "char_hidden": 4, "hidden": 5}
SMALL = SIZES | {"dropout": 0.0, "elmo_dropout": 0.0}
TINY = (
    "--word_width 8 --char_width 4 --char_hidden 4 --hidden 8 --batch_size 16 --threads 1 "
    "--held_out 2 --held_out_valid 2"
).split()

PARAGRAPHS = [
    "Oslo lies at the end of a fjord , and Bergen on the coast .".split(),
    ["Yes"],
    "In 1066 a king came over the sea".split(),
]
QUESTIONS = ["Where does Oslo lie ?".split(), "Is this longer than its text ?".split(), ["When", "?"]]
LAYERS, FEATURES = 3, 12


def learner(data=None, **own):
    """In float64, on a few made questions; its steps change the weights by their gradients."""
    config = RCConfig(**SMALL | PLAIN | {"threads": 1, "min_count": 1, "paragraphs": 50} | own)
    data = data or read_builtin(config)
    made = TASK.learner_on(config, data, TASK.first_kept(config, data))
    made.model.double()
    return made


def codes():
    types = sorted({word for row in PARAGRAPHS + QUESTIONS for word in row})
    return Codes.of(types, types[::2])


def batch(paragraphs=None, questions=None, layers=0):
    """A batch of questions, by default those above, with what a contextual encoder may say of them."""
    made = encode_words(paragraphs or PARAGRAPHS, questions or QUESTIONS, codes())
    if not layers:
        return made
    draw = torch.Generator().manual_seed(3)
    sizes = (len(made.paragraphs.rows), len(made.questions.rows))
    said = (torch.randn(layers, size, FEATURES, generator=draw, dtype=torch.float64) for size in sizes)
    object.__setattr__(made, "context", Context(*said))
    return made


def model(layers=0, seed=1, **own):
    """A small model in float64."""
    torch.manual_seed(seed)
    known = codes()
    config = RCConfig(**SMALL | own)
    features = FEATURES if layers else 0
    made = ReadingModel(
        config, len(known.characters), len(known.words), layers=layers, features=features
    ).double()
    with torch.no_grad():  # so that scores differ by more than the tests allow
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return made


def article(title, passages):
    """An article as SQuAD's files have it, of made paragraphs."""
    number = 0
    paragraphs = []
    for passage in passages:
        asked = []
        for question in passage.questions:
            number += 1
            answers = [{"text": question.answer, "answer_start": question.start}]
            asked.append({"id": f"{title}-{number}", "question": question.text, "answers": answers})
        paragraphs.append({"context": passage.text, "qas": asked})
    return {"title": title, "paragraphs": paragraphs}


def write_squad(folder: Path, articles: int = 8, official: bool = False) -> Path:
    """Made articles in files of SQuAD's form, and vectors for two of their words."""
    folder.mkdir(exist_ok=True)
    made = list(generator.paragraphs(3 * articles, part="train", seed=1))
    all_of_them = [article(f"Article_{n}", made[3 * n : 3 * n + 3]) for n in range(articles)]
    names = ("train-v1.1.json", "dev-v1.1.json") if official else ("some.json", "others.json")
    for name, share in zip(names, (all_of_them[: articles // 2], all_of_them[articles // 2 :]), strict=True):
        (folder / name).write_text(json.dumps({"version": "1.1", "data": share}))
    (folder / "vectors.txt").write_text("the 1 2 3 4\nIn 0 0 0 1\nunneeded 1 1 1 1\n")
    return folder


def write_short(folder: Path) -> Path:
    """Articles of a short sentence each."""
    texts = [
        f"{name} sleeps in {place}."
        for name in ("Anna", "Hugo")
        for place in ("Linz", "Oslo", "Rome", "Bonn")
    ]
    articles = []
    for number, text in enumerate(texts):
        answers = [{"text": text[:4], "answer_start": 0}]
        asked = [
            {"id": f"{number} {n}", "question": f"Who sleeps{'?' * n}", "answers": answers} for n in (1, 2)
        ]
        articles.append({"title": f"Article {number}", "paragraphs": [{"context": text, "qas": asked}]})
    (folder / "short.json").write_text(json.dumps({"version": "1.1", "data": articles}))
    return folder


def train_run(folder: Path, out: Path, *words) -> int:
    """By the command, into a run folder."""
    return lrn("train", "rc", "--data", folder, "--out", out, *TINY, *words)
