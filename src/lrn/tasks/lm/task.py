"""Training a language model: SGD that turns to averaged SGD, or Adam; then finetuning."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from lrn.tasks.lm.config import LMConfig
from lrn.tasks.lm.data import Corpus, Segment, batchify, segments
from lrn.tasks.lm.evaluate import mean_loss
from lrn.tasks.lm.model import LanguageModel, State, detach, regularisation
from lrn.training.trainee import Step, Trainee


class LMTrainee(Trainee):
    """The language model on a corpus."""

    task = "lm"
    config: LMConfig

    def __init__(self, config: LMConfig, corpus: Corpus) -> None:
        super().__init__(config)
        torch.manual_seed(config.seed)
        self.language_model = LanguageModel(config, len(corpus.vocabulary))
        self.corpus = corpus
        stream = corpus.train[: round(len(corpus.train) * config.fraction)]
        self.text = batchify(stream, config.batch_size)
        self.losses: list[float] = []  # of validation, one an epoch
        self.averaging = config.stage == "finetune"
        self.states: list[State | None] = []
        self._plans: dict[int, list[Segment]] = {}
        self.plan(0)  # too short a text is an error now,
        batchify(corpus.valid, config.valid_columns)  # not after the first epoch

    @property
    def model(self) -> LanguageModel:
        return self.language_model

    def plan(self, epoch: int) -> list[Segment]:
        if epoch not in self._plans:
            config = self.config
            plan = segments(
                self.text.shape[0], base=config.bptt, delta=config.delta, seed=config.seed, epoch=epoch
            )
            self._plans = {epoch: plan}
        return self._plans[epoch]

    def make_optimizer(self) -> torch.optim.Optimizer:
        config, parameters = self.config, self.model.parameters()
        if self.averaging:
            return torch.optim.ASGD(parameters, config.lr, t0=0, lambd=0.0, weight_decay=config.weight_decay)
        if config.optimizer == "adam":
            return torch.optim.Adam(parameters, config.lr, weight_decay=config.weight_decay)
        return torch.optim.SGD(parameters, config.lr, weight_decay=config.weight_decay)

    def begin_epoch(self) -> None:
        self.states = []

    def _groups(self) -> list[Tensor]:
        """The columns of text of this process, in the groups that are run at a time."""
        mine = self.text.chunk(self.trainer.world_size, 1)[self.global_rank]
        return list(mine.split(self.config.small_batch or mine.shape[1], 1))

    def learn(self, step: Step) -> tuple[float, int]:
        segment: Segment = step.work
        groups = self._groups()
        self.states = self.states or [None] * len(groups)
        optimizer: Any = self.optimizers()
        columns = sum(text.shape[1] for text in groups)
        total = 0.0
        for number, text in enumerate(groups):
            share = text.shape[1] / columns
            here = text[segment.start : segment.start + segment.length]
            target = text[segment.start + 1 : segment.start + segment.length + 1]
            features, after = self.model(here, self.states[number])
            loss = self.model.loss(features, target)
            self.states[number] = detach(after)
            self.manual_backward((loss + regularisation(features, self.config.ar, self.config.tar)) * share)
            total += share * loss.item()
        self.take_step(optimizer, self.config.lr * segment.scale * self._schedule(step))
        return total, segment.length * self.config.batch_size

    def _schedule(self, step: Step) -> float:
        if self.config.schedule == "constant" or self.averaging:
            return 1.0
        return 1 - (step.epoch + step.index / step.steps) / self.config.epochs

    def validate(self) -> dict[str, float]:
        loss = mean_loss(self.model, self.corpus.valid, self.config.valid_columns, length=self.config.bptt)
        return {"loss": loss, "perplexity": math.exp(min(loss, 700))}

    def end_epoch(self, figures: dict[str, float]) -> bool:
        """The switch to averaged SGD or, when finetuning, the end: no progress for ``nonmono`` epochs."""
        stuck = no_progress(self.losses, figures["loss"], self.config.nonmono)
        self.losses.append(figures["loss"])
        if self.config.stage == "finetune":
            return stuck
        if stuck and self.config.optimizer == "sgd" and not self.averaging:
            self.averaging = True
            self.trainer.optimizers = [self.make_optimizer()]
        return False

    def averaged(self) -> list[Tensor]:
        """Averaged SGD's own average, where it runs."""
        if not self.averaging:
            return super().averaged()
        optimizer: Any = self.optimizers()
        state = optimizer.state
        return [state[parameter]["ax"] for parameter in self.model.parameters()]

    def carried(self) -> dict[str, Any]:
        return {"losses": self.losses, "averaging": self.averaging, "states": self.states}

    def carry(self, state: dict[str, Any]) -> None:
        self.losses, self.averaging = list(state["losses"]), bool(state["averaging"])
        self.states = list(state["states"])


def no_progress(earlier: list[float], loss: float, patience: int) -> bool:
    """NT-ASGD's trigger: worse than the best of all earlier epochs but the last ``patience``.

    >>> no_progress([5.0, 4.0, 4.1, 4.2], 4.3, patience=2)
    True
    >>> no_progress([5.0, 4.0, 3.9, 3.8], 3.7, patience=2)
    False
    """
    return len(earlier) > patience and loss > min(earlier[:-patience])
