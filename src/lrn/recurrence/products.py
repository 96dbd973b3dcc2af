"""Matrix products by the faster of the two libraries that torch has on a CPU.

torch multiplies float32 matrices with MKL, which keeps to 256-bit instructions on processors that are not
Intel's. oneDNN, which torch has as well and runs ``nn.LSTM`` with, uses 512-bit ones wherever there are any:
there a product takes half the time. Where that is so, large products of plain float32 tensors go to oneDNN;
everything else is torch's.

The choice depends on the processor, the shapes and ``torch.backends.mkldnn.enabled`` alone, never on a
measurement, so that a program gives the same bits every time it runs on a machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.recurrence import modes

LARGE = 2**20  # multiplications from which oneDNN's call, a few microseconds longer, is worth it
_NARROW = 16  # below which rows or columns are too few for either library to be busy with more than memory
_PLAIN = (Tensor, torch.nn.Parameter)


def _gains(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor has 512-bit instructions that MKL does not use."""
    if modes.onednn_linear is None or torch.backends.cpu.get_cpu_capability() != "AVX512":
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
    # The compiler would take questions of size for rules of its graph.
    if not GAINS or modes.compiling() or not _takes(x, weight, x.shape[:-1].numel()):
        return F.linear(x, weight, bias)
    if bias is not None and not _plain(bias):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    return _by_onednn(x, weight, bias)


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of two matrices, ``[M, K]`` and ``[K, N]``. It is not recorded by autograd.

    >>> import torch
    >>> a, b = torch.randn(50, 30), torch.randn(30, 40)
    >>> torch.allclose(product(a, b), a @ b, atol=1e-5)
    True
    """
    if not (GAINS and _takes(a, b, a.shape[0])):
        return torch.mm(a, b)
    # oneDNN wants its first factor row by row and copies it if it is not, so that is the narrower of the two.
    if a.is_contiguous() or (not b.t().is_contiguous() and a.shape[0] <= b.shape[1]):
        return _by_onednn(a, b.t(), None)
    return _by_onednn(b.t(), a, None).t()


def product_into(out: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``a @ b``, written to ``out``, which is returned."""
    if GAINS and _takes(a, b, a.shape[0]):
        return out.copy_(product(a, b))
    return torch.mm(a, b, out=out)


def add_product(total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``total + a @ b``, in place."""
    if GAINS and _takes(a, b, a.shape[0]):
        return total.add_(product(a, b))
    return total.addmm_(a, b)


def _by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    assert modes.onednn_linear is not None
    with modes.below_autograd():
        return modes.onednn_linear(x, weight, bias, "none", [], "")


def _takes(x: Tensor, other: Tensor, rows: Any) -> bool:
    """Whether a product of x is one for oneDNN, as far as shapes and what is at work say."""
    return (
        type(x) in _PLAIN
        and rows * other.numel() >= LARGE
        and min(rows, *other.shape) >= _NARROW
        and _plain(x)
        and _plain(other)
        and not modes.tracing()
        and modes.onednn_enabled()
    )


def _plain(x: Tensor) -> bool:
    return type(x) in _PLAIN and x.is_cpu and x.dtype == torch.float32 and modes.plain(x)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _by_onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows = grad.reshape(-1, weight.shape[0])  # [N, O]
        inputs = x.reshape(-1, weight.shape[1])  # [N, I]
        again = torch.is_grad_enabled() or modes.wrapped(grad)  # second gradients, or many at once
        multiply = torch.mm if again else product
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            multiply(rows, weight).view(x.shape) if of_x else None,
            multiply(rows.t(), inputs) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )
