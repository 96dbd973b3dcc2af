"""An engine that is parallel in time: all steps of a window at once, in plain torch, on any device.

A step of these cells sees of the step before only its own column, so the Jacobian of the whole trajectory
has a single diagonal beside the main one, and Newton's method on all steps together costs one linear
recurrence an iteration: δ[t] = J[t] δ[t-1] + r[t], where r is what the steps of the present guess miss.
That one is associative, and runs in log T rounds (``linear_scan``). Where r is below tolerance a last
iteration follows, for float32 one more in float64; what does not get there (chaotic weights, infinities) is
walked step by step. So there is never another number than the definition's, at most a later one. Backward
needs no iterations: it is one linear recurrence, from the end, in float64 for float32 too.

Arguments of the ops come in the order of ``schemas.py``, shapes are those of ``ops.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lrn.recurrence import cells, modes
from lrn.recurrence.registration import fake_gradients
from lrn.recurrence.rows import Rows
from lrn.recurrence.slopes import SLOPES

WINDOW = 1024  # steps solved together; the next window begins with the state that it ends with
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
"""How far a step may miss the next one, relative where that is above 1; last iterations follow."""
MOST = 24  # iterations of a window; then it is walked


def linear_scan(a: Tensor, b: Tensor) -> Tensor:
    """``y[t] = a[t] y[t-1] + b[t]``, y[-1] = 0, over the first dimension: 2 log T rounds, O(T) work.

    Two neighbouring steps are one step of a sequence half as long; that one gives every second y, and each of
    them the next.

    >>> linear_scan(torch.tensor([5.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 1.0]))
    tensor([ 1.,  3., 10.])
    """
    steps = a.shape[0]
    if steps < 2:
        return b
    early, late = slice(0, steps // 2 * 2, 2), slice(1, None, 2)
    halved = linear_scan(a[late] * a[early], torch.addcmul(b[late], a[late], b[early]))  # [T // 2, ...]
    y = torch.empty_like(b)
    y[late] = halved
    y[0] = b[0]
    between = slice(2, None, 2)
    y[between] = torch.addcmul(b[between], a[between], halved[: (steps - 1) // 2])
    return y


@dataclass
class Effort:
    """What walks have cost: the iterations of every window that was solved, and how many were walked."""

    iterations: list[int] = field(default_factory=list)
    walked: int = 0


_watched: ContextVar[Effort | None] = ContextVar("lrn_effort", default=None)


@contextmanager
def effort() -> Iterator[Effort]:
    """Inside, it is counted what walks on this engine cost.

    >>> import lrn
    >>> with lrn.engine("parallel"), effort() as cost:
    ...     output, state = lrn.LRN(3, 4)(torch.zeros(5, 2, 3))
    >>> len(cost.iterations), cost.walked
    (1, 0)
    """
    cost = Effort()
    token = _watched.set(cost)
    try:
        yield cost
    finally:
        _watched.reset(token)


@dataclass
class _Way:
    """One direction of a call, its steps in the order of the walk: x ``[T, B, gates, H]``, padding included.

    Padded steps hand the state on. Marks are ``[T, B, 1]``, or None where there is nothing to mark.
    """

    cell: str
    x: Tensor
    weight: Tensor | None  # [B, vectors, H]
    real: Tensor | None
    border: Tensor | None

    def step(self, m: Tensor, part: slice | int = slice(None)) -> tuple[Tensor, Tensor, Tensor]:
        """All steps of a part from the memories before them: output, memory, and what m became at borders."""
        cell = cells.CELLS[self.cell]
        if self.border is not None:
            m = m.masked_fill(self.border[part], 0)
        state = (m,) * cell.parts  # of SRU's pair only the memory is read
        new = cell.step(self.x[part], state, self.weight)
        memory = new[-1]
        if self.real is not None:
            memory = torch.where(self.real[part], memory, m)
        return new[0], memory, m

    def pull(self, m: Tensor, after: Tensor, dy: Tensor, dm: Tensor, part: slice | int = slice(None)) -> Any:
        """The gradient of those steps: of x, of the memory before them, of the vectors of every step."""
        name, _, activation = self.cell.partition("_")
        dx, before, vectors = SLOPES[name](self.x[part], m, after, self.weight, dy, dm, activation == "tanh")
        if self.real is not None:
            before = torch.where(self.real[part], before, dm)
        if self.border is not None:
            before = before.masked_fill(self.border[part], 0)
        return dx, before, vectors

    def trajectory(self, first: Tensor) -> Tensor:
        """The memory after every step, ``[T, B, H]``, from the state ``first [B, H]``."""
        windows = []
        for start in range(0, len(self.x), WINDOW):
            part = slice(start, start + WINDOW)
            windows.append(self._solve(first, part))
            first = windows[-1][-1]
        return torch.cat(windows) if windows else first.new_empty(0, *first.shape)

    def _solve(self, first: Tensor, part: slice) -> Tensor:
        steps, cost = len(self.x[part]), _watched.get()
        _, m, _ = self.step(torch.zeros_like(first).expand(steps, *first.shape), part)
        ones, nothing = torch.ones_like(m), torch.zeros_like(m)
        for n in range(1, MOST + 1):
            _, new, before = self.step(torch.cat([first[None], m[:-1]]), part)
            missed = new - m
            slopes = self.pull(before, new, nothing, ones, part)[1]
            m = m + linear_scan(slopes, missed)
            if bool((missed.abs() <= TOLERANCE[m.dtype] * new.abs().clamp_min(1)).all()):  # NaN is not below
                if not bool(m.isfinite().all()):
                    break
                if cost is not None:
                    cost.iterations.append(n)
                return self._refined(first, m, part)
            if self.cell.endswith("_tanh"):  # what a step gives; padding hands on any state there is
                inside = m.clamp(-1, 1)
                m = inside if self.real is None else torch.where(self.real[part], inside, m)
        if cost is not None:
            cost.walked += 1
        return self._walk(first, part)

    def _refined(self, first: Tensor, m: Tensor, part: slice) -> Tensor:
        """A float32 trajectory after one more iteration in float64, where the device has that.

        An error of a step goes on to all that follow and, where slopes are near 1, adds up; what is left of
        it in float32 would be more than that of a walk.
        """
        if m.dtype == torch.float64 or not modes.has_float64(m.device):
            return m
        weight = None if self.weight is None else self.weight.double()
        real, border = (None if marks is None else marks[part] for marks in (self.real, self.border))
        fine = _Way(self.cell, self.x[part].double(), weight, real, border)
        before, after = torch.cat([first[None], m[:-1]]).double(), m.double()
        _, new, before = fine.step(before)
        slopes = fine.pull(before, new, torch.zeros_like(new), torch.ones_like(new))[1]
        return (after + linear_scan(slopes, new - after)).to(m.dtype)

    def _walk(self, m: Tensor, part: slice) -> Tensor:
        memories = []
        for t in range(len(self.x))[part]:
            _, m, _ = self.step(m, t)
            memories.append(m)
        return torch.stack(memories)


class _Call:
    """What both passes need of the arguments: padded, in the type in which is computed."""

    def __init__(
        self,
        x: Tensor,
        state: Tensor,
        weight: Tensor | None,
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        reset: Tensor | None,
        cell: str,
        direction: str,
        batch_first: bool,
        *,
        finer: bool = False,
    ) -> None:
        self.dtype = x.dtype
        self.computed = x.dtype if x.dtype in TOLERANCE else torch.float32
        if finer and modes.has_float64(x.device):
            self.computed = torch.float64
        self.rows = Rows(state.shape[2], batch_first, lengths, batch_sizes, reset)
        self.cell, self.reverse = cells.CELLS[cell], cells.REVERSE[direction]
        self.x = self.rows.pad(x).to(self.computed)  # [T, B, D, gates, H]
        self.state = state.to(self.computed)
        self.steps = self.x.shape[0]
        lengths = self.rows.row_lengths(x.device)
        self.lengths = None if lengths is None else lengths.clamp(0, self.steps)
        self.real: Tensor | None = None
        if self.lengths is not None:
            self.real = torch.arange(self.steps, device=x.device)[:, None] < self.lengths  # [T, B]
            self.x = self.x.masked_fill(~self.real[..., None, None, None], 0)
        marks = self.rows.padded_reset()
        if marks is not None and self.real is not None:
            marks = marks & self.real
        self.marks = marks
        self.weight = None if weight is None else weight.to(self.computed)

    def turned(self, values: Tensor, d: int) -> Tensor:
        """Steps in the order of time in that of the walk, or back again."""
        return values.flip(0) if self.reverse[d] else values

    def way(self, d: int) -> _Way:
        border = self.marks
        if border is not None and self.reverse[d]:  # met on the way to the step before it
            border = torch.cat([border[1:], torch.zeros_like(border[:1])])
        return _Way(
            self.cell.name,
            self.turned(self.x[:, :, d], d),
            None if self.weight is None else self.weight[:, d],
            None if self.real is None else self.turned(self.real, d)[..., None],
            None if border is None else self.turned(border, d)[..., None],
        )

    def before(self, memory: Tensor, d: int) -> Tensor:
        """The memory before every step, in the order of the walk, from that after it; padding is anything."""
        first = self.state[-1, d]
        shifted = torch.cat([first[None], memory])[:-1]
        if self.lengths is None or not self.reverse[d]:
            return shifted
        steps = torch.arange(self.steps, device=memory.device)[:, None]
        begins = steps == self.steps - self.lengths  # a row that is walked back begins at its own end
        return torch.where(begins[..., None], first, shifted)

    def last(self, output: Tensor, d: int) -> Tensor:
        """The output of every row's last step in the walk; of an empty row what it began with."""
        first = self.state[0, d]
        if not self.steps:
            return first
        if self.lengths is None:
            return output[-1]
        end = output[-1]
        if not self.reverse[d]:
            at = (self.lengths - 1).clamp_min(0)[None, :, None].expand(1, *first.shape)
            end = output.gather(0, at)[0]
        return torch.where((self.lengths > 0)[:, None], end, first)


def scan(x: Tensor, state: Tensor, weight: Tensor | None, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    """``lrn::scan``: output, memory (empty where the output is it), final state."""
    call = _Call(x, state, weight, *rest)
    pair = call.cell.parts == 2
    outputs, memories, finals = [], [], []
    for d in range(len(call.reverse)):
        way = call.way(d)
        memory = way.trajectory(call.state[-1, d])
        final = memory[-1] if call.steps else call.state[-1, d]
        output = memory
        if pair:
            output = way.step(torch.cat([call.state[-1, d][None], memory])[:-1])[0]
        parts = (call.last(output, d), final) if pair else (final,)
        if way.real is not None:
            output, memory = (value.masked_fill(~way.real, 0) for value in (output, memory))
        outputs.append(call.turned(output, d))
        memories.append(call.turned(memory, d))
        finals.append(torch.stack(parts))
    stored = [call.rows.unpad(torch.cat(kind, -1)).to(call.dtype) for kind in (outputs, memories)]
    output, memory = (value.contiguous() for value in stored)
    return output, memory if pair else x.new_empty(0), torch.stack(finals, 1).to(call.dtype).contiguous()


def scan_backward(
    grad_output: Tensor | None,
    grad_final: Tensor | None,
    x: Tensor,
    state: Tensor,
    weight: Tensor | None,
    memory: Tensor,
    *rest: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """``lrn::scan_backward``: the gradients of x, of the state, and of each row's weight (else empty)."""
    call = _Call(x, state, weight, *rest, finer=True)
    hidden = state.shape[-1]

    def padded(tokens: Tensor) -> Tensor:
        tokens = call.rows.pad(tokens).to(call.computed)
        return tokens.reshape(*tokens.shape[:2], len(call.reverse), hidden)  # [T, B, D, H]

    after = padded(memory)
    above = torch.zeros_like(after) if grad_output is None else padded(grad_output)
    if call.real is not None:
        above = above.masked_fill(~call.real[..., None, None], 0)
    end = torch.zeros_like(call.state) if grad_final is None else grad_final.to(call.computed)
    gates, states, vectors = [], [], []
    for d in range(len(call.reverse)):
        dx, grad_state, dw = _back(
            call, d, call.turned(after[:, :, d], d), call.turned(above[:, :, d], d), end[:, d]
        )
        gates.append(call.turned(dx, d))
        states.append(grad_state)
        vectors.append(dw)
    grad_x, grad_state = fake_gradients(x, state)
    grad_x.copy_(call.rows.unpad(torch.stack(gates, 2)))
    grad_state.copy_(torch.stack(states, 1))
    if weight is None:
        return grad_x, grad_state, x.new_empty(0)
    return grad_x, grad_state, torch.stack(vectors, 1).to(call.dtype).contiguous()  # type: ignore[arg-type]


def _back(
    call: _Call, d: int, after: Tensor, dy: Tensor, end: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """One direction, in the order of the walk: the gradients of x, of the state, and of the vectors."""
    way, pair = call.way(d), call.cell.parts == 2
    m = call.before(after, d)
    if way.border is not None:
        m = m.masked_fill(way.border, 0)
    if pair and call.steps:  # the final output is the last step's, which nothing reads
        dy = dy + _at_the_end(call, d, end[0])
    nothing, ones = torch.zeros_like(after), torch.ones_like(after)
    slopes = way.pull(m, after, nothing, ones)[1]
    direct = way.pull(m, after, dy, nothing)[1]
    later = _from_the_end(slopes, direct, end[-1])  # [T + 1, B, H]
    if not bool(later.isfinite().all()):
        later = _walk_back(way, m, after, dy, end[-1])
    dx, _, dw = way.pull(m, after, dy, later[1:])
    if way.real is not None:
        dx = dx.masked_fill(~way.real[..., None], 0)
        dw = None if dw is None else dw.masked_fill(~way.real[..., None], 0)
    states = [later[0]]
    if pair:
        empty = torch.zeros_like(end[0])
        if call.steps == 0:
            empty = end[0]
        elif call.lengths is not None:
            empty = torch.where((call.lengths == 0)[:, None], end[0], empty)
        states = [empty, later[0]]
    return dx, torch.stack(states), None if dw is None else dw.sum(0)


def _at_the_end(call: _Call, d: int, grad: Tensor) -> Tensor:
    """The gradient of the final output, where every row's last step of the walk is: ``[T, B, H]``."""
    steps = torch.arange(call.steps, device=grad.device)[:, None]
    ends: Tensor = steps == call.steps - 1
    if call.lengths is not None:
        ends = (ends if call.reverse[d] else steps == call.lengths - 1) & (call.lengths > 0)
    return torch.where(ends[..., None], grad, torch.zeros_like(grad))


def _from_the_end(slopes: Tensor, direct: Tensor, end: Tensor) -> Tensor:
    """``g[t] = slopes[t] g[t+1] + direct[t]`` with g[T] = end, for all t from 0 to T: ``[T + 1, B, H]``."""
    a = torch.cat([slopes, torch.zeros_like(end)[None]]).flip(0)
    return linear_scan(a, torch.cat([direct, end[None]]).flip(0)).flip(0)


def _walk_back(way: _Way, m: Tensor, after: Tensor, dy: Tensor, g: Tensor) -> Tensor:
    """The same step by step: what infinities do in products depends on the order of them."""
    walked = [g]
    for t in reversed(range(len(m))):
        g = way.pull(m[t], after[t], dy[t], g, t)[1]
        walked.append(g)
    return torch.stack(walked[::-1])
