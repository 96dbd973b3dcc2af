"""The one function through which units run an elementwise recurrence, and the torch ops behind it.

The C++ library defines two ops, ``lrn::scan`` and ``lrn::scan_backward``. Here they learn what the rest of
torch needs to know of them: their shapes (compile, export), gradient, second gradient, autocast and vmap.

Shapes: ``x [rows, D, gates, H]``, where ``rows`` are the leading dimensions that ``Rows`` describes,
``state [parts, D, B, H]``, ``weight [B, D, vectors, H]``, ``output [rows, D*H]``, ``final`` like ``state``.
``memory`` is what steps read of the step before: a tensor of its own for SRU, else empty, being ``output``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lrn.recurrence import cells, dispatch
from lrn.recurrence.rows import Rows

_vjp: Any = torch.func.vjp
REVERSE = {"forward": (False,), "reverse": (True,), "both": (False, True)}


def scan(
    cell: str,
    x: Tensor,
    state: Tensor,
    weight: Tensor | None,
    rows: Rows,
    direction: str = "forward",
) -> tuple[Tensor, Tensor]:
    """Walk ``cell`` over the projected sequence ``x``; returns output and final state.

    Shapes as above, but ``weight [D, vectors, H]``. ``direction`` is "forward", "reverse", or "both",
    one beside the other (D = 2).

    >>> import torch
    >>> x, state = torch.randn(5, 2, 1, 3, 4), torch.zeros(1, 1, 2, 4)
    >>> output, final = scan("lrn_tanh", x, state, None, Rows(batch=2))
    >>> output.shape, final.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 1, 2, 4]))
    """
    if state.dtype != x.dtype:
        state = state.to(x.dtype)
    if weight is not None:
        weight = weight.to(x.dtype).expand(rows.batch, *weight.shape)
    if dispatch.choose(x.device) == "torch":
        return _definition(cell, x, state, weight, rows, direction)
    output, _, final = _scan(
        x, state, weight, rows.lengths, rows.batch_sizes, rows.reset, cell, direction, rows.batch_first
    )
    return output, final


def _definition(
    cell: str, x: Tensor, state: Tensor, weight: Tensor | None, rows: Rows, direction: str
) -> tuple[Tensor, Tensor]:
    output, final = cells.scan(
        cells.CELLS[cell],
        rows.pad(x),
        state,
        weight,
        lengths=rows.row_lengths(x.device),
        reset=rows.padded_reset(),
        reverse=REVERSE[direction],
    )
    return rows.unpad(output), final


def _scan(*args: Any) -> Any:
    run: Any = _Scan.apply if _in_functorch() else torch.ops.lrn.scan
    return run(*args)


def _scan_backward(*args: Any) -> Any:
    run: Any = _ScanBackward.apply if _in_functorch() else torch.ops.lrn.scan_backward
    return run(*args)


def _in_functorch() -> bool:
    """Inside ``torch.func.grad`` or ``vmap``, which take an autograd.Function but no registered gradient."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


# What torch must know of the ops. Arguments in the order of their schemas, in cpu/ops.cpp ---------------


def _fake_scan(
    x: Tensor,
    state: Tensor,
    weight: Tensor | None,
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    reset: Tensor | None,
    cell: str,
    direction: str,
    batch_first: bool,
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
    grad_x = torch.empty_like(x)
    if x.shape[-1] > 1 and grad_x.stride(-1) != 1:
        grad_x = grad_x.contiguous()
    return grad_x, x.new_empty(state.shape), x.new_empty((0,) if weight is None else weight.shape)


def _save_scan(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, state, weight, lengths, batch_sizes, reset, *ctx.how = inputs
    hidden, memory, _ = output
    kept = memory if cells.CELLS[ctx.how[0]].parts == 2 else hidden
    ctx.save_for_backward(x, state, weight, kept, lengths, batch_sizes, reset)
    ctx.mark_non_differentiable(memory)
    ctx.set_materialize_grads(False)


def _scan_gradient(ctx: Any, grad_output: Any, _: None, grad_final: Any) -> tuple[Any, ...]:
    nothing = (None,) * 6
    if grad_output is None and grad_final is None:
        return None, None, None, *nothing
    x, state, weight, memory, lengths, batch_sizes, reset = ctx.saved_tensors
    grad_x, grad_state, grad_weight = _scan_backward(
        grad_output, grad_final, x, state, weight, memory, lengths, batch_sizes, reset, *ctx.how
    )
    return grad_x, grad_state, None if weight is None else grad_weight, *nothing


def _save_scan_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    grad_output, grad_final, x, state, weight, _, lengths, batch_sizes, reset, *ctx.how = inputs
    ctx.save_for_backward(grad_output, grad_final, x, state, weight, lengths, batch_sizes, reset)


def _scan_second_gradient(ctx: Any, *seconds: Tensor) -> tuple[Any, ...]:
    """The gradient of the gradient, through the definition."""
    grad_output, grad_final, x, state, weight, lengths, batch_sizes, reset = ctx.saved_tensors
    cell, direction, batch_first = ctx.how
    rows = Rows(state.shape[2], batch_first, lengths, batch_sizes, reset)
    given = {"grad_output": grad_output, "grad_final": grad_final, "x": x, "state": state, "weight": weight}
    given = {name: value for name, value in given.items() if value is not None}

    def gradient(*values: Tensor) -> tuple[Tensor, ...]:
        now = dict(zip(given, values, strict=True))
        inputs = [now[name] for name in ("x", "state", "weight") if name in now]

        def run(x: Tensor, state: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
            return _definition(cell, x, state, weight, rows, direction)

        (output, final), pull = _vjp(run, *inputs)
        above = now.get("grad_output", torch.zeros_like(output))
        return tuple(pull((above, now.get("grad_final", torch.zeros_like(final)))))

    _, pull = _vjp(gradient, *given.values())
    result = dict(zip(given, pull(seconds[: 2 if weight is None else 3]), strict=True))
    return *(result.get(name) for name in ("grad_output", "grad_final", "x", "state", "weight")), *(None,) * 7


def _autocast(x: Tensor, state: Tensor, weight: Tensor | None, *rest: Any) -> Any:
    """Whatever the projection came out in is kept: inside, the state is float32 in any case."""
    with torch.autocast("cpu", enabled=False):
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


def _one_by_one(op: Any, info: Any, in_dims: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """For packed rows, whose batch is woven into time."""
    each = [
        op(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)))
        for i in range(info.batch_size)
    ]
    return tuple(torch.stack(results) for results in zip(*each, strict=True)), (0, 0, 0)


def _vmap_scan(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
    x, state, weight, lengths, batch_sizes, reset, *how = args
    if batch_sizes is not None:
        return _one_by_one(_scan, info, in_dims, args)
    fold = _Fold(info.batch_size, how[-1])
    output, memory, final = _scan(
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


def _vmap_scan_backward(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
    grad_output, grad_final, x, state, weight, memory, lengths, batch_sizes, reset, *how = args
    if batch_sizes is not None:
        return _one_by_one(_scan_backward, info, in_dims, args)
    fold = _Fold(info.batch_size, how[-1])
    grad_x, grad_state, grad_weight = _scan_backward(
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


class _Scan(torch.autograd.Function):
    forward = staticmethod(lambda *args: torch.ops.lrn.scan(*args))
    setup_context = staticmethod(_save_scan)
    backward = staticmethod(_scan_gradient)
    vmap = staticmethod(_vmap_scan)


class _ScanBackward(torch.autograd.Function):
    forward = staticmethod(lambda *args: torch.ops.lrn.scan_backward(*args))
    setup_context = staticmethod(_save_scan_backward)
    backward = staticmethod(_scan_second_gradient)
    vmap = staticmethod(_vmap_scan_backward)


def _register() -> torch.library.Library:
    fragment = torch.library.Library("lrn", "FRAGMENT")
    gradients: dict[str, tuple[Callable[..., Any], ...]] = {
        "scan": (_fake_scan, _scan_gradient, _save_scan, _vmap_scan),
        "scan_backward": (
            _fake_scan_backward,
            _scan_second_gradient,
            _save_scan_backward,
            _vmap_scan_backward,
        ),
    }
    for name, (fake, gradient, save, vmap) in gradients.items():
        torch.library.register_fake(f"lrn::{name}", fake, lib=fragment)
        torch.library.register_autograd(f"lrn::{name}", gradient, setup_context=save, lib=fragment)
        torch.library.register_vmap(f"lrn::{name}", vmap, lib=fragment)
    fragment.impl("scan", _autocast, "AutocastCPU")
    return fragment


_registered = None if dispatch.MISSING else _register()  # keeps the registrations alive
