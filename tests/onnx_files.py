"""What the tests of ONNX share: one of our ops as a model of its own, and files in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import onnxruntime
import torch
from onnx_ir.passes import common
from onnxscript import evaluator
from torch import Tensor

KINDS = {
    torch.float32: ir.DataType.FLOAT,
    torch.float64: ir.DataType.DOUBLE,
    torch.int64: ir.DataType.INT64,
    torch.bool: ir.DataType.BOOL,
}


def session(model: Any) -> onnxruntime.InferenceSession:
    """A file, or the bytes of one, in onnxruntime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class _Recorder:
    """What stands for the exporter while an op is translated."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []


class OpModel:
    """The translation of an op as a model; its tensors have free sizes but for the last ``known`` ones.

    ``given`` are the op's arguments, of which tensors say what type and rank they have.
    """

    def __init__(self, translate: Any, given: Sequence[Any], free: Sequence[Sequence[int]]) -> None:
        self.places = [n for n, value in enumerate(given) if isinstance(value, Tensor)]
        values = list(given)
        for n, axes in zip(self.places, free, strict=True):
            shape = [None if axis in axes else size for axis, size in enumerate(given[n].shape)]
            values[n] = ir.val(f"given_{n}", KINDS[given[n].dtype], shape)
        recorder = _Recorder()
        with evaluator.default_as(recorder):
            results = translate(*values)
        self.kinds = [node.op_type for node in recorder.nodes]
        for result in results:
            result.dtype = result.dtype or values[self.places[0]].dtype
        graph = ir.Graph(
            [values[n] for n in self.places], results, nodes=recorder.nodes, opset_imports={"": 18}, name="op"
        )
        model = ir.Model(graph, ir_version=10)
        common.NameFixPass()(model)
        self.inputs = [value.name for value in graph.inputs]
        self.session = session(ir.to_proto(model).SerializeToString())

    def __call__(self, *given: Any) -> list[Tensor]:
        tensors = [given[n].numpy() for n in self.places]
        found = self.session.run(None, dict(zip(self.inputs, tensors, strict=True)))
        return [torch.from_numpy(value) for value in found]
