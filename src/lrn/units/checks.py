"""What tensors a unit accepts. Every error names what was given and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from lrn.checks import kind
from lrn.recurrence import modes
from lrn.units.tracing import refuse_proxy

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
SHAPES = {
    "time": {2: "[T, I]", 3: "[T, B, I]"},
    "batch": {2: "[T, I]", 3: "[B, T, I]"},
    "packed": {2: "[rows, I]"},
}


def check_tensor(unit: str, x: object) -> None:
    if not isinstance(x, Tensor):
        refuse_proxy(unit, x)
        raise TypeError(f"{unit}: input must be a Tensor or a PackedSequence, got {kind(x)}")


def check_input(
    unit: str, x: Tensor, features: int, parameter: Tensor, layout: str, projected: bool = False
) -> None:
    check_tensor(unit, x)
    shapes = SHAPES[layout]
    if x.dim() not in shapes:
        allowed = " or ".join(shapes.values())
        raise ValueError(f"{unit}: input must be {allowed}, got {x.dim()} dimensions: shape {tuple(x.shape)}")
    if x.shape[-1] != features:
        raise wrong_features(unit, x, features, projected)
    check_kind(unit, x, parameter)


def wrong_features(unit: str, x: Tensor, features: int, projected: bool = False) -> ValueError:
    what = "input of recur is the output of project and" if projected else "input"
    return ValueError(
        f"{unit}: {what} must have {features} features in its last dimension, "
        f"got {x.shape[-1]}: shape {tuple(x.shape)}"
    )


def check_kind(unit: str, x: Tensor, parameter: Tensor) -> None:
    _check_dtype(unit, "input", x, parameter.dtype)
    if x.device != parameter.device:
        raise ValueError(f"{unit}: input is on {x.device}, the unit's parameters on {parameter.device}")


def _check_dtype(unit: str, what: str, x: Tensor, dtype: torch.dtype) -> None:
    if x.dtype == dtype:
        return
    if x.is_floating_point() and modes.autocast(x):
        return
    raise TypeError(f"{unit}: {what} must be {dtype} like the unit's parameters, got {x.dtype}")


def check_state(unit: str, state: object, parts: int, shape: tuple[int, ...], x: Tensor) -> list[Tensor]:
    """The state's tensors, ``parts`` of them, each of ``shape``."""
    if parts == 1:
        if not isinstance(state, Tensor):
            given = kind(state) + (f" of {len(state)}" if isinstance(state, tuple | list) else "")
            raise TypeError(f"{unit}: state must be one tensor {list(shape)}, got {given}")
        tensors = [state]
    else:
        if not isinstance(state, tuple | list) or len(state) != parts:
            given = f"{len(state)} tensors" if isinstance(state, tuple | list) else kind(state)
            raise TypeError(f"{unit}: state must be a pair (h, c), each {list(shape)}, got {given}")
        tensors = list(state)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{unit}: state must be made of tensors, got {kind(tensor)}")
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{unit}: state must have shape {list(shape)}, got {list(tensor.shape)}")
        _check_dtype(unit, "state", tensor, x.dtype)
        if tensor.device != x.device:
            raise ValueError(f"{unit}: state is on {tensor.device}, input on {x.device}")
    return tensors


def check_lengths(
    lengths: Tensor | Sequence[int], batch: int, steps: int, device: torch.device
) -> tuple[Tensor, list[int] | None]:
    """The lengths on ``device``, and as numbers where the host has them: none is read back from a device."""
    known = None
    if not isinstance(lengths, Tensor):
        numbers: Any = lengths
        if hasattr(numbers, "__array__"):  # numpy's, which need not be imported for it
            numbers = numbers.tolist()
        if not isinstance(numbers, Sequence) or isinstance(numbers, str):
            raise TypeError(f"lengths must be a tensor or a sequence of whole numbers, got {kind(numbers)}")
        known = list(numbers)
        try:  # texts, lists of lists and numbers of more than 64 bits make no tensor
            lengths = torch.tensor(known, dtype=None if known else torch.int64)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"lengths must be whole numbers from 0 to {steps}, got {known!r:.60}") from None
    elif modes.readable(lengths):
        known = lengths.tolist()
    if lengths.dtype not in INTEGERS:
        mask = "; of a mask [B, T] they are mask.sum(1)" if lengths.dtype == torch.bool else ""
        raise TypeError(f"lengths must be whole numbers, got {lengths.dtype}{mask}")
    if tuple(lengths.shape) != (batch,):
        raise ValueError(f"lengths must have one entry a row, [{batch}], got {list(lengths.shape)}")
    if known and not modes.compiling():  # compiled code leaves this to the engine
        if min(known) < 0:
            raise ValueError(f"lengths must not be negative, got {min(known)}")
        if max(known) > steps:
            raise ValueError(f"lengths must not exceed the input's {steps} steps, got {max(known)}")
    return lengths.to(device=device, dtype=torch.int64), known


def check_reset(reset: Tensor | PackedSequence, input: Tensor, batch_dim: int) -> Tensor:
    if not isinstance(reset, Tensor) or reset.dtype != torch.bool:
        given = reset.dtype if isinstance(reset, Tensor) else kind(reset)
        raise TypeError(f"reset must be a bool tensor, got {given}")
    if reset.shape != input.shape[:-1]:
        raise ValueError(
            f"reset must have input's leading dimensions {list(input.shape[:-1])}, got {list(reset.shape)}"
        )
    reset = reset.to(input.device)
    return reset if input.dim() == 3 else reset.unsqueeze(batch_dim)


def check_packed_reset(reset: Tensor | PackedSequence | None, input: PackedSequence) -> Tensor | None:
    if reset is None:
        return None
    if not isinstance(reset, PackedSequence) or reset.data.dtype != torch.bool:
        raise TypeError("with a PackedSequence as input, reset must be a PackedSequence of bool")
    same_sizes = reset.batch_sizes.tolist() == input.batch_sizes.tolist()
    if not same_sizes or not _same_order(reset.sorted_indices, input.sorted_indices):
        raise ValueError("reset must be packed like input: same batch_sizes, same order of rows")
    if reset.data.dim() != 1:
        rows = len(input.data)
        raise ValueError(f"reset must have one mark a row, [{rows}], got {list(reset.data.shape)}")
    return reset.data.to(input.data.device)


def _same_order(one: Tensor | None, other: Tensor | None) -> bool:
    """Whether two packed sequences have their rows in the same order, as far as the host can tell."""
    if one is None or other is None:
        return one is other
    if one is other or not (modes.readable(one) and modes.readable(other)):
        return len(one) == len(other)
    return torch.equal(one, other)
