"""What torch must know of the ops: shapes, gradient, second gradient, autocast and vmap.

Arguments come in the order of ``schemas.py``; shapes are those of ``ops.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lrn.recurrence import cells, modes
from lrn.recurrence.library import library
from lrn.recurrence.ops import definition, gradient, save
from lrn.recurrence.rows import Rows


def _scan(*args: Any) -> Any:
    run: Any = MappedScan.apply if _in_functorch() else torch.ops.lrn.scan
    return run(*args)


def _scan_backward(*args: Any) -> Any:
    run: Any = MappedScanBackward.apply if _in_functorch() else torch.ops.lrn.scan_backward
    return run(*args)


def _in_functorch() -> bool:
    return modes.transformed() and not modes.compiling()


def _fake_scan(
    x: Tensor,
    state: Tensor,
    weight: Tensor | None,
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    reset: Tensor | None,
    cell: str,
    *rest: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    shape = (*x.shape[:-3], x.shape[-3] * x.shape[-1])
    memory = x.new_empty(shape if cells.CELLS[cell].parts == 2 else (0,))
    return x.new_empty(shape), memory, x.new_empty(state.shape)


def _fake_scan_backward(
    grad_output: Tensor | None,
    grad_final: Tensor | None,
    x: Tensor,
    state: Tensor,
    weight: Tensor | None,
    *rest: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    return *fake_gradients(x, state), x.new_empty((0,) if weight is None else weight.shape)


def fake_gradients(x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of ``x`` keeps its strides, but for features that are not adjacent."""
    grad_x = torch.empty_like(x)
    if x.shape[-1] > 1 and grad_x.stride(-1) != 1:
        grad_x = grad_x.contiguous()
    return grad_x, x.new_empty(state.shape)


def _save_scan(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    hidden, memory, _ = output
    ctx.mark_non_differentiable(memory)
    save(ctx, inputs, hidden, memory)


def _scan_gradient(ctx: Any, grad_output: Any, _: None, grad_final: Any) -> tuple[Any, ...]:
    return gradient(ctx.saved_tensors, ctx.how, grad_output, grad_final, _scan_backward)


def _save_scan_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    grad_output, grad_final, x, state, weight, _, lengths, batch_sizes, reset, *ctx.how = inputs
    ctx.save_for_backward(grad_output, grad_final, x, state, weight, lengths, batch_sizes, reset)


def _scan_second_gradient(ctx: Any, *seconds: Tensor) -> tuple[Any, ...]:
    *given, lengths, batch_sizes, reset = ctx.saved_tensors
    cell, direction, batch_first, *by = ctx.how
    rows = Rows(given[3].shape[2], batch_first, lengths, batch_sizes, reset)

    def run(x: Tensor, state: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return definition(cell, x, state, weight, rows, direction)

    return *second_gradient(run, given, seconds), *(None,) * (7 + len(by))


def second_gradient(
    run: Callable[..., tuple[Tensor, Tensor]], given: Sequence[Tensor | None], seconds: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """The gradient of the gradient of ``run(*inputs) -> output, final``, the definition of an op.

    ``given``: the gradients of output and final, then the inputs; gradients and the last input may be None.
    """
    vjp: Any = torch.func.vjp
    there = [n for n, value in enumerate(given) if value is not None]

    def first_gradient(*values: Tensor) -> tuple[Tensor, ...]:
        now = dict(zip(there, values, strict=True))
        (output, final), pull = vjp(run, *(now[n] for n in there if n > 1))
        return tuple(pull((now.get(0, torch.zeros_like(output)), now.get(1, torch.zeros_like(final)))))

    _, pull = vjp(first_gradient, *(value for value in given if value is not None))
    inputs = sum(n > 1 for n in there)
    result = dict(zip(there, pull(tuple(seconds[:inputs])), strict=True))
    return tuple(result.get(n) for n in range(len(given)))


def _autocast(x: Tensor, state: Tensor, weight: Tensor | None, *rest: Any) -> Any:
    """Whatever the projection came out in is kept: inside, the state is float32 in any case."""
    with torch.autocast(x.device.type, enabled=False):
        weight = None if weight is None else weight.to(x.dtype)
        return torch.ops.lrn.scan(x, state.to(x.dtype), weight, *rest)


class _Fold:
    """Folds a vmapped dimension into the batch, which is all it takes: rows know nothing of each other."""

    def __init__(self, size: int, batch_first: bool) -> None:
        self.size = size
        self.token = 0 if batch_first else 1  # where the batch is in a tensor with a row per token

    def __call__(self, value: Tensor | None, mapped: int | None, batch: int) -> Tensor | None:
        if value is None:
            return None
        if mapped is None:
            value = value.unsqueeze(batch)
            value = value.expand(*value.shape[:batch], self.size, *value.shape[batch + 1 :])
        else:
            value = value.movedim(mapped, batch)
        return value.flatten(batch, batch + 1)

    def undo(self, value: Tensor, batch: int) -> tuple[Tensor, int | None]:
        if value.dim() == 1:  # the empty stand-in for what the cell does not have
            return value, None
        return value.unflatten(batch, (self.size, -1)), batch


def one_by_one(op: Any, info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
    """For packed rows, whose batch is woven into time, and ops whose matrix is the whole batch's."""
    each = [
        op(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)))
        for i in range(info.batch_size)
    ]
    return tuple(torch.stack(results) for results in zip(*each, strict=True)), (0,) * len(each[0])


def _vmap_scan(run: Any, info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
    x, state, weight, lengths, batch_sizes, reset, *how = args
    if batch_sizes is not None:
        return one_by_one(run, info, in_dims, *args)
    fold = _Fold(info.batch_size, how[2])
    output, memory, final = run(
        fold(x, in_dims[0], fold.token),
        fold(state, in_dims[1], 2),
        fold(weight, in_dims[2], 0),
        fold(lengths, in_dims[3], 0),
        None,
        fold(reset, in_dims[5], fold.token),
        *how,
    )
    results = fold.undo(output, fold.token), fold.undo(memory, fold.token), fold.undo(final, 2)
    return tuple(r for r, _ in results), tuple(d for _, d in results)


def _vmap_scan_backward(run: Any, info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
    grad_output, grad_final, x, state, weight, memory, lengths, batch_sizes, reset, *how = args
    if batch_sizes is not None:
        return one_by_one(run, info, in_dims, *args)
    fold = _Fold(info.batch_size, how[2])
    grad_x, grad_state, grad_weight = run(
        fold(grad_output, in_dims[0], fold.token),
        fold(grad_final, in_dims[1], 2),
        fold(x, in_dims[2], fold.token),
        fold(state, in_dims[3], 2),
        fold(weight, in_dims[4], 0),
        fold(memory, in_dims[5], fold.token),
        fold(lengths, in_dims[6], 0),
        None,
        fold(reset, in_dims[8], fold.token),
        *how,
    )
    results = fold.undo(grad_x, fold.token), fold.undo(grad_state, 2), fold.undo(grad_weight, 0)
    return tuple(r for r, _ in results), tuple(d for _, d in results)


# torch.func's transforms take an autograd.Function of this form, but no registered gradient.


class MappedScan(torch.autograd.Function):
    forward = staticmethod(lambda *args: torch.ops.lrn.scan(*args))
    setup_context = staticmethod(_save_scan)
    backward = staticmethod(_scan_gradient)
    vmap = staticmethod(partial(_vmap_scan, _scan))


class MappedScanBackward(torch.autograd.Function):
    forward = staticmethod(lambda *args: torch.ops.lrn.scan_backward(*args))
    setup_context = staticmethod(_save_scan_backward)
    backward = staticmethod(_scan_second_gradient)
    vmap = staticmethod(partial(_vmap_scan_backward, _scan_backward))


for _name, _fake, _backward, _setup, _vmap in (
    ("scan", _fake_scan, _scan_gradient, _save_scan, _vmap_scan),
    ("scan_backward", _fake_scan_backward, _scan_second_gradient, _save_scan_backward, _vmap_scan_backward),
):
    for _overload in ("default", "by"):
        _op = getattr(getattr(torch.ops.lrn, _name), _overload)
        torch.library.register_fake(_op, _fake, lib=library)
        torch.library.register_autograd(_op, _backward, setup_context=_setup, lib=library)
        torch.library.register_vmap(_op, partial(_vmap, _op), lib=library)
for _key in modes.AUTOCAST_KEYS:
    library.impl("scan", _autocast, _key)
    library.impl("scan.by", _autocast, _key)
