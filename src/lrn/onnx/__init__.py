"""Our units in ONNX: what ``torch.onnx.export`` must know of the ops that they put into a graph.

It needs the packages onnx and onnxscript; what was exported runs in onnxruntime, for example. All three come
with ``pip install 'lrn-torch[onnx]'``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lrn import recurrence

__all__ = ["translations"]

OPS = ("scan", "scan.by", "atr", "walk", "fused", "attend")
"""Our ops that an exported graph may have."""


def translations() -> dict[Any, Callable[..., Any]]:
    """The table that ``torch.onnx.export(model, …, dynamo=True, custom_translation_table=…)`` takes.

    With it any model that has our units can be exported. LRN, its relatives and SRU become one ONNX ``Scan``
    a layer, ATR a ``Scan`` with a product inside, LSTM and GRU become ONNX's own (with ``norm`` or ``reset``,
    which those do not know, a ``Scan`` too). Lengths, reset, both directions, packed rows and an initial
    state go along; steps and rows may be left open by ``dynamic_shapes``.

    >>> import lrn.onnx
    >>> for op in lrn.onnx.translations():
    ...     print(op)
    aten.rms_norm.default
    lrn.scan.default
    lrn.scan.by
    lrn.atr.default
    lrn.walk.default
    lrn.fused.default
    lrn.attend.default
    """
    assert recurrence  # whose ops these are
    try:
        from lrn.onnx import ops
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise ModuleNotFoundError(
            f"ONNX export needs {package}: pip install 'lrn-torch[onnx]'", name=error.name
        ) from None
    table = {torch.ops.aten.rms_norm.default: ops.rms_norm}
    for name in OPS:
        packet, _, overload = name.partition(".")
        table[getattr(getattr(torch.ops.lrn, packet), overload or "default")] = getattr(ops, packet)
    for function in table.values():
        function.__annotations__.clear()  # torch would take them for ONNX's types
    return table
