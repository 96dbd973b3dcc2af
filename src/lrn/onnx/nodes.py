"""Nodes of an ONNX graph, written one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import evaluator

Value = ir.Value
HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


class Nodes:
    """The nodes of a graph, or of the body of a loop, in the order in which they are made.

    >>> nodes = Nodes()
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=(2, 3))
    >>> first, second, third = nodes.several(3, "Split", x, axis=1, num_outputs=3)
    >>> total = nodes("Add", first, second)
    >>> [node.op_type for node in nodes.made]
    ['Split', 'Add']
    """

    def __init__(self) -> None:
        self.made: list[ir.Node] = []

    def __call__(self, kind: str, *inputs: Value | None, **attributes: Any) -> Value:
        """Add a node of one output, which is returned."""
        return self.several(1, kind, *inputs, **attributes)[0]

    def several(self, count: int, kind: str, *inputs: Value | None, **attributes: Any) -> Sequence[Value]:
        """Add a node of several outputs."""
        made = ir.Node("", kind, inputs, ir.convenience.convert_attributes(attributes), num_outputs=count)
        self.made.append(made)
        return made.outputs

    def numbers(self, *values: int) -> Value:
        """Whole numbers, a shape or axes for example."""
        return self.constant(np.array(values, np.int64))

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A tensor that is known."""
        return self("Constant", value=ir.tensor(array))

    def zero(self, kind: ir.DataType, *shape: int) -> Value:
        """Zeros of a type and a shape that is known."""
        return self.constant(np.zeros(shape, kind.numpy()))

    def size(self, x: Value, axis: int) -> Value:
        """The size of a dimension, ``[1]``."""
        return self("Shape", x, start=axis, end=axis + 1)

    def shape(self, *sizes: Value | int) -> Value:
        """A shape of sizes that are known and others that are not, ``[1]`` each."""
        return self(
            "Concat", *(self.numbers(size) if isinstance(size, int) else size for size in sizes), axis=0
        )

    def split(self, x: Value, parts: int, axis: int) -> Sequence[Value]:
        """Equal parts of a tensor."""
        return [x] if parts == 1 else self.several(parts, "Split", x, axis=axis, num_outputs=parts)

    def apart(self, x: Value, parts: int, axis: int) -> list[Value]:
        """The entries of a dimension of known size, which they do not have any more."""
        places = (self.constant(np.array(place, np.int64)) for place in range(parts))
        return [self("Gather", x, place, axis=axis) for place in places]

    def stack(self, parts: Sequence[Value], axis: int) -> Value:
        """Entries of a new dimension."""
        return self.join([self("Unsqueeze", part, self.numbers(axis)) for part in parts], axis)

    def join(self, parts: Sequence[Value], axis: int) -> Value:
        """Parts of a tensor, one behind the other."""
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=axis)

    def cast(self, x: Value, kind: ir.DataType) -> Value:
        """The same numbers in another type."""
        return self("Cast", x, to=int(kind))

    def given(self) -> None:
        """Hand the nodes over to the exporter that has called for the translation of an op.

        A node of several outputs whose number its schema leaves open, as ``Scan``'s is, cannot be asked of
        it.
        """
        evaluator.default().nodes.extend(self.made)  # type: ignore[attr-defined]


def wide(kind: ir.DataType) -> ir.DataType:
    """The type that a recurrence is computed in: half types have a state of float32."""
    return ir.DataType.FLOAT if kind in HALVES else kind
