"""What torch is doing to us right now, and the only home of calls that torch keeps to itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

F = TypeVar("F", bound=Callable[..., Any])

compiling = torch.compiler.is_compiling
"""Whether torch.compile or torch.export is tracing this call."""

tracing: Callable[[], bool] = torch.jit.is_tracing  # type: ignore[attr-defined]
"""Whether torch.jit.trace is recording this call."""

transformed: Callable[[], bool] = torch._C._are_functorch_transforms_active
"""Whether a transform of torch.func (grad, vmap, jacrev, …) is at work."""

below_autograd: Any = torch._C._AutoDispatchBelowAutograd
"""A context in which operations are not recorded, and not asked whether they should be."""


backward_pass: Callable[[], int] = torch._C._current_graph_task_id
"""The number of the backward pass that is running, no two of which have the same."""

runs_backward: Callable[[Any], bool] = torch._C._will_engine_execute_node
"""Whether the backward pass that is running will come to a node of the graph, which is no leaf."""


def _find_onednn_linear() -> Callable[..., Tensor] | None:
    operators = torch.ops.mkldnn
    if not torch.backends.mkldnn.is_available() or not hasattr(operators, "_linear_pointwise"):
        return None
    found = operators._linear_pointwise.default
    names = [argument.name for argument in found._schema.arguments]
    return found if names == ["X", "W", "B", "attr", "scalars", "algorithm"] else None


onednn_linear: Callable[..., Tensor] | None = _find_onednn_linear()
"""``F.linear`` by oneDNN, with three more arguments that say what follows it; None where torch has it not."""

unsafe_view: Callable[[Tensor, list[int]], Tensor] = torch.ops.aten._unsafe_view.default
"""``x.view(shape)`` that autograd does not take for a view: what is seen so must have no other owner."""

AUTOCAST_KEYS = tuple(key for key in torch._C.DispatchKey.__members__ if key.startswith("Autocast"))
"""Autocast's dispatch key of every type of device that torch knows."""


def forward_mode() -> bool:
    """Whether forward-mode derivatives are being computed."""
    return forward_ad._current_level >= 0


def autocast(x: Tensor) -> bool:
    """Whether autocast is on for the device that ``x`` is on."""
    kind = x.device.type
    return _knows_autocast(kind) and torch.is_autocast_enabled(kind)


_knows_autocast = functools.cache(
    torch.amp.is_autocast_available
)  # of others torch does not take the question


def dense(x: Tensor) -> bool:
    """Whether ``x`` is of a class of torch's own and has all its numbers in memory, or would on a device."""
    return type(x) in _CLASSES and x.layout == torch.strided


_CLASSES = (Tensor, torch.nn.Parameter)


def plain(x: Tensor) -> bool:
    """Whether nothing of all this is at work: an eager call, recorded by autograd at the most."""
    return not (compiling() or transformed() or forward_mode() or autocast(x))


def readable(x: Tensor) -> bool:
    """Whether the host can look at the numbers of ``x`` without waiting for a device or breaking a graph."""
    return x.is_cpu and not compiling() and not wrapped(x)


@functools.cache
def has_float64(device: torch.device) -> bool:
    """Whether a device computes in float64, which not all do."""
    try:
        torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, TypeError):
        return False
    return True


def wrapped(x: Tensor) -> bool:
    """Whether ``x`` stands for others: inside torch.func, or where many gradients are taken at once."""
    inside = torch._C._functorch
    return inside.is_functorch_wrapped_tensor(x) or inside.is_legacy_batchedtensor(x)


def constant(function: F) -> F:
    """Tell the compiler that what ``function`` returns while it traces can stand in the graph as it is."""
    # What torch.compiler.assume_constant_result would set; that function takes a second to import.
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def traced_loop(step: Callable[[Any, Any], Any], state: Any, steps: Any) -> Any:
    """A loop over the leading dimension of tensors that stays a loop in an exported graph."""
    from torch._higher_order_ops.scan import scan

    return scan(step, state, steps)
