"""``lrn::scan`` and ``lrn::scan_backward`` on this engine: checks, where in memory things are, and the
launch.

Arguments come in the order of ``../schemas.py``, shapes are those of ``../ops.py``. Nothing is read back
from the device: lengths that are out of range are not refused here, but lead nowhere either.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lrn.recurrence import cells
from lrn.recurrence.registration import fake_gradients
from lrn.recurrence.rows import on
from lrn.recurrence.triton import kernels
from lrn.recurrence.triton.cells import STEPS
from lrn.recurrence.triton.kernels import Grid
from lrn.recurrence.triton.numbers import INTERPRETED
from lrn.recurrence.triton.plan import plan

COMPUTED = {
    torch.float32: tl.float32,
    torch.float64: tl.float64,
    torch.bfloat16: tl.float32,
    torch.float16: tl.float32,
}
"""The types that are taken, and the one in which each is computed."""

_BLOCKS = 2**31 - 1  # programs of one launch


def _check(good: bool, what: str) -> None:
    if not good:
        raise RuntimeError(f"lrn: {what}")


def _adjacent(x: Tensor) -> Tensor:
    """A copy only where neighbouring features are not neighbours in memory."""
    return x.contiguous() if x.shape[-1] > 1 and x.stride(-1) != 1 else x


class Call:
    """One call: its sizes, checked, and everything the kernels need that a tensor does not hold."""

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
    ) -> None:
        _check(cell in cells.CELLS, f"there is no cell {cell!r}")
        _check(direction in cells.REVERSE, f"direction must be forward, reverse or both, got {direction!r}")
        _check(x.dtype in COMPUTED, "tensors must be float32, float64, bfloat16 or float16")
        self.cell, self.like = cells.CELLS[cell], x
        self.packed, self.batch_first = batch_sizes is not None, batch_first
        self.leading = 1 if self.packed else 2
        _check(x.dim() == self.leading + 3, f"x must have {self.leading + 3} dimensions, got {x.dim()}")
        _check(state.dim() == 4, f"state must have 4 dimensions, got {state.dim()}")
        directions, gates, self.hidden = x.shape[-3:]
        _check(
            directions == len(cells.REVERSE[direction]) and gates == self.cell.gates,
            f"x does not fit {cell}, {direction}",
        )
        self.batch, self.directions = state.shape[2], directions
        _check(state.shape == (self.cell.parts, directions, self.batch, self.hidden), "state does not fit x")
        self._check_type(state, "state")
        self.lengths, self.first_row = lengths, None
        if batch_sizes is not None:
            _check(lengths is None, "lengths and batch_sizes exclude each other")
            self.steps = len(batch_sizes)
            self.first_row, self.lengths = self._packing(batch_sizes, x.shape[0])
        else:
            time, rows = (1, 0) if batch_first else (0, 1)
            self.steps = x.shape[time]
            _check(x.shape[rows] == self.batch, "state has another batch size than x")
            if lengths is not None:
                self._check_lengths(lengths)
        self.weight = self._weight(weight, cell)
        self.reset = self._reset(reset)
        self.x, self.state = _adjacent(x), _adjacent(state)
        name, _, activation = cell.partition("_")
        self.step = STEPS[name]
        self.how = {
            "GATES": self.cell.gates,
            "VECTORS": self.cell.vectors,
            "TANH": activation == "tanh",
            "REVERSE": direction == "reverse",
            "TYPE": COMPUTED[x.dtype],
        }

    # Checks ---------------------------------------------------------------------------------------------

    def _check_type(self, x: Tensor, name: str) -> None:
        _check(
            x.dtype == self.like.dtype and x.device == self.like.device,
            f"{name} must be on {self.like.device} and of x's type",
        )

    def check_output(self, x: Tensor, name: str) -> None:
        _check(
            x.shape == (*self.like.shape[: self.leading], self.directions * self.hidden),
            f"{name} does not fit x",
        )
        self._check_type(x, name)

    def check_state(self, x: Tensor, name: str) -> None:
        _check(x.shape == self.state.shape, f"{name} does not fit state")
        self._check_type(x, name)

    def _check_lengths(self, lengths: Tensor) -> None:
        _check(
            lengths.dtype == torch.int64 and lengths.dim() == 1 and lengths.device == self.like.device,
            f"lengths must be int64, of one dimension, on {self.like.device}",
        )
        _check(lengths.shape[0] == self.batch, "lengths must have one entry a row")
        self.lengths = lengths.contiguous()

    def _packing(self, batch_sizes: Tensor, total: int) -> tuple[Tensor, Tensor]:
        """The first row of each step ``[T]`` and the length of each row ``[B]``, both sent at once."""
        _check(
            batch_sizes.dtype == torch.int64 and batch_sizes.dim() == 1 and batch_sizes.is_cpu,
            "batch_sizes must be int64, of one dimension, on the CPU",
        )
        first, lengths, row, before = [], [0] * self.batch, 0, self.batch
        for t, size in enumerate(batch_sizes.tolist()):
            _check(0 < size <= before, "batch_sizes must be positive and not increase")
            first.append(row)
            row += size
            lengths[size:before] = [t] * (before - size)
            before = size
        lengths[:before] = [self.steps] * before
        _check(row == total, f"batch_sizes add up to {row}, x has {total} rows")
        sent = on(self.like.device, first + lengths)
        return sent[: self.steps], sent[self.steps :]

    def _weight(self, weight: Tensor | None, cell: str) -> Tensor | None:
        vectors = self.cell.vectors
        if not vectors:
            _check(weight is None, f"{cell} has no vectors, weight must be None")
            return None
        shape = (self.batch, self.directions, vectors, self.hidden)
        _check(weight is not None and weight.shape == shape, f"{cell} needs weight [B, D, {vectors}, H]")
        assert weight is not None
        self._check_type(weight, "weight")
        return _adjacent(weight)

    def _reset(self, reset: Tensor | None) -> Tensor | None:
        if reset is not None:
            _check(
                reset.dtype == torch.bool and reset.shape == self.like.shape[: self.leading],
                "reset must be bool, with x's leading dimensions",
            )
            _check(reset.device == self.like.device, f"reset must be on {self.like.device}")
        return reset

    # In memory --------------------------------------------------------------------------------------------

    def rows(self, x: Tensor, direction: int = 0, plane: int = 0) -> Grid:
        """A tensor with a row per token."""
        if self.packed:
            return Grid(x, 0, x.stride(0), direction, plane)
        time, batch = (1, 0) if self.batch_first else (0, 1)
        return Grid(x, x.stride(time), x.stride(batch), direction, plane)

    def gates(self, x: Tensor) -> Grid:
        return self.rows(x, x.stride(-3), x.stride(-2))

    def outputs(self, x: Tensor) -> Grid:
        return self.rows(x, self.hidden)

    @staticmethod
    def states(x: Tensor) -> Grid:
        return Grid(x, 0, x.stride(2), x.stride(1), x.stride(0))

    @staticmethod
    def weights(x: Tensor) -> Grid:
        return Grid(x, 0, x.stride(0), x.stride(1), x.stride(2))

    def run(self, kernel: Any, *args: Any, **more: Any) -> None:
        """Launch a kernel over all rows, directions and columns."""
        elements = self.batch * self.directions * self.hidden
        if not elements:
            return
        cut = plan(elements, self.hidden, self.steps, self.like.element_size(), _warp())
        programs = self.batch * self.directions * -(-self.hidden // cut.block)
        _check(programs <= _BLOCKS, f"{elements} rows and columns are more than one launch takes")
        with _device(self.like):
            kernel[(programs,)](
                *args,
                self.lengths,
                self.first_row,
                None if self.reset is None else self.rows(self.reset),
                self.steps,
                self.batch,
                self.hidden,
                **self.how,
                **more,
                BLOCK=cut.block,
                AHEAD=cut.ahead,
                num_warps=1,
                enable_fp_fusion=True,
            )


@functools.cache
def _warp() -> int:
    """Threads of a warp: 32 on NVIDIA's GPUs, 64 on AMD's. The interpreter has no threads: 0."""
    if INTERPRETED:
        return 0
    return int(triton.runtime.driver.active.get_current_target().warp_size)


def _device(x: Tensor) -> AbstractContextManager[Any]:
    """Inside, the tensor's device is the current one, where Triton launches."""
    if x.is_cpu:  # by the interpreter
        return nullcontext()
    return torch.accelerator.device_index(x.device.index)


def scan(x: Tensor, state: Tensor, weight: Tensor | None, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    """``lrn::scan``: output, memory (empty where the output is it), final state."""
    call = Call(x, state, weight, *rest)
    output = x.new_empty(*x.shape[: call.leading], call.directions * call.hidden)
    own = call.cell.parts == 2
    memory = torch.empty_like(output) if own else x.new_empty(0)
    final = state.new_empty(state.shape)
    call.run(
        kernels.forward,
        call.gates(call.x),
        call.states(call.state),
        None if call.weight is None else call.weights(call.weight),
        call.outputs(output),
        call.outputs(memory) if own else None,
        call.states(final),
        STEP=call.step.forward,
        OWN=own,
    )
    return output, memory, final


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
    call = Call(x, state, weight, *rest)
    call.check_output(memory, "memory")
    if grad_output is not None:
        call.check_output(grad_output, "grad_output")
        grad_output = _adjacent(grad_output)
    if grad_final is not None:
        call.check_state(grad_final, "grad_final")
        grad_final = _adjacent(grad_final)
    grad_x, grad_state = fake_gradients(x, state)
    grad_weight = x.new_empty((0,) if weight is None else weight.shape)
    call.run(
        kernels.backward,
        None if grad_output is None else call.outputs(grad_output),
        None if grad_final is None else call.states(grad_final),
        call.gates(call.x),
        call.states(call.state),
        None if call.weight is None else call.weights(call.weight),
        call.outputs(_adjacent(memory)),
        call.gates(grad_x),
        call.states(grad_state),
        None if call.weight is None else call.weights(grad_weight),
        STEP=call.step.backward,
        OWN=call.cell.parts == 2,
    )
    return grad_x, grad_state, grad_weight
