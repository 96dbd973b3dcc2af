"""Train a model to imitate another one: the way from a trained LSTM to a lighter unit in its place."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.checks import count, kind
from lrn.migration import calls
from lrn.migration.agreement import Agreement, Tally, worse
from lrn.progress import Line, clock
from lrn.units import Unit

MEASURED = 8  # batches on which agreement is measured where the user names none
RECURRENT = (nn.RNNBase, Unit)

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Report:
    """What came of an imitation. Printed, it is a small table.

    Args:
        steps: steps taken.
        seconds: time taken, measuring included.
        loss: the mean loss over the last tenth of the steps.
        before: agreement with the teacher before the first step.
        after: the same after the last.
        batches: how many batches agreement was measured on.
        interrupted: whether it was stopped by Ctrl-C.
    """

    steps: int
    seconds: float
    loss: float
    before: Agreement
    after: Agreement
    batches: int
    interrupted: bool = False

    def __str__(self) -> str:
        ended = "interrupted after" if self.interrupted else "imitated in"
        lines = [
            f"{ended} {self.steps:,} steps, {clock(self.seconds)}; loss {self.loss:.4g}",
            f"{f'agreement on {self.batches} batches':30} {'before':>9} {'after':>9}",
            _row("variance explained", self.before.explained, self.after.explained),
        ]
        if self.before.same is not None and self.after.same is not None:
            lines.append(_row("same largest entry", self.before.same, self.after.same))
        for name, before in self.before.states.items():
            lines.append(_row(f"states of {name or 'model'}", before, self.after.states[name]))
        return "\n".join(lines)


def _row(what: str, *shares: float) -> str:
    return f"{what:30} " + " ".join(f"{share:9.2%}" for share in shares)


def distill(
    teacher: nn.Module,
    student: nn.Module,
    batches: Iterable[Any],
    *,
    steps: int | None = None,
    epochs: int | None = None,
    lr: float = 1e-3,
    loss: Loss = F.mse_loss,
    states: bool | float = False,
    valid: Iterable[Any] | None = None,
    call: calls.Call = calls.call,
    clip: float = 1.0,
    seed: int | None = None,
    verbose: bool = True,
) -> Report:
    """Train ``student``, in place, to give what ``teacher`` gives; returns a report of how far they agree.

    No labels are needed, only inputs. The teacher runs in evaluation mode and is not changed. All parameters
    of the student that are not frozen are trained, by Adam, at a rate that falls to zero where the number of
    steps is known. Ctrl-C ends it early: the student keeps what it has learnt.

    Of what the models return, a tensor (or a packed sequence, or each entry of a dict) is output; of a tuple
    only the first entry is, as with ``nn.LSTM``.

    Args:
        teacher: the trained model.
        student: a model with the same inputs and outputs: a copy of the teacher after ``lrn.replace``.
        batches: inputs: a tensor, the arguments as a tuple, the keywords as a dict, or one object a batch. A
            list or a ``DataLoader`` is gone through as often as needed, an iterator once.
        steps: how many batches to train on.
        epochs: how many times to go through ``batches`` instead; once if neither is given.
        lr: learning rate.
        loss: of the student's and the teacher's output, one number; their mean squared difference by itself.
        states: also bring the states of recurrent layers of the same name together, with this weight.
        valid: batches on which agreement is measured; without them the first eight to train on.
        call: runs a model on a batch and returns its result, where the model is not simply called.
        clip: the largest norm of the gradients.
        seed: of what is drawn at random, dropout for example; torch's own generator is left as it was.
        verbose: show progress on standard error.

    >>> import copy, torch, lrn
    >>> teacher = torch.nn.LSTM(3, 4)
    >>> student = lrn.replace(copy.deepcopy(teacher), "lrn", verbose=False)
    >>> batches = [torch.randn(6, 8, 3) for _ in range(20)]
    >>> report = lrn.distill(teacher, student, batches, steps=40, lr=0.01, verbose=False)
    >>> report.after.explained > report.before.explained
    True
    """
    _check(teacher, student, steps, epochs, lr, clip, states)
    both = _Both(teacher, student, call, loss, float(states))
    start = time.perf_counter()
    with _modes(teacher, student), _seeded(seed), both.watched():
        source = _Source(batches, steps, epochs)  # in here, since a DataLoader may draw its order
        measured = source.first if valid is None else list(valid)
        if not measured:
            raise ValueError("valid is empty: there is nothing to measure agreement on")
        before = both.agreement(measured)
        losses, interrupted = _train(both, source, lr, clip, Line(verbose))
        after = both.agreement(measured)
    last = losses[-max(1, len(losses) // 10) :]
    mean = sum(last) / len(last) if last else math.nan
    taken = time.perf_counter() - start
    if worse(before, after):
        warnings.warn(
            "the student agrees less with the teacher than before: variance explained "
            f"{before.explained:.2%} to {after.explained:.2%}; try another lr than {lr:g}, or more steps",
            stacklevel=2,
        )
    return Report(len(losses), taken, mean, before, after, len(measured), interrupted)


def _check(
    teacher: nn.Module,
    student: nn.Module,
    steps: int | None,
    epochs: int | None,
    lr: float,
    clip: float,
    states: float,
) -> None:
    for name, model in (("teacher", teacher), ("student", student)):
        if not isinstance(model, nn.Module):
            raise TypeError(f"{name} must be an nn.Module, got {kind(model)}")
    if teacher is student:
        raise ValueError(
            "teacher and student are the same model; lrn.replace changes a model in place: "
            "student = lrn.replace(copy.deepcopy(teacher), …)"
        )
    trained = {id(p): name for name, p in student.named_parameters() if p.requires_grad}
    if not trained:
        raise ValueError("student has no parameter to train: all of them are frozen")
    shared = [trained[id(p)] for p in teacher.parameters() if id(p) in trained]
    if shared:
        raise ValueError(
            f"training the student would change the teacher: they share {shared[0]}; copy it, or freeze it"
        )
    if steps is not None and epochs is not None:
        raise ValueError("give steps or epochs, not both")
    for name, given in (("steps", steps), ("epochs", epochs)):
        if given is not None:
            count(name, given)
    for name, number in (("lr", lr), ("clip", clip)):
        if not (isinstance(number, int | float) and 0 < number < math.inf):
            raise ValueError(f"{name} must be a positive number, got {number!r}")
    if not (isinstance(states, int | float) and 0 <= states < math.inf):
        raise ValueError(f"states must be a weight of 0 or more, got {states!r}")


class _Source:
    """The batches to train on, as often as they are gone through."""

    def __init__(self, batches: Iterable[Any], steps: int | None, epochs: int | None) -> None:
        if isinstance(batches, Tensor | dict | str):
            raise TypeError(f"batches must be several inputs, a list for example, got {kind(batches)}")
        self._again = batches
        self._rest = iter(batches)
        self._once = self._rest is batches
        if self._once and (epochs or 1) > 1:
            raise ValueError(
                f"batches is an iterator, which can be gone through once and not {epochs} times; give a list"
            )
        self.first = list(islice(self._rest, MEASURED))
        if not self.first:
            raise ValueError("batches is empty")
        self._epochs = epochs or (None if steps else 1)
        length = _length(batches)
        self.steps = steps or (length * self._epochs if length and self._epochs else None)

    def __iter__(self) -> Iterator[Any]:
        return islice(self._all(), self.steps)

    def _all(self) -> Iterator[Any]:
        yield from chain(self.first, self._rest)
        done = 1
        while not self._once and (self._epochs is None or done < self._epochs):
            yield from self._again
            done += 1


def _length(batches: Iterable[Any]) -> int | None:
    try:
        return len(batches) if isinstance(batches, Sized) else None
    except TypeError:  # so says a DataLoader whose data has no length
        return None


class _Both:
    """Teacher and student on the same batch."""

    def __init__(
        self, teacher: nn.Module, student: nn.Module, call: calls.Call, loss: Loss, weight: float
    ) -> None:
        self.teacher, self.student, self.call, self.loss, self.weight = teacher, student, call, loss, weight
        self.seen: dict[tuple[bool, str], list[Tensor]] = {}  # states of a layer, of the student or not
        mine = {name for name, module in student.named_modules() if isinstance(module, RECURRENT)}
        theirs = [name for name, module in teacher.named_modules() if isinstance(module, RECURRENT)]
        self.layers = [name for name in theirs if name in mine] if weight else []
        if weight and not self.layers:
            raise ValueError("states: teacher and student have no recurrent layer of the same name")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Open a block in which the states of the layers are seen."""
        handles = []
        for is_student, model in ((False, self.teacher), (True, self.student)):
            for name in self.layers:

                def see(module: Any, given: Any, result: Any, key: Any = (is_student, name)) -> None:
                    self.seen.setdefault(key, []).extend(calls.outputs_of(result))

                handles.append(model.get_submodule(name).register_forward_hook(see))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def run(self, batch: Any) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs of student and teacher."""
        self.seen.clear()
        with torch.no_grad():
            theirs = calls.outputs_of(self.call(self.teacher, batch))
        mine = calls.outputs_of(self.call(self.student, batch))
        if [tuple(output.shape) for output in mine] != [tuple(output.shape) for output in theirs]:
            shapes = [", ".join(str(list(output.shape)) for output in outputs) for outputs in (theirs, mine)]
            raise ValueError(f"the teacher gives {shapes[0]} where the student gives {shapes[1]}")
        pairs = [pair for pair in zip(mine, theirs, strict=True) if pair[1].is_floating_point()]
        if not pairs:
            raise TypeError("the outputs are whole numbers, which cannot be imitated; give call=")
        return [one for one, _ in pairs], [other for _, other in pairs]

    def states(self) -> Iterator[tuple[str, Tensor, Tensor]]:
        """The states of each layer, the student's and the teacher's, of the batch that was run."""
        for name in self.layers:
            mine, theirs = (self.seen.get((is_student, name), []) for is_student in (True, False))
            if not mine or [tuple(s.shape) for s in mine] != [tuple(s.shape) for s in theirs]:
                raise ValueError(f"states: {name or 'model'} is not run alike in teacher and student")
            for one, other in zip(mine, theirs, strict=True):
                yield name, one, other

    def lost(self, batch: Any) -> Tensor:
        mine, theirs = self.run(batch)
        losses = [_number(self.loss(*pair)) for pair in zip(mine, theirs, strict=True)]
        total = torch.stack(losses).mean()
        if self.layers:
            apart = torch.stack([F.mse_loss(one, other) for _, one, other in self.states()])
            total = total + self.weight * apart.mean()
        return total

    @torch.no_grad()
    def taught(self, batch: Any) -> bool:
        """Whether what the teacher gives are numbers."""
        return all(
            bool(output.isfinite().all()) for output in calls.outputs_of(self.call(self.teacher, batch))
        )

    @torch.no_grad()
    def agreement(self, batches: list[Any]) -> Agreement:
        tally, training = Tally(self.layers), [(m, m.training) for m in self.student.modules()]
        self.student.eval()
        for batch in batches:
            tally.add(*self.run(batch))
            for name, one, other in self.states():
                tally.add_states(name, one, other)
        for module, mode in training:
            module.training = mode
        return tally.agreement()


def _number(loss: Any) -> Tensor:
    """What a loss has returned, which must be one number."""
    if isinstance(loss, Tensor) and loss.numel() == 1:
        return loss.squeeze()
    given = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else kind(loss)
    raise TypeError(f"loss must return a tensor of one number, got {given}")


def _train(both: _Both, source: _Source, lr: float, clip: float, line: Line) -> tuple[list[float], bool]:
    """Losses of all steps, and whether somebody put an end to it."""
    trained = [parameter for parameter in both.student.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr)
    losses: list[float] = []
    start = time.perf_counter()
    both.student.train()
    try:
        for step, batch in enumerate(source):
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - step / source.steps) if source.steps else lr
            optimizer.zero_grad()
            with torch.enable_grad():
                loss = both.lost(batch)
            number = loss.item()
            if not math.isfinite(number):
                way_out = f"try a smaller lr than {lr:g}"
                if not both.taught(batch):
                    way_out = "the teacher's output is not finite there"
                raise FloatingPointError(f"the loss is {number} at step {step + 1}; {way_out}")
            loss.backward()
            nn.utils.clip_grad_norm_(trained, clip)
            optimizer.step()
            losses.append(number)
            if line.due():
                line.say(_progress(losses, source.steps, time.perf_counter() - start))
    except KeyboardInterrupt:
        return losses, True
    finally:
        optimizer.zero_grad()
        line.end()
    return losses, False


def _progress(losses: list[float], steps: int | None, seconds: float) -> str:
    done, recent = len(losses), losses[-20:]
    of = f"/{steps:,}" if steps else ""
    left = f"  {clock(seconds / done * (steps - done))} left" if steps else ""
    return f"imitating: step {done:,}{of}  loss {sum(recent) / len(recent):.4g}{left}"


@contextmanager
def _modes(teacher: nn.Module, student: nn.Module) -> Iterator[None]:
    """Open a block in which the teacher evaluates; after it both are in the modes they were in."""
    before = [(module, module.training) for model in (teacher, student) for module in model.modules()]
    teacher.eval()
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    with torch.random.fork_rng(enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        yield
