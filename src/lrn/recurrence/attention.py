"""Additive attention over a ragged memory, for models that attend between the steps of a recurrence.

Of sequence r, head k and position j, with heads as contiguous slices of the features::

    s_j = score · tanh(query[r, k] + keys[starts[r] + j, k])
    a = softmax(s)
    context[r, k] = Σ_j a_j values[starts[r] + j, k]

A sequence of no positions gives zeros. (A bias of the score would cancel in the softmax.)

Shapes: ``keys [N, W]``, ``values [N, W]``, ``starts [B + 1]``, ``query [b, W]`` of the first b <= B
sequences, ``score [S]`` with W = heads * S, ``context [b, W]``, ``weights [b, heads, longest]``, zero behind
a sequence's end.

A walk attends to one memory at every step. On an engine that has the op, ``lrn::attend``, a step keeps only
its query and its weights, the backward pass computes tanh again, and all steps add to one gradient of the
keys and one of the values: made anew at every step, and added up by autograd, these would take most of the
time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.recurrence import dispatch, modes
from lrn.recurrence.library import library

_TYPES = (torch.float32, torch.float64)  # that engines take


@dataclass(frozen=True, eq=False)
class Memory:
    """What ``attend`` looks at: B sequences, one behind the other and without padding. Shapes as above.

    Of a memory that is padded all the same, ``keys`` and ``values`` are ``[B, P, W]``.

    ``starts`` has the rows at which the sequences begin, and the one behind the last; ``longest`` is the
    number of positions of the longest of them, which the host must know.
    """

    keys: Tensor
    values: Tensor
    starts: Tensor
    longest: int
    _shared: _Shared | None = field(default=None, repr=False)  # for an engine
    _padded: _Padded | None = field(default=None, repr=False)  # for the definition


def open_memory(keys: Tensor, values: Tensor, starts: Tensor, longest: int) -> Memory:
    """A memory for ``attend``, once for all steps of a walk. The engine is chosen here. Shapes as above.

    >>> import torch
    >>> memory = open_memory(torch.randn(5, 4), torch.randn(5, 4), torch.tensor([0, 3, 5]), 3)
    >>> context, weights = attend(memory, torch.randn(2, 4), torch.randn(2))
    >>> context.shape, weights.shape, weights[1, :, 2]
    (torch.Size([2, 4]), torch.Size([2, 2, 3]), tensor([0., 0.]))
    """
    _check_memory(keys, values, starts, longest)
    if keys.dtype != values.dtype:
        kind = torch.promote_types(keys.dtype, values.dtype)
        keys, values = keys.to(kind), values.to(kind)
    if _engine_runs(keys, values):
        shared = _Shared.of(_adjacent(keys), _adjacent(values))
        return Memory(keys, values, starts, longest, _shared=shared)
    return Memory(keys, values, starts, longest, _padded=_Padded.of(keys, values, starts, longest))


def padded_memory(keys: Tensor, values: Tensor, real: Tensor) -> Memory:
    """A memory of sequences that lie padded, for graphs that are exported: the engine's op has none of it.

    Args:
        keys, values: ``[B, P, W]``; what is not real must be numbers all the same.
        real: ``[B, P]``, True where a position is.

    >>> import torch
    >>> real = torch.tensor([[True, True], [True, False]])
    >>> memory = padded_memory(torch.randn(2, 2, 4), torch.randn(2, 2, 4), real)
    >>> context, weights = attend(memory, torch.randn(2, 4), torch.randn(4))
    >>> context.shape, weights[1, 0]
    (torch.Size([2, 4]), tensor([1., 0.]))
    """
    starts = keys.shape[1] * torch.arange(keys.shape[0] + 1, device=keys.device)
    return Memory(keys, values, starts, keys.shape[1], _padded=_Padded(keys, values, real))


def attend(memory: Memory, query: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """The context of each query, and the weights behind it, which pass no gradient on. Shapes as above.

    The queries are those of the memory's first sequences, as many as there are; ``score`` says by its size
    how many heads there are.
    """
    _check_query(memory, query, score)
    shared = memory._shared
    if shared is None or not _engine_runs(query, score) or query.dtype != score.dtype:
        return _define(memory, query, score)
    if query.dtype != memory.keys.dtype:
        return _define(memory, query, score)
    given = (query, score, shared.keys, shared.values, memory.starts, memory.longest)
    if not torch.is_grad_enabled():
        with modes.below_autograd():
            return torch.ops.lrn.attend(*given)  # type: ignore[no-any-return]
    if not shared.tracks(memory):
        return _define(memory, query, score)
    return _Attend.apply(*given, shared.gradients)  # type: ignore[no-any-return, no-untyped-call]


def _engine_runs(*tensors: Tensor) -> bool:
    return all(
        modes.dense(x) and x.dtype in _TYPES and modes.plain(x) for x in tensors
    ) and dispatch.implemented("attend", tensors[0].device)


def _adjacent(x: Tensor) -> Tensor:
    """Rows may be apart, as those of a wider tensor are; features that are would be copied at every step."""
    return x if x.stride(1) == 1 else x.contiguous()


# What is given -------------------------------------------------------------------------------------------


def _check_memory(keys: Tensor, values: Tensor, starts: Tensor, longest: int) -> None:
    for name, x in (("keys", keys), ("values", values)):
        _check_numbers("open_memory", name, x)
        if x.dim() != 2 or x.shape[1] == 0:
            raise ValueError(f"open_memory: {name} must be [N, W], got {list(x.shape)}")
    if keys.shape != values.shape:
        raise ValueError(
            "open_memory: keys and values must have one shape, "
            f"got {list(keys.shape)} and {list(values.shape)}"
        )
    if not isinstance(starts, Tensor) or starts.dtype != torch.int64:
        given = starts.dtype if isinstance(starts, Tensor) else type(starts).__name__
        raise TypeError(f"open_memory: starts must be an int64 tensor, got {given}")
    if starts.dim() != 1 or starts.shape[0] == 0:
        raise ValueError(f"open_memory: starts must be [B + 1], got {list(starts.shape)}")
    if isinstance(longest, bool) or not isinstance(longest, int | torch.SymInt):
        raise TypeError(f"open_memory: longest must be a whole number, got {type(longest).__name__}")
    for name, x in (("values", values), ("starts", starts)):
        _check_device("open_memory", name, x, keys, "keys")
    if modes.readable(starts):
        _check_starts(starts.tolist(), len(keys), longest)


def _check_starts(starts: list[int], rows: int, longest: int) -> None:
    if starts[0] != 0 or starts[-1] != rows:
        raise ValueError(
            f"open_memory: starts must go from 0 to the {rows} rows of keys, got {starts[0]} to {starts[-1]}"
        )
    lengths = [end - start for start, end in pairwise(starts)]
    if lengths and min(lengths) < 0:
        raise ValueError(f"open_memory: starts must not fall, got a sequence of {min(lengths)} rows")
    if longest < max(lengths, default=0):
        raise ValueError(
            f"open_memory: longest must be the rows of the longest sequence, {max(lengths)}, got {longest}"
        )


def _check_query(memory: Memory, query: Tensor, score: Tensor) -> None:
    width, batch = memory.keys.shape[-1], memory.starts.shape[0] - 1
    _check_numbers("attend", "query", query)
    _check_numbers("attend", "score", score)
    if query.dim() != 2 or query.shape[1] != width or query.shape[0] > batch:
        raise ValueError(
            f"attend: query must be [b, {width}] with at most the memory's {batch} sequences, "
            f"got {list(query.shape)}"
        )
    if score.dim() != 1 or score.shape[0] == 0 or width % score.shape[0]:
        raise ValueError(
            f"attend: score must be [S] with S dividing the {width} features, got {list(score.shape)}"
        )
    for name, x in (("query", query), ("score", score)):
        _check_device("attend", name, x, memory.keys, "the memory")


def _check_numbers(function: str, name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        given = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{function}: {name} must be a tensor of floating-point numbers, got {given}")


def _check_device(function: str, name: str, x: Tensor, other: Tensor, owner: str) -> None:
    if x.device != other.device:
        raise ValueError(f"{function}: {name} is on {x.device}, {owner} on {other.device}")


# The definition ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Padded:
    """A memory with padding: zeros, so that nothing of one sequence is in another's way."""

    keys: Tensor  # [B, longest, W]
    values: Tensor  # [B, longest, W]
    real: Tensor  # [B, longest]

    @staticmethod
    def of(keys: Tensor, values: Tensor, starts: Tensor, longest: int) -> _Padded:
        first, end = starts[:-1, None], starts[1:, None]
        places = first + torch.arange(longest, device=starts.device)  # [B, longest]
        real = places < end
        places = places.where(real, 0).flatten()

        def pad(x: Tensor) -> Tensor:
            if len(x) == 0:  # but padding may be asked for
                x = F.pad(x, (0, 0, 0, 1))
            x = x.index_select(0, places).unflatten(0, real.shape)
            return x.masked_fill(~real.unsqueeze(-1), 0)

        return _Padded(pad(keys), pad(values), real)


def _define(memory: Memory, query: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    padded = memory._padded
    if padded is None:
        starts = memory.starts[: len(query) + 1]
        padded = _Padded.of(memory.keys, memory.values, starts, memory.longest)
    return definition(padded, query, score)


def definition(padded: _Padded, query: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """``attend`` in plain torch, which everything is tested against. Nothing is read back from a device."""
    batch, size = query.shape[0], score.shape[0]  # not len(), which would fix the number of rows in a graph
    kind = torch.promote_types(query.dtype, padded.keys.dtype)
    if not modes.autocast(query):  # which leaves parameters as they are, and means the others' type
        kind = torch.promote_types(kind, score.dtype)
    keys, values, query = (
        x.to(kind).unflatten(-1, (-1, size)) for x in (padded.keys[:batch], padded.values[:batch], query)
    )
    hidden = torch.tanh(query.unsqueeze(1) + keys)  # [b, longest, heads, S]
    scores = (hidden @ score.to(kind)).transpose(1, 2)  # [b, heads, longest]
    padding = ~padded.real[:batch].unsqueeze(1)  # [b, 1, longest]
    # An empty sequence has its first position for the softmax, which of nothing would be no number.
    behind = padding & (torch.arange(scores.shape[2], device=query.device) > 0)
    wide = kind if kind in _TYPES else torch.float32
    weights = scores.masked_fill(behind, -torch.inf).softmax(-1, dtype=wide).masked_fill(padding, 0)
    context = (weights.transpose(1, 2).unsqueeze(-1) * values).sum(1)  # [b, heads, S]
    return context.to(kind).flatten(1), weights.detach().to(kind)


# On an engine --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Shared:
    """The memory as the steps of an engine see it, through ``_Open``."""

    keys: Tensor
    values: Tensor
    gradients: _Gradients

    @staticmethod
    def of(keys: Tensor, values: Tensor) -> _Shared:
        gradients = _Gradients()
        keys, values = _Open.apply(keys, values, gradients)  # type: ignore[no-untyped-call]
        return _Shared(keys, values, gradients)

    def tracks(self, memory: Memory) -> bool:
        """Whether autograd sees it as it sees the memory; not so if it was opened without gradients."""
        return (self.keys.requires_grad, self.values.requires_grad) == (
            memory.keys.requires_grad,
            memory.values.requires_grad,
        )


class _Gradients:
    """The gradients of a memory's keys and values, to which all steps of a backward pass add.

    They are kept by the pass: one that was broken off leaves nothing to the next, and two may run at once.
    """

    def __init__(self) -> None:
        self._of_pass: dict[int, list[Tensor | None]] = {}

    def add_to(self, keys: Tensor | None, values: Tensor | None) -> list[Tensor | None]:
        """Those of the pass that is running, for what is not None; made at its first step."""
        sums = self._of_pass.setdefault(modes.backward_pass(), [None, None])
        for n, x in enumerate((keys, values)):
            if x is not None and sums[n] is None:
                sums[n] = x.new_zeros(x.shape)
        return [None if x is None else total for x, total in zip((keys, values), sums, strict=True)]

    def take(self) -> list[Tensor | None]:
        """Those of the pass that is running, which are forgotten here."""
        return self._of_pass.pop(modes.backward_pass(), [None, None])


class _Open(torch.autograd.Function):
    """Keys and values as they are, and their gradients as the steps have added them up.

    The steps of ``_Attend`` depend on it, so its backward comes after all of theirs, though they hand it
    nothing.
    """

    @staticmethod
    def forward(ctx: Any, keys: Tensor, values: Tensor, gradients: _Gradients) -> tuple[Tensor, Tensor]:
        ctx.gradients = gradients
        ctx.set_materialize_grads(False)
        opened = keys.detach(), values.detach()
        needed = ctx.needs_input_grad
        ctx.mark_non_differentiable(*(x for x, need in zip(opened, needed, strict=False) if not need))
        return opened

    @staticmethod
    def backward(ctx: Any, *given: Tensor | None) -> tuple[Any, ...]:
        """With what comes from steps that were differentiated through the definition."""
        total = [
            more if x is None else x if more is None else x + more
            for x, more in zip(given, ctx.gradients.take(), strict=True)
        ]
        return *total, None


class _Attend(torch.autograd.Function):
    """The op with its gradient."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        *given, gradients = args
        with modes.below_autograd():
            context, weights = torch.ops.lrn.attend(*given)
        query, score, keys, values, starts, _ = given
        ctx.save_for_backward(query, score, keys, values, starts, weights)
        ctx.gradients = gradients
        ctx.mark_non_differentiable(weights)
        ctx.set_materialize_grads(False)
        return context, weights

    @staticmethod
    def backward(ctx: Any, grad_context: Tensor | None, _: None) -> tuple[Any, ...]:
        nothing = (None,) * 3
        if grad_context is None:
            return *(None,) * 4, *nothing
        saved = ctx.saved_tensors  # before the block below: a checkpoint computes them here, with autograd
        if torch.is_grad_enabled() or modes.compiling() or modes.wrapped(grad_context):
            return *_differentiable_gradient(ctx.needs_input_grad, saved, grad_context), *nothing
        wanted = [
            x if node is not None and modes.runs_backward(node) else None
            for x, (node, _) in zip(saved[2:4], ctx.next_functions[2:4], strict=True)
        ]
        with modes.below_autograd():
            grad_query, grad_score = torch.ops.lrn.attend_backward(
                grad_context, *saved, *ctx.gradients.add_to(*wanted)
            )
        return grad_query, grad_score, None, None, *nothing


def _differentiable_gradient(
    needed: tuple[bool, ...], saved: tuple[Tensor, ...], grad_context: Tensor
) -> list[Tensor | None]:
    """The same gradient through the definition, for a second gradient and for many at once.

    It is taken with respect to fresh aliases of the inputs: the query may have been computed from the keys,
    and the way through that history is not this step's to count.
    """
    *given, starts, weights = saved
    again = torch.is_grad_enabled()
    with torch.enable_grad(), torch.autocast(grad_context.device.type, enabled=False):
        query, score, keys, values = aliases = [x.view_as(x) for x in given]
        padded = _Padded.of(keys, values, starts[: len(query) + 1], weights.shape[2])
        context, _ = definition(padded, query, score)
        wanted = [n for n in range(4) if needed[n]]
        found = torch.autograd.grad(context, [aliases[n] for n in wanted], grad_context, create_graph=again)
    by_index = dict(zip(wanted, found, strict=True))
    return [by_index.get(n) for n in range(4)]


# What torch must know of the ops. Arguments in the order of their schemas ------------------


def _fake(query: Tensor, score: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    heads, longest = query.shape[1] // score.shape[0], rest[-1]
    return query.new_empty(query.shape), query.new_empty(query.shape[0], heads, longest)


def _fake_backward(grad_context: Tensor, query: Tensor, score: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return query.new_empty(query.shape), score.new_empty(score.shape)


torch.library.register_fake("lrn::attend", _fake, lib=library)
torch.library.register_fake("lrn::attend_backward", _fake_backward, lib=library)
