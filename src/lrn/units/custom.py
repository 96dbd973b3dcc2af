"""A unit of the user's own, given by one step in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from lrn.recurrence import Rows
from lrn.recurrence.cells import REVERSE, State
from lrn.recurrence.matrix import hidden_product
from lrn.units.unit import Unit


@dataclass(frozen=True)
class Learnt:
    """What a step has learnt: ``vectors`` by name, ``[H]`` each, and ``product``, which takes ``[B, H]`` and
    gives the ``hidden_gates`` products of it, ``[B, H]`` each."""

    product: Callable[[Tensor], tuple[Tensor, ...]]
    vectors: dict[str, Tensor]


class CustomUnit(Unit):
    """A unit of your own: say how many products of the input it reads, and what one step does with them.

    Layers, directions, padded and packed batches, ``reset``, ``norm``, ``residual``, ``dropout`` and the
    state are as in every other unit. The walk over time is a loop in Python, so times say nothing about how
    fast the unit could be in an engine.

    A subclass has these class variables, of which all but the first have a default:

    - ``gates``: products of the input, each ``[B, H]`` at a step.
    - ``hidden_gates``: products of the hidden state, which ``learnt.product`` computes; 0.
    - ``parts``: tensors in the state: 1, h alone, or 2, h and c.
    - ``vectors``: names of learnt vectors, ``[H]`` each, which are in ``learnt.vectors``; none.

    >>> import torch, lrn
    >>> class Leaky(lrn.CustomUnit):
    ...     gates = 2
    ...
    ...     def advance(self, x, state, learnt):
    ...         (q, v), (h,) = x, state
    ...         f = torch.sigmoid(q)
    ...         return (f * h + (1 - f) * v,)
    >>> output, h_n = Leaky(3, 4, bidirectional=True)(torch.randn(5, 2, 3), lengths=[5, 2])
    >>> output.shape, h_n.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]))
    """

    vectors: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, least in (("gates", 1), ("hidden_gates", 0), ("parts", 1)):
            value = getattr(cls, name, None)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise TypeError(f"{cls.__name__}.{name} must be a whole number from {least}, got {value!r}")
        if cls.parts > 2:
            raise TypeError(f"{cls.__name__}.parts must be 1 (h) or 2 (h and c), got {cls.parts}")
        if not isinstance(cls.vectors, tuple) or not all(map(str.isidentifier, cls.vectors)):
            raise TypeError(f'{cls.__name__}.vectors must be names, like ("v",), got {cls.vectors!r}')
        taken = [name for name in cls.vectors if name.startswith(("weight", "bias", "norm"))]
        if taken:
            raise TypeError(
                f"{cls.__name__}.vectors: a name may not begin with weight, bias or norm, got {taken[0]!r}"
            )
        if cls.advance is CustomUnit.advance:
            raise TypeError(f"{cls.__name__} needs a method advance(self, x, state, learnt), its step")

    def advance(self, x: tuple[Tensor, ...], state: State, learnt: Learnt) -> State:
        """One step: the new state, as many tensors ``[B, H]`` as ``parts`` says, of which h is the output.

        Args:
            x: the products of the input, ``gates`` tensors ``[B, H]``.
            state: the state before, ``parts`` tensors ``[B, H]``: h, or h and c.
            learnt: what else the step may use.
        """
        raise NotImplementedError

    @property
    def cell(self) -> str:
        """The recurrence's name, which no engine knows."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    def _shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        return super()._shapes(width) | dict.fromkeys(self.vectors, (self.hidden_size,))

    def _recur(self, layer: int, projected: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        outputs, finals = [], []
        directions = zip(
            projected.chunk(self.directions, -1),
            state.unbind(1),
            self._suffixes(layer),
            REVERSE[self._direction],
            strict=True,
        )
        for x, start, suffix, backward in directions:
            step = self._step_of(suffix)
            try:
                output, final = rows.walk(step, x, tuple(start.unbind(0)), reverse=backward)
            except Exception as error:
                error.add_note(self._about())
                raise
            outputs.append(output)
            finals.append(torch.stack(final))
        return torch.cat(outputs, -1), torch.stack(finals, 1)

    def _about(self) -> str:
        """What a step has to work with."""
        return (
            f"in {self._name}.advance: x has {self.gates} tensors (gates), state has {self.parts} (parts), "
            f"learnt.vectors has {', '.join(self.vectors) or 'none'}"
        )

    def _step_of(self, suffix: str) -> Callable[[Tensor, State], State]:
        """The step of one direction of a layer, whose parameters end with the suffix."""
        learnt = Learnt(
            self._product_of(suffix), {name: getattr(self, name + suffix) for name in self.vectors}
        )

        def step(x: Tensor, state: State) -> State:
            new = self.advance(x.chunk(self.gates, -1), state, learnt)
            self._check(new, state[0].shape)
            return tuple(new)

        return step

    def _product_of(self, suffix: str) -> Callable[[Tensor], tuple[Tensor, ...]]:
        if not self.hidden_gates:
            return self._no_product
        weight, scale = getattr(self, f"weight_hh{suffix}"), getattr(self, f"norm_hh{suffix}", None)
        product = hidden_product(weight, None, scale, self.norm)
        return lambda h: product(h).chunk(self.hidden_gates, -1)

    def _no_product(self, h: Tensor) -> tuple[Tensor, ...]:
        raise TypeError(f"{self._name} has no products of the hidden state: its hidden_gates is 0")

    def _check(self, new: Any, shape: torch.Size) -> None:
        """An error unless a step has given a state."""
        if not isinstance(new, tuple | list) or len(new) != self.parts:
            given = f"{len(new)} of them" if isinstance(new, tuple | list) else type(new).__name__
            raise TypeError(
                f"{self._name}.advance must return a tuple of {self.parts}, the new state; got {given}"
            )
        for part in new:
            if not isinstance(part, Tensor) or part.shape != shape:
                got = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
                raise ValueError(
                    f"{self._name}.advance must return tensors of shape {tuple(shape)}, got {got}"
                )
