"""Recurrences with a matrix inside that no engine of ours runs: LSTM, GRU, and ATR with a norm.

LSTM and GRU are torch's own kernels where those can run; everything else is the walk of ``cells.py``.

While torch.compile or torch.export trace, each of the two is a single op, ``lrn::fused`` and ``lrn::walk``.
Left to itself torch would unroll the steps, which freezes their number; and the default backend would then
give wrong gradients (torch 2.13): where two tensors kept for the backward pass share their memory, a state of
zeros and a view of it, it writes into one while the other is still needed. The ops' gradient runs the forward
pass again.

Shapes: ``x [rows, I]`` or, projected, ``[rows, D*gates*H]``; ``state [parts, D, B, H]``; ``weight_ih
[D, gates*H, I]``, ``weight [D, gates*H, H]``, biases and ``scale [D, gates*H]``; ``output [rows, D*H]``,
``final`` like ``state``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.recurrence import cells, modes
from lrn.recurrence.library import library
from lrn.recurrence.packing import Packing
from lrn.recurrence.rows import Rows

Results = tuple[Tensor, Tensor]
# Of one direction: weight_ih, weight_hh, bias, and the bias of the hidden state's product where it has one.
Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None]


def walk_matrix(
    cell: str,
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scale: Tensor | None,
    rows: Rows,
    direction: str = "forward",
    norm: str | None = None,
) -> Results:
    """Walk one of ``cells.MATRIX_CELLS`` over the projected sequence ``x``; returns output and final state.

    >>> import torch
    >>> x, state, weight = torch.randn(5, 2, 12), torch.zeros(1, 1, 2, 4), torch.randn(1, 12, 4)
    >>> output, final = walk_matrix("gru", x, state, weight, None, None, Rows(batch=2))
    >>> output.shape, final.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 1, 2, 4]))
    """
    if not modes.compiling() or modes.transformed():
        return definition(cell, x, state, weight, bias, scale, rows, direction, norm)
    layout = (rows.lengths, rows.batch_sizes, rows.reset, cell, norm, direction, rows.batch_first)
    return torch.ops.lrn.walk(*_of_one_type(x, state, weight, bias, scale), *layout)  # type: ignore[no-any-return]


def fused_layer(
    cell: str, x: Tensor, state: Tensor, weights: Sequence[Weights], rows: Rows, training: bool = True
) -> Results:
    """A layer of "lstm" or "gru", projection and walk, by torch's own kernel where that can run it.

    ``weights`` has one entry a direction. ``rows`` has no ``reset``, which torch's kernels do not know.

    >>> import torch
    >>> x, state = torch.randn(5, 2, 3), torch.zeros(1, 1, 2, 4)
    >>> weights = (torch.randn(12, 3), torch.randn(12, 4), None, None)
    >>> output, final = fused_layer("gru", x, state, [weights], Rows(batch=2))
    >>> output.shape, final.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 1, 2, 4]))
    """
    if not modes.compiling() or modes.transformed():
        return _fused(cell, x, state, weights, rows, training)
    stacked = [_stacked(each) for each in zip(*weights, strict=True)]  # [D, gates*H, ...]
    layout = (rows.lengths, rows.batch_sizes, cell, rows.batch_first)
    return torch.ops.lrn.fused(*_of_one_type(x, state, *stacked), *layout)  # type: ignore[no-any-return]


def _stacked(directions: tuple[Any, ...]) -> Tensor | None:
    if directions[0] is None:
        return None
    return torch.stack(directions) if len(directions) > 1 else directions[0].unsqueeze(0)


def _unstacked(value: Tensor | None, directions: int) -> Sequence[Tensor | None]:
    return [None] * directions if value is None else value.unbind(0)


def _of_one_type(x: Tensor, state: Tensor, *rest: Tensor | None) -> list[Tensor | None]:
    """Under autocast tensors come in several types; the op takes one, the wider of state's and weight's."""
    weight = rest[0]
    assert weight is not None
    wide = torch.promote_types(state.dtype, weight.dtype)
    return [None if value is None else value.to(wide) for value in (x, state, *rest)]


def definition(
    cell: str,
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scale: Tensor | None,
    rows: Rows,
    direction: str,
    norm: str | None,
) -> Results:
    """The walk in plain torch, through ``cells.py``."""
    outputs, finals = [], []
    reverse = cells.REVERSE[direction]
    for d, (part, backward) in enumerate(zip(x.chunk(len(reverse), -1), reverse, strict=True)):
        b, s = (None if value is None else value[d] for value in (bias, scale))
        step = cells.MATRIX_CELLS[cell].step(hidden_product(weight[d], b, s, norm))
        output, final = rows.walk(step, part, tuple(state[:, d].unbind(0)), reverse=backward)
        outputs.append(output)
        finals.append(torch.stack(final))
    if len(outputs) == 1:
        return outputs[0], finals[0].unsqueeze(1)
    return torch.cat(outputs, -1), torch.stack(finals, 1)


def hidden_product(
    weight: Tensor, bias: Tensor | None, scale: Tensor | None, norm: str | None
) -> cells.Hidden:
    """The product of the hidden state, normalised and with its bias where there are any."""
    if norm is None:
        return lambda h: F.linear(h, weight, bias)
    assert scale is not None
    return lambda h: cells.normalise(F.linear(h, weight), norm, scale, bias)


# LSTM and GRU by torch's kernels ---------------------------------------------------------------------------


def _fused(
    cell: str, x: Tensor, state: Tensor, weights: Sequence[Weights], rows: Rows, training: bool
) -> Results:
    ragged = rows.lengths is not None or rows.batch_sizes is not None
    unknown = rows.lengths is not None and rows.host_lengths is None  # to the host, which would have to wait
    if x.numel() == 0 or unknown or (ragged and modes.transformed()):  # transforms wrap the sizes of rows
        return _in_two(cell, x, state, weights, rows)
    if rows.lengths is not None:
        return _with_lengths(cell, x, state, weights, rows, training)
    output, *final = _kernel(cell, x, state, weights, rows, training)
    return output, torch.stack(final)


def _in_two(cell: str, x: Tensor, state: Tensor, weights: Sequence[Weights], rows: Rows) -> Results:
    projected = torch.cat([F.linear(x, weight, bias) for weight, _, bias, _ in weights], -1)
    _, hidden, _, bias = (_stacked(each) for each in zip(*weights, strict=True))
    assert hidden is not None
    direction = "both" if len(weights) == 2 else "forward"
    return definition(cell, projected, state, hidden, bias, None, rows, direction, None)


def _with_lengths(
    cell: str, x: Tensor, state: Tensor, weights: Sequence[Weights], rows: Rows, training: bool
) -> Results:
    """torch takes rows of different lengths only packed, sorted and none of them empty."""
    assert rows.host_lengths is not None
    if not any(rows.host_lengths):
        return x.new_zeros(*x.shape[:2], len(weights) * state.shape[-1]), state

    def walk(x: Tensor, state: Tensor, rows: Rows) -> Results:
        return _fused(cell, x, state, weights, rows, training)

    steps = x.shape[1 if rows.batch_first else 0]
    return Packing.of(rows, steps, x.device).run(walk, x, state)


def _kernel(
    cell: str, x: Tensor, state: Tensor, weights: Sequence[Weights], rows: Rows, training: bool
) -> tuple[Tensor, ...]:
    """torch's implementation of one layer: output, then the parts of the final state."""
    if x.is_cpu and cell == "lstm" and modes.autocast(x):
        # torch's kernel fails in bfloat16 on processors without instructions for it.
        with torch.autocast(x.device.type, enabled=False):
            return _kernel(cell, x.float(), state.float(), weights, rows, training)
    flat: list[Tensor] = []  # torch's order: ih, hh, bias, and a second bias, zero where the unit has none
    for weight, hidden, bias, second in weights:
        flat += [weight, hidden]
        if bias is not None:
            flat += [bias, torch.zeros_like(bias) if second is None else second]
    run: Any = getattr(torch, cell)
    start = tuple(state.unbind(0)) if cells.MATRIX_CELLS[cell].parts == 2 else state[0]
    tail = (flat, weights[0][2] is not None, 1, 0.0, training, len(weights) == 2)
    if rows.batch_sizes is not None:
        return run(x, rows.batch_sizes, start, *tail)  # type: ignore[no-any-return]
    return run(x, start, *tail, rows.batch_first)  # type: ignore[no-any-return]


# As ops ----------------------------------------------------------------------------------------------------


def _known(lengths: Tensor | None, x: Tensor, batch_first: bool) -> list[int] | None:
    """Lengths that the host has. Nobody has looked at them before: where the op was called from, they were
    unknown."""
    if lengths is None or not lengths.is_cpu:
        return None
    known, steps = lengths.tolist(), x.shape[1 if batch_first else 0]
    wrong = [length for length in known if not 0 <= length <= steps]
    if wrong:
        raise ValueError(f"lengths must be from 0 to {steps}, got {wrong[0]}")
    return known


def _run_walk(*args: Any) -> Results:
    x, state, weight, bias, scale, lengths, batch_sizes, reset, cell, norm, direction, batch_first = args
    known = _known(lengths, x, batch_first)
    rows = Rows(state.shape[2], batch_first, lengths, batch_sizes, reset, known)
    return definition(cell, x, state, weight, bias, scale, rows, direction, norm)


def _run_fused(*args: Any) -> Results:
    x, state, *stacked, lengths, batch_sizes, cell, batch_first = args
    known = _known(lengths, x, batch_first)
    rows = Rows(state.shape[2], batch_first, lengths, batch_sizes, host_lengths=known)
    weights: Any = list(zip(*(_unstacked(each, state.shape[1]) for each in stacked), strict=True))
    return _fused(cell, x, state, weights, rows, torch.is_grad_enabled())


def _fake(x: Tensor, state: Tensor, *rest: Any) -> Results:
    _, directions, _, hidden = state.shape
    return x.new_empty(*x.shape[:-1], directions * hidden), torch.empty_like(
        state, memory_format=torch.contiguous_format
    )


class _Recomputed:
    """An op made of a function of tensors, whose gradient runs the function again.

    ``run`` takes so many ``tensors`` that may have a gradient, of which some may be None, and settings.
    """

    def __init__(self, name: str, run: Callable[..., Results], tensors: int) -> None:
        self.run, self.name, self.tensors = run, name, tensors
        library.impl(name, self.forward, "CompositeExplicitAutograd")
        library.impl(f"{name}_backward", self.backward, "CompositeExplicitAutograd")
        torch.library.register_fake(f"lrn::{name}", _fake, lib=library)
        torch.library.register_fake(f"lrn::{name}_backward", self.fake_backward, lib=library)
        torch.library.register_autograd(f"lrn::{name}", self.gradient, setup_context=self.save, lib=library)

    def forward(self, *args: Any) -> Results:
        output, final = self.run(*args)
        # A result of an op may be no view and no input: of no steps, the final state would be the first.
        return output.contiguous(), final.clone(memory_format=torch.contiguous_format)

    def backward(self, grad_output: Any, grad_final: Any, needed: list[bool], *args: Any) -> list[Tensor]:
        leaves = [
            None if value is None else value.detach().requires_grad_(need)
            for value, need in zip(args[: self.tensors], needed, strict=True)
        ]
        with torch.enable_grad():
            results = self.run(*leaves, *args[self.tensors :])
        given = [
            (r, g)
            for r, g in zip(results, (grad_output, grad_final), strict=True)
            if g is not None and r.requires_grad
        ]
        wanted: list[Any] = [leaf for leaf, need in zip(leaves, needed, strict=True) if need]
        if not given:
            return [torch.zeros_like(leaf, memory_format=torch.contiguous_format) for leaf in wanted]
        found = torch.autograd.grad(
            [r for r, _ in given], wanted, [g for _, g in given], materialize_grads=True, allow_unused=True
        )
        return [value.clone(memory_format=torch.contiguous_format) for value in found]

    @staticmethod
    def fake_backward(grad_output: Any, grad_final: Any, needed: list[bool], *args: Any) -> list[Tensor]:
        wanted = [value for value, need in zip(args, needed, strict=False) if need]
        return [torch.empty_like(value, memory_format=torch.contiguous_format) for value in wanted]

    def save(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        there = [isinstance(value, Tensor) for value in inputs]
        ctx.save_for_backward(*(value for value, tensor in zip(inputs, there, strict=True) if tensor))
        ctx.how = [None if tensor else value for value, tensor in zip(inputs, there, strict=True)]
        ctx.there = there
        ctx.set_materialize_grads(False)

    def gradient(self, ctx: Any, grad_output: Any, grad_final: Any) -> tuple[Any, ...]:
        if grad_output is None and grad_final is None:
            return (None,) * len(ctx.how)
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if tensor else value for value, tensor in zip(ctx.how, ctx.there, strict=True)]
        needed = list(ctx.needs_input_grad[: self.tensors])
        backward: Any = getattr(torch.ops.lrn, f"{self.name}_backward")
        found = iter(backward(grad_output, grad_final, needed, *args))
        gradients = [next(found) if need else None for need in needed]
        return *gradients, *(None,) * (len(args) - self.tensors)


_ops = [_Recomputed("walk", _run_walk, 5), _Recomputed("fused", _run_fused, 6)]
