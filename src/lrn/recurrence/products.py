"""Matrix products by the faster of the two libraries that torch has on a CPU.

torch multiplies float32 matrices with MKL, which keeps to 256-bit instructions on processors that are not
Intel's. oneDNN, which torch has as well and runs ``nn.LSTM`` with, uses 512-bit ones wherever there are any:
there a product takes half the time. Where that is so, large products of plain float32 tensors go to oneDNN;
everything else is torch's.

The choice depends on the processor, on what is multiplied and on ``torch.backends.mkldnn.enabled``, never on
a measurement, so that a program gives the same bits every time it runs on a machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.recurrence import modes

LARGE = 2**20  # multiplications from which oneDNN's call, a few microseconds longer, is worth it
_NARROW = 16  # rows or columns, below which either library waits for the memory


def _gains(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor has 512-bit instructions that MKL does not use."""
    if modes.onednn_linear is None or not torch.backends.mkl.is_available():
        return False
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return False
    vendors = {line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")}
    return bool(vendors) and "GenuineIntel" not in vendors


GAINS = _gains()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear``: x ``[..., I]``, weight ``[O, I]``, bias ``[O]``.

    >>> import torch
    >>> x, weight = torch.randn(2, 50, 30), torch.randn(40, 30)
    >>> torch.allclose(linear(x, weight), x @ weight.T, atol=1e-5)
    True
    """
    if not (GAINS and _takes(x, weight)) or x.shape[-1] != weight.shape[1]:
        return F.linear(x, weight, bias)
    if bias is not None and not (_plain(bias) and bias.shape == weight.shape[:1]):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    with modes.below_autograd():
        return _linear(x, weight, bias)


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of two matrices, ``[M, K]`` and ``[K, N]``. It is not recorded by autograd.

    >>> import torch
    >>> a, b = torch.randn(50, 30), torch.randn(30, 40)
    >>> torch.allclose(product(a, b), a @ b, atol=1e-5)
    True
    """
    if not (GAINS and _takes(a, b)):
        return torch.mm(a, b)
    with modes.below_autograd():
        return _linear(a, b.t(), None) if a.is_contiguous() else _sum_over_rows(a.t(), b)


def product_into(out: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``a @ b``, written to ``out``, which is returned."""
    if not (GAINS and _takes(a, b)):
        return torch.mm(a, b, out=out)
    if not a.is_contiguous():
        return out.copy_(product(a, b))
    with modes.below_autograd():
        return _write(out, a, b.t(), None)


def add_product(total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``total + a @ b``, in place."""
    if GAINS and _takes(a, b):
        return total.add_(product(a, b))
    return total.addmm_(a, b)


# By oneDNN --------------------------------------------------------------------------------------------------
#
# It compiles a kernel for every shape that it meets, which takes longer than the product itself, and keeps a
# thousand of them. Every batch of text has another number of rows. So that few shapes come up, the rows are
# made a number with five leading binary digits: by rows of zeros, or without the last few, which are torch's.


def _grain(rows: int) -> int:
    """What the number of rows is to be a multiple of: between a sixteenth and a thirty-second of it."""
    return 1 << max(0, rows.bit_length() - 5)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    outputs, inputs = weight.shape
    flat = x.reshape(-1, inputs)
    rows = flat.shape[0]
    lacking = -rows % _grain(rows)
    if not lacking:
        found = _multiply(flat, weight, bias)
    elif inputs <= outputs:  # the narrower side is copied
        found = _multiply(F.pad(flat, (0, 0, 0, lacking)), weight, bias)[:rows]
    else:
        found = _write(x.new_empty(rows, outputs), flat, weight, bias)
    # not a view, which autograd would let nobody change in place
    return modes.unsafe_view(found, [*x.shape[:-1], outputs])


def _write(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    end = x.shape[0] - x.shape[0] % _grain(x.shape[0])
    out[:end] = _multiply(x[:end], weight, bias)
    if end < x.shape[0]:
        out[end:] = F.linear(x[end:], weight, bias)
    return out


def _sum_over_rows(a: Tensor, b: Tensor) -> Tensor:
    """``aᵀ @ b`` of matrices with as many rows, ``[K, M]`` and ``[K, N]``."""
    end = a.shape[0] - a.shape[0] % _grain(a.shape[0])
    first, second = a[:end], b[:end]
    # oneDNN copies its first factor if that does not lie row by row: the narrower one, then
    if a.shape[1] <= b.shape[1]:
        total = _multiply(first.t(), second.t(), None)
    else:
        total = _multiply(second.t(), first.t(), None).t()
    return total if end == a.shape[0] else total.addmm_(a[end:].t(), b[end:])


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    assert modes.onednn_linear is not None
    return modes.onednn_linear(x, weight, bias, "none", [], "")


def _takes(x: Tensor, other: Tensor) -> bool:
    """Whether a product of x is one for oneDNN, as far as shapes and what is at work say."""
    # Whoever records a graph would take questions of size for rules of it
    if modes.compiling() or modes.tracing() or not modes.dense(x):
        return False
    rows = x.shape[:-1].numel()
    return (
        other.dim() == 2
        and rows * other.numel() >= LARGE
        and min(rows, *other.shape) >= _NARROW
        and _plain(x)
        and _plain(other)
        and bool(torch.backends.mkldnn.enabled)
    )


def _plain(x: Tensor) -> bool:
    return modes.dense(x) and x.is_cpu and x.dtype == torch.float32 and modes.plain(x)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.shape = x.shape
        of_x, of_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if of_weight else None, weight if of_x else None)
        return _linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows = grad.reshape(-1, grad.shape[-1])  # [N, O]
        again = torch.is_grad_enabled() or modes.wrapped(grad)  # second gradients, or many at once
        multiply = torch.mm if again else product
        return (
            None if weight is None else multiply(rows, weight).view(ctx.shape),
            None if x is None else multiply(rows.t(), x.reshape(-1, x.shape[-1])),
            rows.sum(0) if ctx.needs_input_grad[2] else None,
        )
