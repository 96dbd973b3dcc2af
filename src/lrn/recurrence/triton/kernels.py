"""The time loop, once for all cells and types: a program walks one row, one direction, one block of columns.

Time is inside. What is carried from step to step stays in registers, in float32 (float64 for float64). The loads of
the next ``AHEAD`` steps are under way while a step is computed: they wait in a queue of registers. A row ends at
its own length; behind it nothing is read, and zeros are written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

# What is known when compiling is in capitals, as everywhere in Triton.
# ruff: noqa: N803


class Grid(NamedTuple):
    """A tensor in memory: its first element, and how far apart steps, rows, directions and planes are."""

    data: Any
    time: int
    batch: int
    direction: int
    plane: int


@triton.jit
def _place(batch, hidden, BLOCK: tl.constexpr):
    """Which row, direction and columns are this program's, and which of the columns exist."""
    program = tl.program_id(0).to(tl.int64)
    blocks = tl.cdiv(hidden, BLOCK)
    columns = program % blocks * BLOCK + tl.arange(0, BLOCK)
    rows = program // blocks
    return rows % batch, rows // batch, columns, columns < hidden


@triton.jit
def _only_if(on, columns, hidden):
    """The columns that exist, or none of them. (A mask of a block & a scalar is more than the interpreter takes.)"""
    return columns < tl.where(on, hidden, 0)


@triton.jit
def _length(lengths, row, steps):
    """The real steps of a row; a length that is out of range leads to no place that is out of bounds."""
    if lengths is None:
        length = steps.to(tl.int64)
    else:
        length = tl.load(lengths + row)
        length = tl.minimum(tl.maximum(length, 0), steps)
    return length


@triton.jit
def _time(s, length, backwards):
    """The time of a walk's step: from a row's own end if it goes backwards."""
    return tl.where(backwards, length - 1 - s, s)


@triton.jit
def _token(grid, first_row, t, row, on):
    """Where a row's token is at time t; of packed rows those of a step follow each other."""
    if first_row is None:
        offset = t * grid.time + row * grid.batch
    else:
        offset = (tl.load(first_row + t, mask=on, other=0) + row) * grid.batch
    return offset


@triton.jit
def _planes(pointers, stride, on, COUNT: tl.constexpr):
    """Several planes of a tensor, in its own type."""
    values = ()
    for k in tl.static_range(COUNT):
        values = values + (tl.load(pointers + k * stride, mask=on, other=0.0),)
    return values


@triton.jit
def _computed(values, COUNT: tl.constexpr, TYPE: tl.constexpr):
    """The first of some values, in the type in which is computed."""
    converted = ()
    for k in tl.static_range(COUNT):
        converted = converted + (values[k].to(TYPE),)
    return converted


@triton.jit
def _border(reset, first_row, t, row, length, backwards, on):
    """Whether a border between documents lies between the step at time t and the one walked before it."""
    t = tl.where(backwards, t + 1, t)
    on = on & (t < length)
    return tl.load(reset.data + _token(reset, first_row, t, row, on), mask=on, other=0) != 0


@triton.jit
def _forward_input(x, reset, first_row, s, row, length, backwards, columns, hidden, GATES: tl.constexpr):
    """What step s reads: the gates and, where there are borders, whether it begins behind one."""
    on = s < length
    t = _time(s, length, backwards)
    read = _planes(x.data + _token(x, first_row, t, row, on) + columns, x.plane, _only_if(on, columns, hidden), GATES)
    if reset is not None:
        read = read + (_border(reset, first_row, t, row, length, backwards, on),)
    return read


@triton.jit(do_not_specialize=["steps", "batch"])
def forward(
    x,
    state,
    weight,
    output,
    memory,
    final,
    lengths,
    first_row,
    reset,
    steps,
    batch,
    hidden,
    STEP: tl.constexpr,
    GATES: tl.constexpr,
    VECTORS: tl.constexpr,
    TANH: tl.constexpr,
    REVERSE: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Walk a row: x, state, weight -> output, memory (None where the output is it), final."""
    row, direction, columns, there = _place(batch, hidden, BLOCK)
    length = _length(lengths, row, steps)
    backwards = (direction == 1) | REVERSE
    OWN: tl.constexpr = memory is not None
    storage = x.data.dtype.element_ty

    state_at = state.data + direction * state.direction + row * state.batch + columns
    final_at = final.data + direction * final.direction + row * final.batch + columns
    output_at = output.data + direction * output.direction + columns
    x = Grid(x.data + direction * x.direction, x.time, x.batch, x.direction, x.plane)
    vectors = ()
    if VECTORS > 0:
        weight_at = weight.data + direction * weight.direction + row * weight.batch + columns
        vectors = _computed(_planes(weight_at, weight.plane, there, VECTORS), VECTORS, TYPE)

    h = tl.load(state_at, mask=there, other=0.0).to(TYPE)  # the output of the step before
    m = h
    if OWN:
        memory_at = memory.data + direction * memory.direction + columns
        m = tl.load(state_at + state.plane, mask=there, other=0.0).to(TYPE)

    queue = ()
    for s in tl.static_range(AHEAD):
        queue = queue + (
            _forward_input(x, reset, first_row, s, row, length, backwards, columns, hidden, GATES),
        )
    for s in range(length):
        read = queue[0]
        queue = queue[1:] + (
            _forward_input(x, reset, first_row, s + AHEAD, row, length, backwards, columns, hidden, GATES),
        )
        if reset is not None:
            m = tl.where(read[GATES], 0.0, m)
        h, m = STEP(_computed(read, GATES, TYPE), m, vectors, TANH)
        t = _time(s, length, backwards)
        tl.store(output_at + _token(output, first_row, t, row, True), h.to(storage), mask=there)
        if OWN:
            tl.store(memory_at + _token(memory, first_row, t, row, True), m.to(storage), mask=there)

    tl.store(final_at, h.to(storage), mask=there)
    if OWN:
        tl.store(final_at + final.plane, m.to(storage), mask=there)
    if first_row is None:
        nothing = tl.zeros([BLOCK], storage)
        for t in range(length, steps):
            tl.store(output_at + _token(output, first_row, t, row, True), nothing, mask=there)
            if OWN:
                tl.store(memory_at + _token(memory, first_row, t, row, True), nothing, mask=there)


@triton.jit
def _backward_input(
    x,
    memory,
    grad_output,
    reset,
    first_row,
    s,
    row,
    length,
    backwards,
    columns,
    hidden,
    GATES: tl.constexpr,
):
    """What the gradient of step s reads: gates, the memory before it, the output's gradient, the border."""
    on = s >= 0
    t = _time(s, length, backwards)
    read = _planes(x.data + _token(x, first_row, t, row, on) + columns, x.plane, _only_if(on, columns, hidden), GATES)
    inside = s > 0  # before the first step is the state
    before = _token(memory, first_row, _time(s - 1, length, backwards), row, inside)
    read = read + (tl.load(memory.data + before + columns, mask=_only_if(inside, columns, hidden), other=0.0),)
    if grad_output is not None:
        above = _token(grad_output, first_row, t, row, on)
        read = read + (tl.load(grad_output.data + above + columns, mask=_only_if(on, columns, hidden), other=0.0),)
    else:
        read = read + (read[0],)  # so that a border has the same place
    if reset is not None:
        read = read + (_border(reset, first_row, t, row, length, backwards, on),)
    return read


@triton.jit(do_not_specialize=["steps", "batch"])
def backward(
    grad_output,
    grad_final,
    x,
    state,
    weight,
    memory,
    grad_x,
    grad_state,
    grad_weight,
    lengths,
    first_row,
    reset,
    steps,
    batch,
    hidden,
    STEP: tl.constexpr,
    GATES: tl.constexpr,
    VECTORS: tl.constexpr,
    OWN: tl.constexpr,
    TANH: tl.constexpr,
    REVERSE: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Walk a row back: gradients of output and final (either may be None) -> of x, state, weight (each row's own).

    The memory after a step is the one before the next, which is at hand already: it is read once. ``OWN`` says
    that the memory is not the output, so that the state has two parts.
    """
    row, direction, columns, there = _place(batch, hidden, BLOCK)
    length = _length(lengths, row, steps)
    backwards = (direction == 1) | REVERSE
    storage = x.data.dtype.element_ty
    nothing = tl.zeros([BLOCK], TYPE)

    state_at = state.data + direction * state.direction + row * state.batch + columns
    if OWN:
        state_at = state_at + state.plane
    first = tl.load(state_at, mask=there, other=0.0)
    x = Grid(x.data + direction * x.direction, x.time, x.batch, x.direction, x.plane)
    memory = Grid(memory.data + direction * memory.direction, memory.time, memory.batch, 0, 0)
    grad_x_at = grad_x.data + direction * grad_x.direction + columns
    if grad_output is not None:
        grad_output = Grid(
            grad_output.data + direction * grad_output.direction, grad_output.time, grad_output.batch, 0, 0
        )
    vectors, sums = (), ()
    if VECTORS > 0:
        weight_at = weight.data + direction * weight.direction + row * weight.batch + columns
        vectors = _computed(_planes(weight_at, weight.plane, there, VECTORS), VECTORS, TYPE)
        for _ in tl.static_range(VECTORS):
            sums = sums + (nothing,)

    last = nothing  # the gradient of the final output, where that is not the memory
    carry = nothing
    if grad_final is not None:
        final_at = grad_final.data + direction * grad_final.direction + row * grad_final.batch + columns
        carry = tl.load(final_at, mask=there, other=0.0).to(TYPE)
        if OWN:
            last = carry
            carry = tl.load(final_at + grad_final.plane, mask=there, other=0.0).to(TYPE)

    end = length - 1
    after = _token(memory, first_row, _time(end, length, backwards), row, end >= 0)
    after = tl.load(memory.data + after + columns, mask=_only_if(end >= 0, columns, hidden), other=0.0)
    queue = ()
    for n in tl.static_range(AHEAD):
        queue = queue + (
            _backward_input(
                x,
                memory,
                grad_output,
                reset,
                first_row,
                end - n,
                row,
                length,
                backwards,
                columns,
                hidden,
                GATES,
            ),
        )
    for n in range(length):
        s = end - n
        read = queue[0]
        queue = queue[1:] + (
            _backward_input(
                x,
                memory,
                grad_output,
                reset,
                first_row,
                s - AHEAD,
                row,
                length,
                backwards,
                columns,
                hidden,
                GATES,
            ),
        )
        before = tl.where(s == 0, first, read[GATES])
        m = before.to(TYPE)
        if reset is not None:
            m = tl.where(read[GATES + 2], 0.0, m)
        dy = nothing
        if grad_output is not None:
            dy = read[GATES + 1].to(TYPE)
        if OWN:
            dy = tl.where(s == end, dy + last, dy)
        dx, carry, dw = STEP(
            _computed(read, GATES, TYPE), m, after.to(TYPE), vectors, dy, carry, TANH
        )
        if reset is not None:
            carry = tl.where(read[GATES + 2], 0.0, carry)
        after = before
        to = grad_x_at + _token(grad_x, first_row, _time(s, length, backwards), row, True)
        for k in tl.static_range(GATES):
            tl.store(to + k * grad_x.plane, dx[k].to(storage), mask=there)
        if VECTORS > 0:
            more = ()
            for k in tl.static_range(VECTORS):
                more = more + (sums[k] + dw[k],)
            sums = more

    grad_state_at = grad_state.data + direction * grad_state.direction + row * grad_state.batch + columns
    if OWN:  # the output is never read: only an empty row passes its gradient on
        tl.store(grad_state_at, tl.where(length == 0, last, nothing).to(storage), mask=there)
        grad_state_at = grad_state_at + grad_state.plane
    tl.store(grad_state_at, carry.to(storage), mask=there)
    for k in tl.static_range(VECTORS):
        grad_weight_at = grad_weight.data + direction * grad_weight.direction + row * grad_weight.batch
        tl.store(grad_weight_at + k * grad_weight.plane + columns, sums[k].to(storage), mask=there)
    if first_row is None:
        empty = tl.zeros([BLOCK], storage)
        for t in range(length, steps):
            to = grad_x_at + _token(grad_x, first_row, t, row, True)
            for k in tl.static_range(GATES):
                tl.store(to + k * grad_x.plane, empty, mask=there)
