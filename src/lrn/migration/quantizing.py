"""Give a trained model int8 weights where that makes it faster."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lrn import checks
from lrn.migration import calls
from lrn.migration.carried import carry_hooks, describe
from lrn.migration.int8 import INT8, Int8Linear, Int8Unit, int8_unit, why_missing
from lrn.units import Unit

LEAST_GAIN = 1.05  # times as fast; less is within what two timings of the same thing differ
SECONDS = 0.15  # to time a part for
LINEAR: set[type[nn.Module]] = {nn.Linear}  # what counts as one; subclasses that mean the same are added
ROWS = 8  # sequences in a made-up batch, as far as there are tokens for them


@dataclass(frozen=True)
class _Part:
    """A part of a model that may have int8 weights, and what came of timing it."""

    name: str
    old: nn.Module
    new: nn.Module
    gain: float  # times as fast
    apart: float  # how far outputs are from those of float32, relative to their size
    bytes: tuple[int, int]  # of all its weights, before and after

    def line(self, taken: bool) -> str:
        what = f"{self.name or 'model'}: {describe(self.old)}"
        if not taken:
            return f"{what} stays in float32: with int8 it is {self.gain:.2f} times as fast"
        return (
            f"{what} -> int8, {self.gain:.2f} times as fast, outputs {self.apart:.2%} apart, "
            f"{self.bytes[0]:,} -> {self.bytes[1]:,} bytes"
        )


def quantize(
    model: nn.Module,
    example: Any = None,
    *,
    call: calls.Call = calls.call,
    tokens: int = 256,
    linear: bool = True,
    force: bool = False,
    verbose: bool = True,
) -> nn.Module:
    """Return a copy of a trained model with int8 weights, for faster inference on a CPU.

    The projections of every unit, and every ``nn.Linear``, are timed in float32 and in int8, and become int8
    where that is faster; the walk over time stays in float32. What goes into a product is brought to 8 bits
    at every call (dynamic quantisation), so that results depend a little on what else is in the batch. The
    copy is in evaluation mode, without gradients; the model itself is not changed.

    Args:
        model: a model with units of lrn inside, in float32 on the CPU; or a unit.
        example: a batch, on which each part is timed as the model runs it: a tensor, the arguments as a
            tuple, the keywords as a dict, or one object.
        call: runs the model on that batch, where it is not simply called.
        tokens: without an example, how many tokens a part is timed on; 1 for a stream.
        linear: whether ``nn.Linear`` may become int8 too.
        force: take int8 also where it is no faster.
        verbose: print a line for each part.

    Raises:
        RuntimeError: if no part gets faster on this processor.

    >>> import torch, lrn
    >>> model = lrn.LRN(64, 64)
    >>> small = lrn.quantize(model, force=True, verbose=False)
    >>> with torch.no_grad():
    ...     output, state = small(torch.randn(5, 2, 64))
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {checks.kind(model)}")
    checks.count("tokens", tokens)
    missing = why_missing()
    if missing:
        raise RuntimeError(f"torch's int8 kernels cannot run here: {missing}")
    given = _candidates(model, linear)
    copied = _copy(model)
    found = [(name, copied.get_submodule(name)) for name in given]
    inputs = {} if example is None else _seen(copied, dict(found), example, call)
    parts = [_timed(name, part, inputs.get(name) or _made_up(part, tokens)) for name, part in found]
    taken = [part for part in parts if force or part.gain >= LEAST_GAIN]
    if not taken:
        tried = "; ".join(part.line(False) for part in parts)
        raise RuntimeError(f"int8 gains nothing on this processor: {tried}. force=True takes it all the same")
    for part in parts:
        if verbose:
            print(part.line(part in taken))
        if part not in taken:
            continue
        for name, module in list(copied.named_modules(remove_duplicate=False)):
            if module is not part.old:
                continue
            if not name:
                return part.new
            parent, _, child = name.rpartition(".")
            setattr(copied.get_submodule(parent), child, part.new)
    return copied


def _candidates(model: nn.Module, linear: bool) -> list[str]:
    """The names of the parts that can have int8 weights; an error that says why if there is none."""
    found, wrong = [], []
    for name, module in model.named_modules():
        if isinstance(module, Unit):
            kind: Any = parametrize.type_before_parametrizations(module)
            if issubclass(kind, Int8Unit):
                raise ValueError(f"{name or 'model'} has int8 weights already")
            if kind not in INT8:
                wrong.append(f"{name or 'model'} ({kind.__name__}) is a unit of another class")
                continue
        elif not (linear and type(module) in LINEAR):
            continue
        kinds = {(p.dtype, p.device.type) for p in module.parameters()}
        if kinds == {(torch.float32, "cpu")}:
            found.append(name)
        else:
            said = ", ".join(f"{dtype} on {device}" for dtype, device in sorted(kinds, key=str))
            wrong.append(f"{name or 'model'} is {said}, not float32 on the CPU")
    if found:
        return found
    layers = any(isinstance(module, nn.RNNBase) for module in model.modules())
    why = "; ".join(wrong) or "it has no unit of lrn" + (" and no nn.Linear" if linear else "")
    hint = "; swap its nn.LSTM and nn.GRU with lrn.replace first" if layers else ""
    raise ValueError(f"nothing in {type(model).__name__} can have int8 weights: {why}{hint}")


def _copy(model: nn.Module) -> nn.Module:
    try:
        copied = copy.deepcopy(model)
    except RuntimeError as error:
        raise ValueError(f"the model cannot be copied: {str(error).splitlines()[0]}") from None
    return copied.eval().requires_grad_(False)


def _seen(
    model: nn.Module, parts: dict[str, nn.Module], example: Any, call: calls.Call
) -> dict[str, tuple[Any, Any]]:
    """What each part is called with, the first time, when the model runs on the example."""
    seen: dict[str, tuple[Any, Any]] = {}

    def see(name: str) -> Callable[..., None]:
        return lambda module, args, kwargs: seen.setdefault(name, (args, kwargs)) and None

    handles = [part.register_forward_pre_hook(see(name), with_kwargs=True) for name, part in parts.items()]
    try:
        with torch.no_grad():
            call(model, example)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _made_up(part: nn.Module, tokens: int) -> tuple[Any, Any]:
    """A batch of so many tokens, always the same."""
    source = torch.Generator().manual_seed(1)
    if isinstance(part, nn.Linear):
        return (torch.randn(tokens, part.in_features, generator=source),), {}
    assert isinstance(part, Unit)
    rows = min(ROWS, tokens)
    leading = (rows, max(1, tokens // rows)) if part.batch_first else (max(1, tokens // rows), rows)
    return (torch.randn(*leading, part.input_size, generator=source),), {}


def _timed(name: str, old: nn.Module, given: tuple[Any, Any]) -> _Part:
    """A part with int8 weights, timed beside the one it comes from."""
    new: nn.Module
    if isinstance(old, Unit):
        new = int8_unit(copy.deepcopy(old))
    else:
        assert isinstance(old, nn.Linear)
        new = Int8Linear(old.weight, old.bias)
        carry_hooks(old, new)
    args, kwargs = given
    with torch.no_grad():
        wanted, found = (
            torch.cat([output.flatten() for output in calls.outputs_of(part(*args, **kwargs))])
            for part in (old, new)
        )
        apart = float((found - wanted).norm() / wanted.norm().clamp_min(1e-30))
        gain = _gain(lambda: old(*args, **kwargs), lambda: new(*args, **kwargs))
    return _Part(name, old, new, gain, apart, (_bytes(old), _bytes(new)))


def _gain(before: Callable[[], object], after: Callable[[], object]) -> float:
    """How many times as fast one is as the other: they take turns, and the quickest calls are compared."""
    taken: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while len(taken[0]) < 7 or (time.perf_counter() - start < SECONDS and len(taken[0]) < 500):
        for times, run in zip(taken, (before, after), strict=True):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
    return min(taken[0]) / min(taken[1])


def _bytes(module: nn.Module) -> int:
    tensors: list[Tensor] = [*module.parameters(), *module.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
