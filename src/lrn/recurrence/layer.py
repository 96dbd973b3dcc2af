"""A whole layer on the C++ engine: projection and walk together, one chunk of rows after the other.

A chunk's projection is walked over while it is still in the cache; going back, its gradient goes into
the matrix products while it is still there, and never exists for the whole sequence at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lrn.recurrence import cells, dispatch, modes, ops, products
from lrn.recurrence.rows import Rows

CHUNK = 2048  # tokens: enough for the matrix product's full speed, little enough for the cache
_SPLIT_TYPES = (torch.float32, torch.float64)  # others would round the weights' gradient once a chunk


def layer(
    cell: str,
    x: Tensor,
    matrix: Tensor,
    bias: Tensor | None,
    state: Tensor,
    vectors: Tensor | None,
    rows: Rows,
    direction: str = "forward",
) -> tuple[Tensor, Tensor]:
    """``ops.scan`` of ``x @ matrix.T + bias``: x ``[rows, I]``, matrix ``[D*gates*H, I]``, the rest as there.

    >>> import torch
    >>> x, matrix, state = torch.randn(5, 2, 3), torch.randn(12, 3), torch.zeros(1, 1, 2, 4)
    >>> output, final = layer("lrn_tanh", x, matrix, None, state, None, Rows(batch=2))
    >>> output.shape, final.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 1, 2, 4]))
    """
    if state.dtype != x.dtype:
        state = state.to(x.dtype)
    args = (x, matrix, bias, state, vectors, rows, cell, direction)
    if not _runs_here(x, matrix):
        return _in_two(*args)
    if torch.is_grad_enabled():
        return _Layer.apply(*args)  # type: ignore[no-any-return, no-untyped-call]
    with modes.below_autograd():
        _, output, _, final = _forward(*args, keep=False)
    return output, final


def _runs_here(x: Tensor, matrix: Tensor) -> bool:
    """Whether nothing is at work that must see projection and walk as two operations."""
    return (
        x.is_contiguous()
        and x.dtype == matrix.dtype
        and modes.dense(x)
        and modes.dense(matrix)
        and modes.plain(x)
        and dispatch.implemented("scan_into", x.device)
    )


def _in_two(
    x: Tensor,
    matrix: Tensor,
    bias: Tensor | None,
    state: Tensor,
    vectors: Tensor | None,
    rows: Rows,
    cell: str,
    direction: str,
) -> tuple[Tensor, Tensor]:
    return ops.scan(cell, _shaped(project(x, matrix, bias), state, cell), state, vectors, rows, direction)


def project(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    """``products.linear`` that does not copy a transposed view of a contiguous batch."""
    if x.dim() == 3 and not x.is_contiguous() and x.transpose(0, 1).is_contiguous():
        return products.linear(x.transpose(0, 1), matrix, bias).transpose(0, 1)
    return products.linear(x, matrix, bias)


def _shaped(projected: Tensor, state: Tensor, cell: str) -> Tensor:
    return projected.view(*projected.shape[:-1], state.shape[1], cells.CELLS[cell].gates, state.shape[-1])


class _Chunk:
    """Some of the leading dimension of a tensor of rows: steps of all rows or, batch first, whole rows."""

    def __init__(self, rows: Rows, part: slice, state: Tensor, vectors: Tensor | None) -> None:
        self.part = part
        self.whole_rows = rows.batch_first
        lengths, reset = rows.lengths, rows.reset
        batch = rows.batch
        if self.whole_rows:
            batch = part.stop - part.start
            lengths = None if lengths is None else lengths[part]
        elif lengths is not None:
            lengths = (lengths - part.start).clamp(0, part.stop - part.start)
        self.weight = None if vectors is None else vectors.expand(batch, *vectors.shape)
        self.layout = (lengths, None, None if reset is None else reset[part])
        self._state = state

    def state_from(self, before: Tensor) -> Tensor:
        """What the chunk begins with: its own rows' state, or what the chunk before ended with."""
        return self._state[:, :, self.part] if self.whole_rows else before

    def state_again(self, memory: Tensor) -> Tensor:
        """The same, going back: of SRU's pair (h, c) only the memory c is read."""
        if self.whole_rows or self.part.start == 0:
            return self.state_from(self._state)
        return memory[self.part.start - 1].expand(self._state.shape)


def _chunks(x: Tensor, state: Tensor, vectors: Tensor | None, rows: Rows, how: str) -> list[_Chunk]:
    """The chunks to work in, in the order of the walk; empty if the whole is best done in one."""
    if rows.batch_sizes is not None or x.shape[0] * x.shape[1] < 2 * CHUNK or x.dtype not in _SPLIT_TYPES:
        return []
    if not rows.batch_first and how != "forward":  # the two directions meet in no chunk
        return []
    size = max(1, CHUNK // x.shape[1])
    if rows.batch_first and size < 8:  # too few rows at a time to share among threads
        return []
    starts = range(0, x.shape[0], size)
    return [_Chunk(rows, slice(a, min(a + size, x.shape[0])), state, vectors) for a in starts]


def _forward(
    x: Tensor,
    matrix: Tensor,
    bias: Tensor | None,
    state: Tensor,
    vectors: Tensor | None,
    rows: Rows,
    cell: str,
    direction: str,
    *,
    keep: bool,
) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
    """Projections, output, memory, final state. Of chunks' projections there are none if not ``keep``."""
    how = (cell, direction, rows.batch_first)
    chunks = _chunks(x, state, vectors, rows, direction)
    if not chunks:
        projected = _shaped(products.linear(x, matrix, bias), state, cell)
        weight = None if vectors is None else vectors.expand(rows.batch, *vectors.shape)
        layout = (rows.lengths, rows.batch_sizes, rows.reset)
        return [projected], *torch.ops.lrn.scan(projected, state, weight, *layout, *how)

    kept: list[Tensor] = []
    output = x.new_empty(*x.shape[:2], state.shape[1] * state.shape[-1])
    memory = torch.empty_like(output) if cells.CELLS[cell].parts == 2 else x.new_empty(0)
    finals = [state]
    for chunk in chunks:
        part = chunk.part
        projected = _shaped(products.linear(x[part], matrix, bias), state, cell)
        if keep:
            kept.append(projected)
        final = torch.ops.lrn.scan_into(
            projected,
            chunk.state_from(finals[-1]),
            chunk.weight,
            *chunk.layout,
            *how,
            output[part],
            memory[part] if memory.numel() else memory,
        )
        finals.append(final)
    return kept, output, memory, torch.cat(finals[1:], 2) if rows.batch_first else finals[-1]


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        x, matrix, bias, state, vectors, *ctx.how = args
        with modes.below_autograd():
            projected, output, memory, final = _forward(*args, keep=True)
        kept = memory if memory.numel() else output
        ctx.save_for_backward(x, matrix, bias, state, vectors, kept, *projected)
        ctx.set_materialize_grads(False)
        return output, final

    @staticmethod
    def backward(ctx: Any, grad_output: Any, grad_final: Any) -> tuple[Any, ...]:
        nothing = (None,) * 3
        if grad_output is None and grad_final is None:
            return *(None,) * 5, *nothing
        saved = ctx.saved_tensors  # before the block below: a checkpoint computes them here, with autograd
        if torch.is_grad_enabled():  # somebody wants a second gradient
            return *_differentiable_gradient(ctx, saved[:5], grad_output, grad_final), *nothing
        with modes.below_autograd():
            gradients = _Gradients(ctx, saved)
            for chunk, projected in gradients.backwards():
                grad_final = gradients.add(chunk, projected, grad_output, grad_final)
            return *gradients.result(), *nothing


class _Gradients:
    """The gradients of a layer, gathered chunk by chunk from the end."""

    def __init__(self, ctx: Any, saved: tuple[Any, ...]) -> None:
        self.x, self.matrix, _, self.state, self.vectors, self.memory, *self.projected = saved
        self.rows, self.cell, self.direction = ctx.how
        self.needed = ctx.needs_input_grad[:5]
        self.grad_x = torch.empty_like(self.x) if self.needed[0] else None
        self.grad_matrix: Tensor | None = None
        self.grad_bias: Tensor | None = None
        self.grad_vectors: Tensor | None = None
        self.grad_states: list[Tensor] = []

    def backwards(self) -> Iterator[tuple[_Chunk | None, Tensor]]:
        """The chunks with their projections, the last one first; None for all at once."""
        found = _chunks(self.x, self.state, self.vectors, self.rows, self.direction)
        chunks: list[_Chunk | None] = [*found] if found else [None]
        return zip(reversed(chunks), reversed(self.projected), strict=True)

    def add(
        self,
        chunk: _Chunk | None,
        projected: Tensor,
        grad_output: Tensor | None,
        grad_final: Tensor | None,
    ) -> Any:
        """Add one chunk; returns the gradient that its state hands back."""
        rows = self.rows
        if chunk is None:
            part = slice(None)
            weight = None if self.vectors is None else self.vectors.expand(rows.batch, *self.vectors.shape)
            state, layout = self.state, (rows.lengths, rows.batch_sizes, rows.reset)
            grad_end = grad_final
        else:
            part, weight, layout = chunk.part, chunk.weight, chunk.layout
            state = chunk.state_again(self.memory)
            grad_end = grad_final[:, :, part] if chunk.whole_rows and grad_final is not None else grad_final
        grad_projected, grad_state, grad_weight = torch.ops.lrn.scan_backward(
            None if grad_output is None else grad_output[part],
            grad_end,
            projected,
            state,
            weight,
            self.memory[part],
            *layout,
            self.cell,
            self.direction,
            rows.batch_first,
        )
        self._add_products(part, grad_projected.view(-1, self.matrix.shape[0]))
        if self.vectors is not None and self.needed[4]:
            self.grad_vectors = _added(self.grad_vectors, grad_weight.sum(0))
        whole_rows = chunk is not None and chunk.whole_rows
        self.grad_states = [grad_state, *self.grad_states] if whole_rows else [grad_state]
        return grad_final if whole_rows else grad_state

    def _add_products(self, part: slice, grad: Tensor) -> None:
        features = self.matrix.shape[1]
        if self.grad_x is not None:
            products.product_into(self.grad_x[part].view(-1, features), grad, self.matrix)
        if self.needed[1]:
            x = self.x[part].view(-1, features)
            if self.grad_matrix is None:
                self.grad_matrix = products.product(grad.t(), x)
            else:
                products.add_product(self.grad_matrix, grad.t(), x)
        if self.needed[2]:
            self.grad_bias = _added(self.grad_bias, grad.sum(0))

    def result(self) -> tuple[Tensor | None, ...]:
        state = self.grad_states[0] if len(self.grad_states) == 1 else torch.cat(self.grad_states, 2)
        return self.grad_x, self.grad_matrix, self.grad_bias, state, self.grad_vectors


def _added(total: Tensor | None, more: Tensor) -> Tensor:
    return more if total is None else total.add_(more)


def _differentiable_gradient(
    ctx: Any, inputs: tuple[Any, ...], grad_output: Any, grad_final: Any
) -> tuple[Any, ...]:
    """The same gradient through two operations that know their own second gradients.

    It is taken with respect to fresh aliases of the inputs: one input may have been computed from another,
    the state from the matrix, say, and the way through that history is not this layer's to count.
    """
    wanted = [n for n in range(5) if ctx.needs_input_grad[n]]
    with torch.enable_grad():
        aliases: list[Any] = [None if value is None else value.view_as(value) for value in inputs]
        results = _in_two(*aliases, *ctx.how)
        given = [(r, g) for r, g in zip(results, (grad_output, grad_final), strict=True) if g is not None]
        found = torch.autograd.grad(
            [r for r, _ in given],
            [aliases[n] for n in wanted],
            [g for _, g in given],
            create_graph=True,
            allow_unused=True,
        )
    by_index = dict(zip(wanted, found, strict=True))
    return tuple(by_index.get(n) for n in range(5))
