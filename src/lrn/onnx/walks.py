"""A walk over time in ONNX: one ``Scan`` a layer, in whose body every direction takes its step.

Where it is known that there is one step only, its gates stand in the graph as they are, without a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from lrn.onnx.nodes import Nodes, Value
from lrn.recurrence.cells import REVERSE

Values = Sequence[Value]
Take = Callable[[Nodes, int, Values, Values], tuple[list[Value], list[Value]]]
"""A step of a direction: its number, the products ``[B, H]`` of the input and the state -> the new state, and
whatever else is to be kept of every step."""


@dataclass
class Layout:
    """How the rows of a batch lie in the tensors that an op is given, as ``recurrence.Rows`` says it.

    In ONNX all is brought to ``[T, B, ...]``. The steps of packed rows are put where ``NonZero`` finds them:
    it goes through ``[T, B]`` step by step, as packing does.
    """

    nodes: Nodes
    state: Value  # [parts, D, B, H]
    lengths: Value | None
    batch_sizes: Value | None
    reset: Value | None
    batch_first: bool
    _real: Value | None = field(default=None, init=False)
    _places: Value | None = field(default=None, init=False)

    def pad(self, x: Value, rank: int) -> Value:
        """Rows as stored, of so many dimensions -> ``[T, B, ...]``."""
        nodes = self.nodes
        if self.batch_sizes is None:
            return nodes("Transpose", x, perm=[1, 0, *range(2, rank)]) if self.batch_first else x
        self._pack()
        sizes = [nodes.size(self.batch_sizes, 0), self.batch]
        inside = [nodes("Shape", x, start=1)] if rank > 1 else []
        empty = nodes("Expand", nodes.zero(_kind(x)), nodes.shape(*sizes, *inside))
        return nodes("ScatterND", empty, self._places, x)

    def unpad(self, x: Value) -> Value:
        """``[T, B, W]`` -> rows as stored."""
        if self.batch_sizes is None:
            return self.nodes("Transpose", x, perm=[1, 0, 2]) if self.batch_first else x
        self._pack()
        return self.nodes("GatherND", x, self._places)

    @property
    def batch(self) -> Value:
        """How many rows there are, ``[1]``."""
        return self.nodes.size(self.state, 2)

    def row_lengths(self) -> Value | None:
        """Real steps of each row, ``[B]``; None where all are full."""
        if self.batch_sizes is None:
            return self.lengths
        self._pack()
        nodes = self.nodes
        real = nodes("Cast", self._real, to=int(ir.DataType.INT64))
        return nodes("ReduceSum", real, nodes.numbers(0), keepdims=0)

    def real(self, steps: Value) -> Value | None:
        """Which steps of each row are real, ``[T, B]``, of so many steps ``[1]``; None where all are."""
        if self.batch_sizes is not None:
            self._pack()
        elif self.lengths is not None and self._real is None:
            nodes = self.nodes
            time = nodes("Unsqueeze", self._range(steps), nodes.numbers(1))  # [T, 1]
            self._real = nodes("Less", time, self.lengths)
        return self._real

    def borders(self, steps: Value, reverse: bool) -> Value | None:
        """The steps before which the state is zeroed, in the direction of the walk, ``[T, B]``."""
        if self.reset is None:
            return None
        nodes, borders = self.nodes, self.pad(self.reset, 1 if self.batch_sizes is not None else 2)
        real = self.real(steps)
        if real is not None:
            borders = nodes("And", borders, real)
        if not reverse:
            return borders
        # Walking back, the border before t is met on the way to t − 1.
        start, end, axis = nodes.numbers(1), nodes.numbers(2**63 - 1), nodes.numbers(0)
        later = nodes("Slice", borders, start, end, axis)
        none = nodes("Expand", nodes.zero(ir.DataType.BOOL, 1, 1), nodes.shape(1, self.batch))
        return nodes("Slice", nodes.join([later, none], 0), nodes.numbers(0), steps, axis)

    def _range(self, count: Value) -> Value:
        nodes = self.nodes
        zero, one, axis = nodes.numbers(0), nodes.numbers(1), nodes.numbers(0)
        return nodes("Range", *(nodes("Squeeze", n, axis) for n in (zero, count, one)))

    def _pack(self) -> None:
        if self._places is not None:
            return
        nodes = self.nodes
        sizes = nodes("Unsqueeze", self.batch_sizes, nodes.numbers(1))  # [T, 1]
        self._real = nodes("Less", self._range(self.batch), sizes)  # [T, B]
        self._places = nodes("Transpose", nodes("NonZero", self._real), perm=[1, 0])  # [N, 2]


@dataclass(frozen=True)
class Walked:
    """What a walk gives: output ``[T, B, D*H]``, final state ``[parts, D, B, H]``, and what else was kept of
    every step, ``[T, B, D*H]``."""

    output: Value
    final: Value
    kept: Value | None


@dataclass(frozen=True)
class Walk:
    """What a walk needs to know: the layout, sizes, the direction, and the step.

    ``gates`` products of the input, ``parts`` tensors in the state; ``take`` is the step. ``name`` stands
    before those of the values inside the loop, which must not be names of the graph around it.
    """

    name: str
    layout: Layout
    kind: ir.DataType
    gates: int
    parts: int
    direction: str
    take: Take
    keeps: bool = False

    def over(self, x: Value, one_step: bool) -> Walked:
        """Walk over ``x [T, B, D * gates * H]``."""
        nodes, ways = self.layout.nodes, REVERSE[self.direction]
        inputs = nodes.split(x, len(ways), 2)
        starts = [nodes.apart(part, len(ways), 0) for part in nodes.apart(self.layout.state, self.parts, 0)]
        states = [[part[d] for part in starts] for d in range(len(ways))]  # of each direction, [B, H] a part
        steps = nodes.size(x, 0)
        sequences = []
        for part, reverse in zip(inputs, ways, strict=True):
            masks = {"real": self.layout.real(steps), "border": self.layout.borders(steps, reverse)}
            there = {name: mask for name, mask in masks.items() if mask is not None}
            sequences.append({"x": part, **there})
        walk = self._one_step if one_step else self._loop
        finals, outputs, kept = walk(sequences, states)
        final = nodes.stack([nodes.stack(list(part), 0) for part in zip(*finals, strict=True)], 0)
        return Walked(nodes.join(outputs, 2), final, nodes.join(kept, 2) if self.keeps else None)

    def _one_step(
        self, sequences: list[dict[str, Value]], states: list[list[Value]]
    ) -> tuple[list[list[Value]], list[Value], list[Value]]:
        nodes = self.layout.nodes
        axis = nodes.numbers(0)
        finals, outputs, kept = [], [], []
        for d, (sequence, state) in enumerate(zip(sequences, states, strict=True)):
            now = {name: nodes("Squeeze", value, axis) for name, value in sequence.items()}
            final, output, more = self._step(nodes, d, now, state)
            finals.append(final)
            outputs.append(nodes("Unsqueeze", output, axis))
            kept += [nodes("Unsqueeze", value, axis) for value in more]
        return finals, outputs, kept

    def _loop(
        self, sequences: list[dict[str, Value]], states: list[list[Value]]
    ) -> tuple[list[list[Value]], list[Value], list[Value]]:
        """One ``Scan`` for all directions; of one that walks back, sequences are read and written so."""
        body = Nodes()
        types = {"x": self.kind, "real": ir.DataType.BOOL, "border": ir.DataType.BOOL}
        inside = [
            [ir.val(f"{self.name}.state_{d}_{n}", self.kind) for n in range(len(state))]
            for d, state in enumerate(states)
        ]
        now = [
            {name: ir.val(f"{self.name}.{name}_{d}", types[name]) for name in sequence}
            for d, sequence in enumerate(sequences)
        ]
        results = [self._step(body, d, now[d], inside[d]) for d in range(len(states))]
        finals = [value for final, _, _ in results for value in final]
        outputs = [output for _, output, _ in results] + [value for _, _, more in results for value in more]
        ends = [body("Identity", value) for value in [*finals, *outputs]]  # no output may be there twice
        for value in ends:
            value.dtype = self.kind
        for number, value in enumerate(value for node in body.made for value in node.outputs):
            value.name = f"{self.name}.{number}"
        ways = [int(reverse) for reverse in REVERSE[self.direction]]
        graph = ir.Graph(
            [*(value for state in inside for value in state), *(v for each in now for v in each.values())],
            ends,
            nodes=body.made,
            name="step",
        )
        given = [*(value for state in states for value in state), *(v for s in sequences for v in s.values())]
        found = self.layout.nodes.several(
            len(ends),
            "Scan",
            *given,
            body=graph,
            num_scan_inputs=sum(map(len, sequences)),
            scan_input_directions=[
                way for way, sequence in zip(ways, sequences, strict=True) for _ in sequence
            ],
            scan_output_directions=[ways[n % len(ways)] for n in range(len(outputs))],
        )
        last, rest = found[: len(finals)], found[len(finals) :]
        by_direction = [[*last[d * self.parts : (d + 1) * self.parts]] for d in range(len(states))]
        return by_direction, [*rest[: len(states)]], [*rest[len(states) :]]

    def _step(
        self, nodes: Nodes, d: int, now: dict[str, Value], state: list[Value]
    ) -> tuple[list[Value], Value, list[Value]]:
        """One step of a direction: the new state, the output, and what else is kept."""
        axis = nodes.numbers(1)
        zero = nodes.zero(self.kind) if len(now) > 1 else None
        if "border" in now:
            border = nodes("Unsqueeze", now["border"], axis)  # [B, 1]
            state = [nodes("Where", border, zero, part) for part in state]
        new, kept = self.take(nodes, d, nodes.split(now["x"], self.gates, 1), state)
        if "real" not in now:
            return new, new[0], kept
        on = nodes("Unsqueeze", now["real"], axis)  # [B, 1]
        final = [nodes("Where", on, *pair) for pair in zip(new, state, strict=True)]
        return (
            final,
            *(nodes("Where", on, new[0], zero),),
            [nodes("Where", on, value, zero) for value in kept],
        )


def _kind(x: Value) -> ir.DataType:
    assert x.dtype is not None
    return x.dtype
