"""Our ops in ONNX. Arguments come in the order of ``recurrence/schemas.py``; shapes are those of the ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lrn.onnx.cells import MATRIX_STEPS, STEPS, Product, Values, divided, normalised
from lrn.onnx.nodes import Nodes, Value, wide
from lrn.onnx.walks import Layout, Walk, Walked
from lrn.recurrence.cells import CELLS, MATRIX_CELLS, REVERSE

ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
"""Where ONNX's gates, i, o, f, c and z, r, h, stand among ours."""


class _Given:
    """The sequence and the state of an op, in ONNX's terms: ``[T, B, W]``, in the type to compute in."""

    def __init__(
        self,
        x: Value,
        state: Value,
        lengths: Value | None,
        batch_sizes: Value | None,
        reset: Value | None,
        batch_first: bool,
    ) -> None:
        assert x.dtype is not None
        assert x.shape is not None
        assert state.shape is not None
        self.nodes, self.stored, self.kind = Nodes(), x.dtype, wide(x.dtype)
        self.name, self.hidden = f"{x.name}.{state.name}", _known(state, 3)
        self.layout = Layout(self.nodes, self.wide(state), lengths, batch_sizes, reset, batch_first)
        time = x.shape[1 if batch_first else 0]
        self.one_step = batch_sizes is None and isinstance(time, int) and time == 1
        self.x = self.wide(self.layout.pad(x, len(x.shape)))

    def wide(self, x: Value) -> Value:
        """In the type to compute in."""
        return x if self.stored == self.kind else self.nodes.cast(x, self.kind)

    def flat(self, width: int) -> Value:
        """The sequence ``[T, B, width]``, of which width is all that is behind ``[T, B]``."""
        shape = self.nodes.numbers(0, 0, width)  # 0 keeps a size
        return self.nodes("Reshape", self.x, shape)

    def stored_as(self, value: Value) -> Value:
        """In the type that the op was given."""
        return value if self.stored == self.kind else self.nodes.cast(value, self.stored)

    def results(self, walked: Walked) -> tuple[Value, Value, Value]:
        """Output, what else was kept, and the final state, as the op has them."""
        output, final = self.layout.unpad(walked.output), walked.final
        kept = self.nodes.zero(self.stored, 0) if walked.kept is None else self.layout.unpad(walked.kept)
        found = self.stored_as(output), kept, self.stored_as(final)
        return found if walked.kept is None else (found[0], self.stored_as(kept), found[2])


def _known(x: Value, axis: int) -> int:
    """A size that is known when a graph is made, as the widths of layers are."""
    assert x.shape is not None
    size = x.shape[axis]
    if not isinstance(size, int):
        raise ValueError(f"ONNX export: dimension {axis} of {x.name} must have a known size, got {size}")
    return size


def scan(
    x: Value,
    state: Value,
    weight: Value | None,
    lengths: Value | None,
    batch_sizes: Value | None,
    reset: Value | None,
    cell: str,
    direction: str,
    batch_first: bool,
    engine: str = "",
) -> tuple[Value, ...]:
    """``lrn::scan``: an elementwise recurrence, by whatever engine."""
    given = _Given(x, state, lengths, batch_sizes, reset, batch_first)
    known, ways = CELLS[cell], len(REVERSE[direction])
    vectors: list[list[Value]] = [[] for _ in range(ways)]
    if weight is not None:  # [B, D, vectors, H]
        each = given.nodes.apart(given.wide(weight), ways, 1)
        vectors = [given.nodes.apart(part, known.vectors, 1) for part in each]  # of [B, H]

    def take(nodes: Nodes, d: int, x: Values, state: Values) -> tuple[list[Value], list[Value]]:
        new = STEPS[cell](nodes, x, state, vectors[d])
        return new, new[1:]  # of SRU's pair, c is the op's second result

    walk = Walk(
        given.name, given.layout, given.kind, known.gates, known.parts, direction, take, known.parts == 2
    )
    walked = walk.over(given.flat(ways * known.gates * given.hidden), given.one_step)
    results = given.results(walked)
    given.nodes.given()
    return results


def atr(
    x: Value,
    state: Value,
    weight: Value,
    bias: Value | None,
    lengths: Value | None,
    batch_sizes: Value | None,
    reset: Value | None,
    activation: str,
    direction: str,
    batch_first: bool,
    keep: bool,
) -> tuple[Value, ...]:
    """``lrn::atr``: a Scan with a product inside."""
    given = _Given(x, state, lengths, batch_sizes, reset, batch_first)
    results = _walked(given, weight, bias, None, f"atr_{activation}", None, direction, keep)
    given.nodes.given()
    return results


def walk(
    x: Value,
    state: Value,
    weight: Value,
    bias: Value | None,
    scale: Value | None,
    lengths: Value | None,
    batch_sizes: Value | None,
    reset: Value | None,
    cell: str,
    norm: str | None,
    direction: str,
    batch_first: bool,
) -> tuple[Value, ...]:
    """``lrn::walk``: a Scan with a product inside, which may be normalised."""
    given = _Given(x, state, lengths, batch_sizes, reset, batch_first)
    output, _, final = _walked(given, weight, bias, scale, cell, norm, direction)
    given.nodes.given()
    return output, final


def _walked(
    given: _Given,
    weight: Value,
    bias: Value | None,
    scale: Value | None,
    cell: str,
    norm: str | None,
    direction: str,
    keep: bool = False,
    x: Value | None = None,
) -> tuple[Value, Value, Value]:
    """The walk of a cell with a matrix inside over ``x [T, B, D*gates*H]``, by default what is given."""
    known, ways = MATRIX_CELLS[cell], len(REVERSE[direction])
    products = _products(given, weight, bias, scale, norm, known.gates, ways)

    def take(nodes: Nodes, d: int, x: Values, state: Values) -> tuple[list[Value], list[Value]]:
        found: list[Value] = []

        def product(nodes: Nodes, h: Value) -> Values:
            found.extend(products[d](nodes, h))
            return found

        new = MATRIX_STEPS[cell](nodes, x, state, product)
        return new, found if keep else []

    over = given.flat(ways * known.gates * given.hidden) if x is None else x
    walked = Walk(given.name, given.layout, given.kind, known.gates, known.parts, direction, take, keep)
    return given.results(walked.over(over, given.one_step))


def _products(
    given: _Given,
    weight: Value,
    bias: Value | None,
    scale: Value | None,
    norm: str | None,
    gates: int,
    ways: int,
) -> list[Product]:
    """The product of the hidden state of each direction; what is the same at all steps is made here, once."""
    nodes = given.nodes
    matrices = [
        nodes("Transpose", part, perm=[1, 0]) for part in nodes.apart(given.wide(weight), ways, 0)
    ]  # of [H, gates * H]
    biases, scales = (
        [None] * ways if value is None else nodes.apart(given.wide(value), ways, 0) for value in (bias, scale)
    )

    def of_direction(d: int) -> Product:
        def product(nodes: Nodes, h: Value) -> Values:
            found, scale = nodes("MatMul", h, matrices[d]), scales[d]
            if norm is not None and scale is not None:
                found = normalised(nodes, found, norm, scale, biases[d], given.kind)
            elif biases[d] is not None:
                found = nodes("Add", found, biases[d])
            return nodes.split(found, gates, 1)

        return product

    return [of_direction(d) for d in range(ways)]


def rms_norm(
    x: Value, normalized_shape: Sequence[int], weight: Value | None = None, eps: float | None = None
) -> Value:
    """``aten::rms_norm``, which units with ``norm="rms"`` have before their recurrence."""
    nodes = Nodes()
    assert x.dtype is not None
    kind = wide(x.dtype)
    given = x if kind == x.dtype else nodes.cast(x, kind)
    epsilon = float(np.finfo(kind.numpy()).eps) if eps is None else eps
    found = divided(nodes, given, len(normalized_shape), epsilon, kind)
    if weight is not None:
        found = nodes("Mul", found, weight if kind == x.dtype else nodes.cast(weight, kind))
    found = found if kind == x.dtype else nodes.cast(found, x.dtype)
    nodes.given()
    return found


# LSTM and GRU -------------------------------------------------------------------------------------


def fused(
    x: Value,
    state: Value,
    weight_ih: Value,
    weight_hh: Value,
    bias: Value | None,
    bias_hh: Value | None,
    lengths: Value | None,
    batch_sizes: Value | None,
    cell: str,
    batch_first: bool,
) -> tuple[Value, ...]:
    """``lrn::fused``: ONNX's own LSTM or GRU; in float64, for which runtimes have none, a Scan."""
    given = _Given(x, state, lengths, batch_sizes, None, batch_first)
    ways = _known(state, 1)
    if given.kind == ir.DataType.FLOAT:
        output, final = _own(given, weight_ih, weight_hh, (bias, bias_hh), cell, ways)
    else:
        direction = "both" if ways == 2 else "forward"
        projected = _projected(given, weight_ih, bias, ways)
        output, _, final = _walked(given, weight_hh, bias_hh, None, cell, None, direction, x=projected)
    given.nodes.given()
    return output, final


def _projected(given: _Given, weight: Value, bias: Value | None, ways: int) -> Value:
    """All products of the input, ``[T, B, D*gates*H]``."""
    nodes = given.nodes
    matrices = [
        nodes("Transpose", part, perm=[1, 0]) for part in nodes.apart(given.wide(weight), ways, 0)
    ]  # of [I, gates * H]
    found = nodes("MatMul", given.x, nodes.join(matrices, 1))
    if bias is None:
        return found
    return nodes("Add", found, nodes("Reshape", given.wide(bias), nodes.numbers(-1)))


def _own(
    given: _Given,
    weight_ih: Value,
    weight_hh: Value,
    added: tuple[Value | None, Value | None],  # to the products of the input, to those of the hidden state
    cell: str,
    ways: int,
) -> tuple[Value, Value]:
    nodes, layout, size = given.nodes, given.layout, given.hidden
    parts, gates = MATRIX_CELLS[cell].parts, len(ORDER[cell])
    starts = nodes.apart(layout.state, parts, 0)  # of [D, B, H]
    lengths = layout.row_lengths()
    biases = None
    if any(bias is not None for bias in added):
        none = nodes.zero(given.kind, ways, gates * size)
        both = [none if b is None else _ordered(nodes, given.wide(b), cell, size, flat=True) for b in added]
        biases = nodes("Concat", *both, axis=1)
    more: dict[str, Any] = {"linear_before_reset": 1} if cell == "gru" else {}
    output, *finals = nodes.several(
        1 + parts,
        cell.upper(),
        given.x,
        *(_ordered(nodes, given.wide(weight), cell, size) for weight in (weight_ih, weight_hh)),
        biases,
        None if lengths is None else nodes.cast(lengths, ir.DataType.INT32),
        *starts,
        hidden_size=size,
        direction="bidirectional" if ways == 2 else "forward",
        **more,
    )  # output [T, D, B, H], finals [D, B, H]
    if lengths is not None:  # of a row without steps the state stays, about which ONNX says nothing
        rows = nodes("Unsqueeze", nodes("Greater", lengths, nodes.numbers(0)), nodes.numbers(1))  # [B, 1]
        finals = [nodes("Where", rows, *pair) for pair in zip(finals, starts, strict=True)]
    output = nodes("Transpose", output, perm=[0, 2, 1, 3])
    output = nodes("Reshape", output, nodes.numbers(0, 0, ways * size))  # [T, B, D * H]
    output, _, final = given.results(Walked(output, nodes.stack(finals, 0), None))
    return output, final


def _ordered(nodes: Nodes, weight: Value, cell: str, size: int, flat: bool = False) -> Value:
    """Gates ``[D, gates*H, I]``, or ``[D, gates*H]`` if ``flat``, in the order that ONNX has."""
    gates = len(ORDER[cell])
    apart = nodes("Reshape", weight, nodes.numbers(0, gates, size, -1))  # [D, gates, H, I or 1]
    apart = nodes("Gather", apart, nodes.numbers(*ORDER[cell]), axis=1)
    return nodes("Reshape", apart, nodes.numbers(0, gates * size, *([] if flat else [-1])))


# Attention ----------------------------------------------------------------------------------------


def attend(
    query: Value, score: Value, keys: Value, values: Value, starts: Value, longest: Value | int
) -> tuple[Value, ...]:
    """``lrn::attend``: additive attention over a ragged memory, which is padded for it."""
    nodes = Nodes()
    assert query.dtype is not None
    width, size = _known(query, 1), _known(score, 0)
    heads = width // size
    count = nodes.numbers(longest) if isinstance(longest, int) else longest
    time = nodes("Range", *(_scalar(nodes, value) for value in (0, count, 1)))  # [longest]
    rows = nodes.size(query, 0)
    first, end = (
        nodes("Unsqueeze", _from(nodes, starts, start, rows), nodes.numbers(1)) for start in (0, 1)
    )  # of [b, 1]
    places = nodes("Add", first, time)  # [b, longest]
    real = nodes("Less", places, end)
    places = nodes("Where", real, places, nodes.numbers(0))
    # A memory of nothing has nothing to look up: the row behind it is one of zeros.
    nothing = nodes.zero(query.dtype, 1, width)
    shape = nodes.numbers(0, 0, heads, size)
    inside = nodes("Unsqueeze", nodes("Unsqueeze", real, nodes.numbers(2)), nodes.numbers(3))
    zero = nodes.zero(query.dtype)
    padded = [
        nodes(
            "Where",
            inside,
            nodes("Reshape", nodes("Gather", nodes("Concat", x, nothing, axis=0), places, axis=0), shape),
            zero,
        )
        for x in (keys, values)
    ]  # of [b, longest, heads, S]
    asked = nodes("Reshape", query, nodes.numbers(0, 1, heads, size))
    hidden = nodes("Tanh", nodes("Add", asked, padded[0]))
    scores = nodes("Transpose", nodes("MatMul", hidden, score), perm=[0, 2, 1])  # [b, heads, longest]
    there = nodes("Unsqueeze", real, nodes.numbers(1))  # [b, 1, longest]
    # An empty sequence has its first position for the softmax, which of nothing would be no number.
    looked = nodes("Or", there, nodes("Equal", time, nodes.numbers(0)))
    never = nodes.constant(np.array(-np.inf, query.dtype.numpy()))
    weights = nodes("Softmax", nodes("Where", looked, scores, never), axis=-1)
    weights = nodes("Where", there, weights, zero)
    shares = nodes("Unsqueeze", nodes("Transpose", weights, perm=[0, 2, 1]), nodes.numbers(3))
    summed = nodes("ReduceSum", nodes("Mul", shares, padded[1]), nodes.numbers(1), keepdims=0)
    context = nodes("Reshape", summed, nodes.numbers(0, width))
    nodes.given()
    return context, weights


def _scalar(nodes: Nodes, value: Value | int) -> Value:
    if isinstance(value, int):
        return nodes.constant(np.array(value, np.int64))
    return nodes("Reshape", value, nodes.constant(np.zeros(0, np.int64)))


def _from(nodes: Nodes, starts: Value, first: int, count: Value) -> Value:
    """So many of the starts, from one of the first two on."""
    begin = nodes.numbers(first)
    return nodes("Slice", starts, begin, nodes("Add", count, begin), nodes.numbers(0))
