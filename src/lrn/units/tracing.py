"""What a unit is to tracers that cannot look inside it: a node of a graph, or a line that says what can."""

from __future__ import annotations

from typing import Any

from torch import fx, nn

from lrn.recurrence import modes

INSTEAD = "use torch.export.export, whose graph runs any length and batch"


def refuse_tracing(unit: str) -> None:
    """An error inside ``torch.jit.trace``, which would keep the lengths and the engine of its example."""
    if modes.tracing():
        raise TypeError(f"{unit}: torch.jit.trace does not take recurrent units of lrn; {INSTEAD}")


def refuse_scripting(unit: str) -> None:
    """An error for ``torch.jit.script``."""
    raise TypeError(f"{unit}: torch.jit.script does not take recurrent units of lrn; {INSTEAD}")


def refuse_proxy(unit: str, x: object) -> None:
    """An error where ``torch.fx.symbolic_trace`` meets a part of a unit, of which it can make no node."""
    if isinstance(x, fx.Proxy):
        raise TypeError(
            f"{unit}: torch.fx.symbolic_trace takes calls of a whole unit that is part of a module, "
            f"not of the unit alone or its step, project and recur; {INSTEAD}"
        )


def node(unit: nn.Module, x: fx.Proxy, **keywords: Any) -> Any:
    """The call of a unit as one node of the graph that ``torch.fx.symbolic_trace`` is making.

    >>> import torch, lrn
    >>> class Model(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.rnn = lrn.LRN(3, 4)
    ...     def forward(self, x):
    ...         return self.rnn(x)[0]
    >>> [n.op for n in torch.fx.symbolic_trace(Model()).graph.nodes]
    ['placeholder', 'call_module', 'call_function', 'output']
    """
    tracer = x.tracer
    path = tracer.path_of_module(unit) if isinstance(tracer, fx.Tracer) else ""
    if not path:  # the unit is what is traced
        refuse_proxy(type(unit).__name__, x)
    given = {name: value for name, value in keywords.items() if value is not None}
    return tracer.create_proxy("call_module", path, (x,), given)
