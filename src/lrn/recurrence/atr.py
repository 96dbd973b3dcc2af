"""ATR's walk over time: the one recurrence here with a matrix inside that an engine runs.

``lrn::atr`` takes the projected sequence and walks; per step it does one small product and one elementwise
pass. Its gradient walks back the same way, and leaves the matrix's own gradient to one large product.

Shapes: ``x [rows, D, 1, H]``, where ``rows`` are the leading dimensions that ``Rows`` describes,
``state [1, D, B, H]``, ``weight [D, H, H]``, ``bias [D, H]``, ``output [rows, D*H]``, ``final`` like
``state``. ``q``, shaped like ``output``, is the product of each previous state; ``keep`` says whether there
will be a backward to read it, else it is empty.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from lrn.recurrence import dispatch, matrix, modes
from lrn.recurrence.library import library
from lrn.recurrence.matrix import walk_matrix
from lrn.recurrence.registration import fake_gradients, one_by_one, second_gradient
from lrn.recurrence.rows import Rows


def walk_atr(
    activation: str,
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rows: Rows,
    direction: str = "forward",
) -> tuple[Tensor, Tensor]:
    """Walk ATR over the projected sequence ``x``; returns output and final state. Shapes as above.

    >>> import torch
    >>> x, state, weight = torch.randn(5, 2, 1, 1, 4), torch.zeros(1, 1, 2, 4), torch.randn(1, 4, 4)
    >>> output, final = walk_atr("tanh", x, state, weight, None, Rows(batch=2))
    >>> output.shape, final.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 1, 2, 4]))
    """
    if not _engine_runs(x, state, weight, rows):
        projected = x.flatten(-3)  # [rows, D*H]
        return walk_matrix(f"atr_{activation}", projected, state, weight, bias, None, rows, direction)
    keep = torch.is_grad_enabled()
    how = (rows.lengths, rows.batch_sizes, rows.reset, activation, direction, rows.batch_first, keep)
    if modes.compiling():
        output, _, final = torch.ops.lrn.atr(x, state, weight, bias, *how)
    elif keep:
        output, final = _Atr.apply(x, state, weight, bias, *how)  # type: ignore[no-untyped-call]
    else:
        with modes.below_autograd():
            output, _, final = torch.ops.lrn.atr(x, state, weight, bias, *how)
    return output, final


def _engine_runs(x: Tensor, state: Tensor, weight: Tensor, rows: Rows) -> bool:
    return (
        dispatch.implemented("atr", x.device)
        and x.dtype in (torch.float32, torch.float64)
        and x.dtype == state.dtype == weight.dtype
        and (modes.compiling() or _steps(x, rows) != 1)  # laying out the matrix costs more than a step
        and not modes.transformed()  # torch.func and forward mode go through
        and not modes.forward_mode()  # the definition, which they can differentiate
    )


def _steps(x: Tensor, rows: Rows) -> int:
    return x.shape[1 if rows.batch_first else 0] if rows.batch_sizes is None else len(rows.batch_sizes)


def definition(
    activation: str,
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rows: Rows,
    direction: str,
) -> tuple[Tensor, Tensor]:
    """The same in plain torch, through ``cells.py``."""
    projected = x.flatten(-3)  # [rows, D*H]
    return matrix.definition(f"atr_{activation}", projected, state, weight, bias, None, rows, direction, None)


class _Atr(torch.autograd.Function):
    """The op with its gradient, for eager mode: the registered gradient does the same, but slower."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        with modes.below_autograd():
            output, q, final = torch.ops.lrn.atr(*args)
        _keep(ctx, args, output, q)
        return output, final

    @staticmethod
    def backward(ctx: Any, grad_output: Any, grad_final: Any) -> tuple[Any, ...]:
        given = (ctx.saved_tensors, ctx.how, grad_output, grad_final)
        if torch.is_grad_enabled():  # somebody wants a second gradient
            return _gradient(*given)
        with (
            modes.below_autograd()
        ):  # not around saved_tensors: a checkpoint computes them there, with autograd
            return _gradient(*given)


def _keep(ctx: Any, args: tuple[Any, ...], output: Tensor, q: Tensor) -> None:
    x, state, weight, bias, lengths, batch_sizes, reset, *ctx.how, _ = args
    ctx.save_for_backward(x, state, weight, bias, output, q, lengths, batch_sizes, reset)
    ctx.set_materialize_grads(False)


# What torch must know of the ops. Arguments in the order of their schemas ------------------


def _fake(x: Tensor, state: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    shape, keep = (*x.shape[:-3], x.shape[-3] * x.shape[-1]), rest[-1]
    return x.new_empty(shape), x.new_empty(shape if keep else (0,)), x.new_empty(state.shape)


def _fake_backward(
    grad_output: Tensor | None,
    grad_final: Tensor | None,
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *rest: Any,
) -> tuple[Tensor, ...]:
    grad_bias = x.new_empty((0,) if bias is None else bias.shape)
    return *fake_gradients(x, state), x.new_empty(weight.shape), grad_bias


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    hidden, q, _ = output
    ctx.mark_non_differentiable(q)
    _keep(ctx, inputs, hidden, q)


def _gradient(saved: Any, how: Any, grad_output: Any, grad_final: Any) -> tuple[Any, ...]:
    nothing = (None,) * 7
    if grad_output is None and grad_final is None:
        return *(None,) * 4, *nothing
    *gradients, grad_bias = torch.ops.lrn.atr_backward(grad_output, grad_final, *saved, *how)
    bias = saved[3]
    return *gradients, None if bias is None else grad_bias, *nothing


def _registered_gradient(ctx: Any, grad_output: Any, _: None, grad_final: Any) -> tuple[Any, ...]:
    return _gradient(ctx.saved_tensors, ctx.how, grad_output, grad_final)


def _save_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *given, _, _, lengths, batch_sizes, reset, activation, direction, batch_first = inputs
    ctx.save_for_backward(*given, lengths, batch_sizes, reset)
    ctx.how = activation, direction, batch_first


def _second_gradient(ctx: Any, *seconds: Tensor) -> tuple[Any, ...]:
    *given, lengths, batch_sizes, reset = ctx.saved_tensors
    activation, direction, batch_first = ctx.how
    rows = Rows(given[3].shape[2], batch_first, lengths, batch_sizes, reset)

    def run(x: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return definition(activation, x, state, weight, bias, rows, direction)

    return *second_gradient(run, given, seconds), *(None,) * 8


for _name, _fake_op, _backward, _setup in (
    ("atr", _fake, _registered_gradient, _save),
    ("atr_backward", _fake_backward, _second_gradient, _save_backward),
):
    _op = getattr(torch.ops.lrn, _name).default
    torch.library.register_fake(_op, _fake_op, lib=library)
    torch.library.register_autograd(_op, _backward, setup_context=_setup, lib=library)
    torch.library.register_vmap(_op, partial(one_by_one, _op), lib=library)
