"""Training a tagger: Adam on batches of sentences of like length."""

from __future__ import annotations

from typing import Any

import torch

from lrn.tasks.ner.config import NERConfig
from lrn.tasks.ner.data import Codes, Dataset, Sentence, encode
from lrn.tasks.ner.model import Tagger
from lrn.tasks.ner.score import Score, score
from lrn.text.batches import by_length
from lrn.training.trainee import Step, Trainee


class NERTrainee(Trainee):
    """The tagger on a data set."""

    task = "ner"
    decides = "error"
    config: NERConfig

    def __init__(self, config: NERConfig, dataset: Dataset, codes: Codes, word_width: int) -> None:
        super().__init__(config)
        torch.manual_seed(config.seed)
        self.tagger = Tagger(config, codes, word_width)
        self.dataset = dataset
        self.lengths = [len(sentence.words) for sentence in dataset.train]
        self.last_f1 = 0.0

    @property
    def model(self) -> Tagger:
        return self.tagger

    def plan(self, epoch: int) -> list[list[int]]:
        return by_length(self.lengths, self.config.batch_size, seed=self.config.seed, epoch=epoch)

    def make_optimizer(self) -> torch.optim.Optimizer:
        # fused: the table of word vectors is large, and all of its moments decay at every step
        return torch.optim.Adam(self.model.parameters(), self.config.lr, eps=1e-7, fused=True)

    def learn(self, step: Step) -> tuple[float, int]:
        world = self.trainer.world_size
        mine = step.work[self.global_rank :: world]
        # processes average their gradients; with a batch that does not divide equally, by sentences
        share = len(mine) * world / len(step.work)
        sentences = [self.dataset.train[number] for number in mine or step.work[:1]]
        batch = encode([s.words for s in sentences], self.model.codes, [s.tags for s in sentences])
        loss = self.model.loss(batch)
        self.manual_backward(loss * share)
        optimizer: Any = self.optimizers()
        self.take_step(optimizer, self.config.lr)
        return loss.item(), int(batch.lengths.sum()) * world

    def validate(self) -> dict[str, float]:
        scores = evaluate(self.model, self.dataset.valid)
        return {"error": 100 - scores["all"].f1, "f1": scores["all"].f1}


def tag_all(model: Tagger, sentences: list[Sentence], size: int = 64) -> list[list[str]]:
    """Tags of all sentences, in their order; run in batches of like length."""
    order = sorted(range(len(sentences)), key=lambda n: len(sentences[n].words))
    tags: list[list[str]] = [[] for _ in sentences]
    training = model.training
    model.eval()
    for start in range(0, len(order), size):
        part = order[start : start + size]
        batch = encode([sentences[n].words for n in part], model.codes)
        for number, row in zip(part, model.tag(batch), strict=True):
            tags[number] = row
    model.train(training)
    return tags


def evaluate(model: Tagger, sentences: list[Sentence]) -> dict[str, Score]:
    """Scores by type, and of all."""
    return score([s.tags for s in sentences], tag_all(model, sentences))
