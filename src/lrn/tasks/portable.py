"""What leaves a task: its model as graphs of plain tensors that other programs can run, and what they mean.

A task says so in its own ``portable.py``; a writer, of ONNX files for example, takes what it says, and knows
no task. A graph's module takes tensors and returns tensors: padded numbers of words with the lengths of the
rows, no packing, no structures of Python, nothing that the host has to read. So it can be traced once for all
sizes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lrn.units.unit import Unit, UserState

Axes = tuple[str | int, ...]


@dataclass(frozen=True)
class Port:
    """A tensor that goes into a graph or comes out of it.

    Args:
        name: what it is called.
        axes: its dimensions: a size that is fixed, or the name of one that may be any from 1 on.
        meaning: what it is, in a sentence.
        becomes: of an output that carries a state: the input that it is at the next call.
    """

    name: str
    axes: Axes
    meaning: str
    becomes: str = ""


@dataclass(frozen=True)
class Example:
    """Real input of a graph, and what the run itself says to it, by its own way; in the order of the
    ports."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class Graph:
    """A part of a model that can be called by itself; many models have one only.

    Args:
        name: tells it from the model's other graphs; empty if there is none.
        meaning: what it does, in a sentence.
        module: takes the inputs by position; returns a tuple of the outputs.
        inputs, outputs: what goes in and comes out.
        examples: of which the first has sizes above 1 wherever a size may be any, and is what is traced.
    """

    name: str
    meaning: str
    module: nn.Module
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    examples: tuple[Example, ...]

    def __post_init__(self) -> None:
        for example in self.examples:
            self._check(self.inputs, example.inputs)
            self._check(self.outputs, example.outputs)

    def _check(self, ports: Sequence[Port], tensors: Sequence[Tensor]) -> None:
        for port, tensor in zip(ports, tensors, strict=True):
            fixed = {n: size for n, size in enumerate(port.axes) if isinstance(size, int)}
            if tensor.dim() != len(port.axes) or any(tensor.shape[n] != size for n, size in fixed.items()):
                raise ValueError(f"{port.name} is {list(port.axes)}, got an example of {list(tensor.shape)}")

    def free(self) -> list[dict[int, str]]:
        """Of each input the dimensions whose sizes are free, with the names of the sizes."""
        return [
            {n: size for n, size in enumerate(port.axes) if isinstance(size, str)} for port in self.inputs
        ]

    def traced(self) -> torch.export.ExportedProgram:
        """The module as torch.export sees it, with free sizes left open.

        >>> graph = Graph(
        ...     "",
        ...     "Doubles.",
        ...     _Doubled(),
        ...     (Port("x", ("rows", 2), "numbers"),),
        ...     (Port("y", ("rows", 2), "the same twice"),),
        ...     (Example((torch.ones(3, 2),), (torch.full((3, 2), 2.0),)),),
        ... )
        >>> program = graph.traced()
        >>> program.module()(torch.ones(1, 2))
        (tensor([[2., 2.]]),)
        """
        module = self.module.eval().requires_grad_(False)
        with torch.no_grad():
            return torch.export.export(
                module, self.examples[0].inputs, dynamic_shapes=self.sizes(), strict=False
            )

    def sizes(self) -> tuple[Any, ...]:
        """The free sizes as ``dynamic_shapes`` of torch.export; those of ``*args`` are in a tuple."""
        names = {name: torch.export.Dim(name) for axes in self.free() for name in axes.values()}
        shapes = [{n: names[name] for n, name in axes.items()} for axes in self.free()]
        kinds = [each.kind for each in inspect.signature(self.module.forward).parameters.values()]
        if not kinds or kinds[-1] != inspect.Parameter.VAR_POSITIONAL:
            return tuple(shapes)
        return (*shapes[: len(kinds) - 1], tuple(shapes[len(kinds) - 1 :]))


class _Doubled(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (2 * x,)


@dataclass(frozen=True)
class Portable:
    """All of a model that leaves it.

    Args:
        graphs: its graphs.
        vocabularies: names in the order of their numbers, by what they are names of.
        text: how text becomes the inputs, step by step, a sentence each.
        answer: how the outputs are to be read, the same.
        settings: numbers and names that these sentences speak of.
    """

    graphs: tuple[Graph, ...]
    vocabularies: dict[str, Sequence[str]]
    text: tuple[str, ...]
    answer: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        """All but the modules, to be written down as JSON."""
        return {
            "graphs": [
                {
                    "name": graph.name,
                    "meaning": graph.meaning,
                    "inputs": [_described(*pair) for pair in _pairs(graph, "inputs")],
                    "outputs": [_described(*pair) for pair in _pairs(graph, "outputs")],
                }
                for graph in self.graphs
            ],
            "text": list(self.text),
            "answer": list(self.answer),
            "settings": self.settings,
            "vocabularies": {name: list(words) for name, words in self.vocabularies.items()},
        }


def _pairs(graph: Graph, side: str) -> list[tuple[Port, Tensor]]:
    return [*zip(getattr(graph, side), getattr(graph.examples[0], side), strict=True)]


def _described(port: Port, tensor: Tensor) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": port.name,
        "type": str(tensor.dtype).removeprefix("torch."),
        "shape": list(port.axes),
        "meaning": port.meaning,
    }
    return said | ({"becomes": port.becomes} if port.becomes else {})


# For the tasks ------------------------------------------------------------------------------------


def some(lengths: Sequence[int], count: int = 3) -> list[int]:
    """Numbers of sequences of different lengths, neither the shortest nor the longest of all.

    >>> some([9, 1, 5, 3, 7, 20, 2])
    [6, 2, 0]
    """
    order = sorted(range(len(lengths)), key=lambda number: (lengths[number], number))
    places = [(n + 1) * len(order) // (count + 1) for n in range(count)]
    return [order[min(place, len(order) - 1)] for place in places]


def padded(rows: Sequence[Sequence[int]], least: int = 2) -> Tensor:
    """Rows of numbers with zeros behind the shorter ones, ``[B, T]``, of at least so many steps.

    >>> padded([[4], [5]])
    tensor([[4, 0],
            [5, 0]])
    """
    table = torch.zeros(len(rows), max(least, max(map(len, rows))), dtype=torch.int64)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = torch.tensor(row, dtype=torch.int64)
    return table


def together_and_alone(
    numbers: Sequence[int], example: Callable[[Sequence[int]], Example]
) -> tuple[Example, ...]:
    """Examples of sequences given by number: all in one batch, and the first by itself."""
    return example(numbers), example(numbers[:1])


def state_ports(units: Sequence[Unit], rows: str) -> tuple[list[Port], list[Port]]:
    """The states of layers, ``[B, H]`` each, as inputs ``h_0``, ``c_0``, … and as outputs ``next_h_0``, …"""
    before, after = [], []
    for number, unit in enumerate(units):
        for part in "hc"[: unit.parts]:
            name, axes = f"{part}_{number}", (rows, unit.hidden_size)
            said = f"The state {part} of layer {number}"
            before.append(Port(name, axes, f"{said} before the first step."))
            after.append(Port(f"next_{name}", axes, f"{said} after the last step.", becomes=name))
    return before, after


def flat(states: Sequence[UserState]) -> tuple[Tensor, ...]:
    """The states of layers, ``[1, B, H]`` or pairs of them, as the ports have them, ``[B, H]``."""
    return tuple(part[0] for state in states for part in (state if isinstance(state, tuple) else (state,)))


def states_of(units: Sequence[Unit], given: Sequence[Tensor]) -> list[UserState]:
    """The way back from :func:`flat`."""
    left = iter(given)
    found: list[UserState] = []
    for unit in units:
        h = next(left).unsqueeze(0)
        found.append((h, next(left).unsqueeze(0)) if unit.parts == 2 else h)
    return found
