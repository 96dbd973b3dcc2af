"""The time loop, once for all cells and types: a program walks one row, one direction, one block of columns.

Time is inside. What is carried from step to step stays in registers, in float32 (float64 for float64). The
loads of the next ``AHEAD`` steps are under way while a step is computed: they wait in a queue of registers.
A row ends at its own length; behind it nothing is read, and zeros are written.

A *step* s counts from where the walk begins, which going backwards is the row's own end. Of padded rows it is
the step's *position* as well: strides are negative going backwards. Of packed rows the position is the row
of the batch's first token at that time, and strides are those from token to token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from lrn.recurrence.triton.numbers import computed, part, stored

# What is known when compiling is in capitals, as everywhere in Triton.
# And tuples grow by +, branches are whole statements: it has no other way.
# ruff: noqa: N803, N806, RUF005, SIM108


class Grid(NamedTuple):
    """A tensor in memory: its first element, and how far apart steps, rows, directions and planes are."""

    data: Any
    time: int
    batch: int
    direction: int
    plane: int


@part
def _place(batch, hidden, BLOCK: tl.constexpr):
    """Which row, direction and columns are this program's."""
    program = tl.program_id(0).to(tl.int64)
    blocks = tl.cdiv(hidden, BLOCK)
    rows = program // blocks
    return rows % batch, rows // batch, program % blocks * BLOCK + tl.arange(0, BLOCK)


@part
def _length(lengths, row, steps):
    """The real steps of a row; a length that is out of range leads to no place that is out of bounds."""
    if lengths is None:
        length = steps.to(tl.int64)
    else:
        length = tl.minimum(tl.maximum(tl.load(lengths + row), 0), steps)
    return length


@part
def _clock(first_row, length, backwards):
    """Packed rows: where the position of step 0 is written, and how far apart those of steps are."""
    if first_row is None:
        at, sign = None, None
    else:
        at = first_row + tl.where(backwards, length - 1, 0)
        sign = tl.where(backwards, -1, 1)
    return at, sign


@part
def _position(clock, s, some):
    """The position of a step of a row that has some."""
    if clock[0] is None:
        position = s
    else:
        position = tl.load(clock[0] + s * clock[1], mask=some, other=0)
    return position


@part
def _walked(grid, clock, row, direction, length, backwards):
    """A tensor with a row per token as the walk sees it: where position 0 is, and how far apart positions
    are.
    """
    at = grid.data + direction * grid.direction + row * grid.batch
    if clock[0] is None:
        at = at + tl.where(backwards, length - 1, 0) * grid.time
        stride = tl.where(backwards, -grid.time, grid.time).to(tl.int64)
    else:
        stride = grid.batch
    return at, stride


@part
def _planes(pointers, stride, there, COUNT: tl.constexpr):
    """Several planes of a tensor, in its own type."""
    values = ()
    for k in tl.static_range(COUNT):
        values = values + (tl.load(pointers + k * stride, mask=there, other=0.0),)
    return values


@part
def _computed(values, COUNT: tl.constexpr, TYPE: tl.constexpr):
    """The first of some values, in the type in which is computed."""
    converted = ()
    for k in tl.static_range(COUNT):
        converted = converted + (computed(values[k], TYPE),)
    return converted


@part
def _border(reset, clock, s, backwards, some):
    """Whether a border between documents lies between step s and the one walked before it.

    It is marked at the later of the two in time: going backwards at the step before, which the first has not.
    """
    behind = tl.where(backwards, 1, 0)
    position = _position(clock, tl.maximum(s - behind, 0), some)
    mark = tl.load(reset[0] + position * reset[1], mask=some, other=0)
    return (mark != 0) & (s >= behind)


@part
def _forward_input(x, plane, reset, clock, s, last, backwards, some, there, columns, GATES: tl.constexpr):
    """What step s reads: the gates and, where there are borders, whether it begins behind one.

    Behind the last step it is the last one once more, which nobody uses.
    """
    s = tl.minimum(s, last)
    read = _planes(x[0] + _position(clock, s, some) * x[1] + columns, plane, there, GATES)
    if reset is not None:
        read = read + (_border(reset, clock, s, backwards, some),)
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
    OWN: tl.constexpr,
    TANH: tl.constexpr,
    REVERSE: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Walk a row: x, state, weight -> output, memory, final. ``OWN``: the memory is not the output itself."""
    row, direction, columns = _place(batch, hidden, BLOCK)
    there = columns < hidden
    length = _length(lengths, row, steps)
    some = length > 0
    read_there = columns < tl.where(some, hidden, 0)
    backwards = (direction == 1) | REVERSE
    storage = x.data.dtype.element_ty

    clock = _clock(first_row, length, backwards)
    x_walk = _walked(x, clock, row, direction, length, backwards)
    output_walk = _walked(output, clock, row, direction, length, backwards)
    if OWN:
        memory_walk = _walked(memory, clock, row, direction, length, backwards)
    if reset is not None:
        reset_walk = _walked(reset, clock, row, 0, length, backwards)
    else:
        reset_walk = None
    vectors = ()
    if VECTORS > 0:
        weight_at = weight.data + direction * weight.direction + row * weight.batch + columns
        vectors = _computed(_planes(weight_at, weight.plane, there, VECTORS), VECTORS, TYPE)
    state_at = state.data + direction * state.direction + row * state.batch + columns
    h = computed(tl.load(state_at, mask=there, other=0.0), TYPE)  # the output of the step before
    m = h
    if OWN:
        m = computed(tl.load(state_at + state.plane, mask=there, other=0.0), TYPE)

    last = length - 1
    queue = ()
    for s in tl.static_range(AHEAD):
        queue = queue + (
            _forward_input(
                x_walk, x.plane, reset_walk, clock, s, last, backwards, some, read_there, columns, GATES
            ),
        )
    for s in range(length):
        read = queue[0]
        queue = queue[1:] + (
            _forward_input(
                x_walk,
                x.plane,
                reset_walk,
                clock,
                s + AHEAD,
                last,
                backwards,
                some,
                read_there,
                columns,
                GATES,
            ),
        )
        if reset is not None:
            m = tl.where(read[GATES], 0.0, m)
        h, m = STEP(_computed(read, GATES, TYPE), m, vectors, TANH)
        position = _position(clock, s, some)
        tl.store(output_walk[0] + position * output_walk[1] + columns, stored(h, storage), mask=there)
        if OWN:
            tl.store(memory_walk[0] + position * memory_walk[1] + columns, stored(m, storage), mask=there)

    final_at = final.data + direction * final.direction + row * final.batch + columns
    tl.store(final_at, stored(h, storage), mask=there)
    if OWN:
        tl.store(final_at + final.plane, stored(m, storage), mask=there)
    if first_row is None:  # packed rows have no padding
        nothing = tl.zeros([BLOCK], storage)
        for t in range(length, steps):
            s = tl.where(backwards, last - t, t)
            tl.store(output_walk[0] + s * output_walk[1] + columns, nothing, mask=there)
            if OWN:
                tl.store(memory_walk[0] + s * memory_walk[1] + columns, nothing, mask=there)


@part
def _backward_input(
    x, plane, memory, above, reset, clock, s, backwards, some, there, columns, GATES: tl.constexpr
):
    """What the gradient of step s reads: gates, the memory before it, the output's gradient, the border.

    Before the first step it is the first one once more, which nobody uses; nor is what stands for its memory.
    """
    s = tl.maximum(s, 0)
    position = _position(clock, s, some)
    read = _planes(x[0] + position * x[1] + columns, plane, there, GATES)
    before = _position(clock, tl.maximum(s - 1, 0), some)
    read = read + (tl.load(memory[0] + before * memory[1] + columns, mask=there, other=0.0),)
    if above is not None:
        read = read + (tl.load(above[0] + position * above[1] + columns, mask=there, other=0.0),)
    if reset is not None:
        read = (_border(reset, clock, s, backwards, some),) + read
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
    """Walk a row back: gradients of output and final (either may be None) -> of x, state, weight (each row's
    own).

    The memory after a step is the one before the next, which is at hand already: it is read once.
    """
    row, direction, columns = _place(batch, hidden, BLOCK)
    there = columns < hidden
    length = _length(lengths, row, steps)
    some = length > 0
    read_there = columns < tl.where(some, hidden, 0)
    backwards = (direction == 1) | REVERSE
    storage = x.data.dtype.element_ty
    nothing = tl.zeros([BLOCK], TYPE)

    clock = _clock(first_row, length, backwards)
    x_walk = _walked(x, clock, row, direction, length, backwards)
    memory_walk = _walked(memory, clock, row, direction, length, backwards)
    grad_x_walk = _walked(grad_x, clock, row, direction, length, backwards)
    if grad_output is not None:
        above_walk = _walked(grad_output, clock, row, direction, length, backwards)
    else:
        above_walk = None
    if reset is not None:
        reset_walk = _walked(reset, clock, row, 0, length, backwards)
        FIRST: tl.constexpr = 1  # of the gates, in what a step reads
    else:
        reset_walk = None
        FIRST: tl.constexpr = 0
    vectors = ()
    sums = ()
    if VECTORS > 0:
        weight_at = weight.data + direction * weight.direction + row * weight.batch + columns
        vectors = _computed(_planes(weight_at, weight.plane, there, VECTORS), VECTORS, TYPE)
        for _ in tl.static_range(VECTORS):
            sums = sums + (nothing,)
    state_at = state.data + direction * state.direction + row * state.batch + columns
    if OWN:
        state_at = state_at + state.plane
    first = tl.load(state_at, mask=there, other=0.0)

    final_h = nothing  # the gradient of the final output, where that is not the memory
    carry = nothing
    if grad_final is not None:
        final_at = grad_final.data + direction * grad_final.direction + row * grad_final.batch + columns
        carry = computed(tl.load(final_at, mask=there, other=0.0), TYPE)
        if OWN:
            final_h = carry
            carry = computed(tl.load(final_at + grad_final.plane, mask=there, other=0.0), TYPE)

    last = length - 1
    end = _position(clock, tl.maximum(last, 0), some)
    after = tl.load(memory_walk[0] + end * memory_walk[1] + columns, mask=read_there, other=0.0)
    queue = ()
    for n in tl.static_range(AHEAD):
        queue = queue + (
            _backward_input(
                x_walk,
                x.plane,
                memory_walk,
                above_walk,
                reset_walk,
                clock,
                last - n,
                backwards,
                some,
                read_there,
                columns,
                GATES,
            ),
        )
    for n in range(length):
        s = last - n
        read = queue[0]
        queue = queue[1:] + (
            _backward_input(
                x_walk,
                x.plane,
                memory_walk,
                above_walk,
                reset_walk,
                clock,
                s - AHEAD,
                backwards,
                some,
                read_there,
                columns,
                GATES,
            ),
        )
        before = tl.where(s == 0, first, read[FIRST + GATES])
        m = computed(before, TYPE)
        if reset is not None:
            m = tl.where(read[0], 0.0, m)
        dy = nothing
        if grad_output is not None:
            dy = computed(read[FIRST + GATES + 1], TYPE)
        if OWN:
            dy = tl.where(s == last, dy + final_h, dy)
        gates = _computed(read[FIRST:], GATES, TYPE)
        dx, carry, dw = STEP(gates, m, computed(after, TYPE), vectors, dy, carry, TANH)
        if reset is not None:
            carry = tl.where(read[0], 0.0, carry)
        after = before
        to = grad_x_walk[0] + _position(clock, s, some) * grad_x_walk[1] + columns
        for k in tl.static_range(GATES):
            tl.store(to + k * grad_x.plane, stored(dx[k], storage), mask=there)
        if VECTORS > 0:
            more = ()
            for k in tl.static_range(VECTORS):
                more = more + (sums[k] + dw[k],)
            sums = more

    grad_state_at = grad_state.data + direction * grad_state.direction + row * grad_state.batch + columns
    if OWN:  # the output is never read: only an empty row passes its gradient on
        tl.store(grad_state_at, stored(tl.where(some, nothing, final_h), storage), mask=there)
        grad_state_at = grad_state_at + grad_state.plane
    tl.store(grad_state_at, stored(carry, storage), mask=there)
    if VECTORS > 0:
        grad_weight_at = grad_weight.data + direction * grad_weight.direction + row * grad_weight.batch
        for k in tl.static_range(VECTORS):
            tl.store(grad_weight_at + k * grad_weight.plane + columns, stored(sums[k], storage), mask=there)
    if first_row is None:
        empty = tl.zeros([BLOCK], storage)
        for t in range(length, steps):
            to = grad_x_walk[0] + tl.where(backwards, last - t, t) * grad_x_walk[1] + columns
            for k in tl.static_range(GATES):
                tl.store(to + k * grad_x.plane, empty, mask=there)
