"""Training a classifier: Adam on batches of documents of like length, with averaged weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrn.tasks.doc.config import DocConfig
from lrn.tasks.doc.data import Codes, Table, cut_lengths, encode, split
from lrn.tasks.doc.documents import Documents, Part
from lrn.tasks.doc.model import Classifier, smoothed_loss
from lrn.text.batches import in_buckets
from lrn.training.trainee import Step, Trainee


class DocTrainee(Trainee):
    """The classifier on a set of documents."""

    task = "doc"
    decides = "error"
    config: DocConfig

    def __init__(self, config: DocConfig, documents: Documents, codes: Codes, vectors: Tensor | None) -> None:
        super().__init__(config)
        torch.manual_seed(config.seed)
        self.classifier = Classifier(
            config, len(codes.characters), len(codes.classes), len(codes.words), vectors
        )
        self.documents, self.codes = documents, codes
        self.table = Table(documents.types, codes)
        self.train_numbers, self.valid_numbers = split(documents, config.seed)
        self.lengths = cut_lengths(documents.train, config.longest)

    @property
    def model(self) -> Classifier:
        return self.classifier

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        config = self.config
        return in_buckets(self.train_numbers, self.lengths, config.batch_size, seed=config.seed, epoch=epoch)

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), self.config.lr)

    def learn(self, step: Step) -> tuple[float, int]:
        world = self.trainer.world_size
        mine = step.work[self.global_rank :: world]
        # processes average their gradients; with a batch that does not divide equally, by documents
        share = len(mine) * world / len(step.work)
        if not share:
            mine = step.work[:1]
        part = self.documents.train
        documents = [part.document(number, self.config.longest) for number in mine]
        batch = encode(documents, self.table, part.labels[mine])
        loss = smoothed_loss(self.model(batch), batch.labels, self.config.smoothing)
        self.manual_backward(loss * share)
        if self.config.l2:
            weights = [weight for weight in self.model.parameters() if weight.grad is not None]
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            torch._foreach_add_(gradients, [weight.detach() for weight in weights], alpha=self.config.l2)
        optimizer: Any = self.optimizers()
        self.take_step(optimizer, self.config.lr * self.config.decay**step.epoch)
        return loss.item(), int(batch.lengths.sum()) * world

    def validate(self) -> dict[str, float]:
        return measure(self, self.documents.train, self.valid_numbers)


def measure(
    trainee: DocTrainee,
    part: Part,
    numbers: NDArray[np.int64],
    progress: Callable[[float], None] | None = None,
) -> dict[str, float]:
    """Error in percent, and loss, on some documents."""
    found = classify(trainee.model, part, numbers, trainee.table, trainee.config.longest_test, progress)
    labels = torch.from_numpy(part.labels[numbers].astype(np.int64))
    right = (found.argmax(1) == labels).double().mean().item()
    loss = torch.nn.functional.nll_loss(found.clamp_min(1e-30).log(), labels).item()
    return {"error": 100 * (1 - right), "loss": loss}


def classify(
    model: Classifier,
    part: Part,
    numbers: NDArray[np.int64],
    table: Table,
    longest: int,
    progress: Callable[[float], None] | None = None,
    size: int = 64,
) -> Tensor:
    """Probabilities ``[len(numbers), classes]``; run in batches of like length."""
    order = np.argsort(cut_lengths(part, longest)[numbers], kind="stable")
    found = torch.empty(len(numbers), model.output.out_features)
    training = model.training
    model.eval()
    for start in range(0, len(order), size):
        places = order[start : start + size]
        documents = [part.document(number, longest) for number in numbers[places]]
        found[torch.from_numpy(places)] = model.probabilities(encode(documents, table))
        if progress:
            progress((start + len(places)) / len(order))
    model.train(training)
    return found
