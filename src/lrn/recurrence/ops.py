"""The one function through which units run an elementwise recurrence, and its gradient.

An engine implements two ops, ``lrn::scan`` and ``lrn::scan_backward``; ``registration.py`` tells torch
what compile, export, vmap and autocast need to know of them.

Shapes: ``x [rows, D, gates, H]``, where ``rows`` are the leading dimensions that ``Rows`` describes,
``state [parts, D, B, H]``, ``weight [B, D, vectors, H]``, ``output [rows, D*H]``, ``final`` like ``state``.
``memory`` is what steps read of the step before: a tensor of its own for SRU, else empty, being ``output``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lrn.recurrence import cells, dispatch, modes
from lrn.recurrence.rows import Rows


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
    transformed, compiling = modes.transformed(), modes.compiling()
    if (
        not dispatch.implemented("scan", x.device)
        or modes.forward_mode()
        or (transformed and compiling)  # a compiled torch.func transform takes no op with its own gradient
    ):
        # Forward-mode derivatives take this way too: torch can follow them through plain operations.
        return definition(cell, x, state, weight, rows, direction)
    args = (
        *(x, state, weight, rows.lengths, rows.batch_sizes, rows.reset),
        *(cell, direction, rows.batch_first, *dispatch.by(x.device)),
    )
    if compiling:
        output, _, final = torch.ops.lrn.scan(*args)
    elif transformed:
        from lrn.recurrence.registration import MappedScan

        output, _, final = MappedScan.apply(*args)  # type: ignore[no-untyped-call]
    elif torch.is_grad_enabled():
        output, final = _Scan.apply(*args)  # type: ignore[no-untyped-call]
    else:
        with modes.below_autograd():
            output, _, final = torch.ops.lrn.scan(*args)
    return output, final


def definition(
    cell: str, x: Tensor, state: Tensor, weight: Tensor | None, rows: Rows, direction: str
) -> tuple[Tensor, Tensor]:
    """The same in plain torch, through ``cells.py``."""
    output, final = cells.scan(
        cells.CELLS[cell],
        rows.pad(x),
        state,
        weight,
        lengths=rows.row_lengths(x.device),
        reset=rows.padded_reset(),
        reverse=cells.REVERSE[direction],
    )
    return rows.unpad(output), final


class _Scan(torch.autograd.Function):
    """The op with its gradient, for eager mode: the registered gradient does the same, but slower."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        with modes.below_autograd():
            output, memory, final = torch.ops.lrn.scan(*args)
        save(ctx, args, output, memory)
        return output, final

    @staticmethod
    def backward(ctx: Any, grad_output: Any, grad_final: Any) -> tuple[Any, ...]:
        given = (ctx.saved_tensors, ctx.how, grad_output, grad_final, torch.ops.lrn.scan_backward)
        if torch.is_grad_enabled():  # somebody wants a second gradient
            return gradient(*given)
        with (
            modes.below_autograd()
        ):  # not around saved_tensors: a checkpoint computes them there, with autograd
            return gradient(*given)


def save(ctx: Any, args: tuple[Any, ...], output: Tensor, memory: Tensor) -> None:
    """Keep for backward: the projection and the memory; gates are computed again."""
    x, state, weight, lengths, batch_sizes, reset, *ctx.how = args
    kept = memory if cells.CELLS[ctx.how[0]].parts == 2 else output
    ctx.save_for_backward(x, state, weight, kept, lengths, batch_sizes, reset)
    ctx.set_materialize_grads(False)


def gradient(saved: Any, how: Any, grad_output: Any, grad_final: Any, backward: Any) -> tuple[Any, ...]:
    """The gradient of ``lrn::scan``'s arguments, by the op ``backward``, from what ``save`` has kept."""
    nothing = (None,) * (3 + len(how))
    if grad_output is None and grad_final is None:
        return None, None, None, *nothing
    weight = saved[2]
    grad_x, grad_state, grad_weight = backward(grad_output, grad_final, *saved, *how)
    return grad_x, grad_state, None if weight is None else grad_weight, *nothing
