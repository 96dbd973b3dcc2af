"""What the tests of the units share: every unit by name, random units and inputs, comparing results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

import lrn

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lrn": ("lrn", {}),
    "lrn-identity": ("lrn", {"activation": "identity"}),
    "olrn": ("olrn", {}),
    "glrn": ("glrn", {}),
    "glrn-identity": ("glrn", {"activation": "identity"}),
    "elrn": ("elrn", {}),
    "elrn-identity": ("elrn", {"activation": "identity"}),
    "atr": ("atr", {}),
    "atr-identity": ("atr", {"activation": "identity"}),
    "sru": ("sru", {}),
    "lstm": ("lstm", {}),
    "gru": ("gru", {}),
    "gru-hidden_bias": ("gru", {"hidden_bias": True}),
}
"""Every unit, with both activations where there is a choice, and GRU with its second bias too."""

ACTIVATED = tuple(name for name in lrn.UNITS if f"{name}-identity" in VARIANTS)
"""Units whose activation is a choice."""

PAIRS = ("sru", "lstm")
"""Units whose state is a pair (h, c)."""

SINGLES = tuple(name for name in lrn.UNITS if name not in PAIRS)

ATOL = 1e-11  # float64: room for another order of summation, none for another result


def make(
    variant: str,
    input_size: int = 3,
    hidden_size: int = 4,
    *args: Any,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    **kwargs: Any,
) -> lrn.Unit:
    """A unit with every parameter random, so that no bias or norm scale hides behind its default."""
    name, own = VARIANTS[variant]
    if kwargs.get("bias") is False:
        own = {key: value for key, value in own.items() if key != "hidden_bias"}
    unit = lrn.make_unit(name, input_size, hidden_size, *args, dtype=dtype, **(own | kwargs))
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter_name, parameter in unit.named_parameters():
            noise = torch.randn(parameter.shape, generator=source, dtype=torch.float64)
            parameter.copy_(0.6 * noise + float(parameter_name.startswith("norm")))
    return unit


def randn(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal noise that depends on the seed alone."""
    source = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=torch.float64).to(dtype)


def parts(state: Tensor | Iterable[Tensor]) -> tuple[Tensor, ...]:
    """A state's tensors, whether it is one or a pair."""
    return (state,) if isinstance(state, Tensor) else tuple(state)


def states(change: Callable[..., Tensor], *given: Any) -> Any:
    """Apply ``change`` to each part of states of the same kind."""
    if isinstance(given[0], Tensor):
        return change(*given)
    return tuple(change(*same) for same in zip(*given, strict=True))


def random_state(unit: lrn.Unit, *batch: int, seed: int = 2) -> Any:
    """A state ``[L*D, *batch, H]`` in the unit's own form: a tensor or a pair."""
    shape = (unit.num_layers * unit.directions, *batch, unit.hidden_size)
    dtype = unit.weight_ih_l0.dtype
    drawn = tuple(0.7 * randn(*shape, seed=seed + n, dtype=dtype) for n in range(unit.parts))
    return drawn if unit.parts == 2 else drawn[0]


def tensors(result: Any) -> list[Tensor]:
    """All tensors of a result, in order: output, padded or packed, then the state's parts."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, PackedSequence):
        return [result.data]
    return [tensor for entry in result for tensor in tensors(entry)]


def assert_same(actual: Any, expected: Any, atol: float = ATOL) -> None:
    """Same shapes, dtypes and values: tensors, packed sequences, states, or tuples of them."""
    given, wanted = tensors(actual), tensors(expected)
    assert len(given) == len(wanted)
    for one, other in zip(given, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


def says(*words: str) -> str:
    """A pattern for an error that must say all these words, in this order."""
    return ".*".join(re.escape(word) for word in words)


def gradients(result: Any, wanted: Iterable[Tensor]) -> list[Tensor]:
    """Gradients of a fixed uneven sum over a result; zeros where nothing flows."""
    loss = torch.zeros((), dtype=torch.float64, requires_grad=True)
    for n, tensor in enumerate(tensors(result)):
        weights = torch.arange(1, tensor.numel() + 1, dtype=torch.float64).sin().view(tensor.shape)
        loss = loss + (n + 1) * (tensor.double() * weights).sum()
    wanted = list(wanted)
    return list(torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True))


@dataclass(frozen=True)
class Setting:
    """One drawn setting of a unit and its input; falsifying examples print as this line."""

    steps: int
    batch: int
    num_layers: int
    bidirectional: bool
    bias: bool
    norm: str | None
    residual: bool
    seed: int

    def unit(self, variant: str, **kwargs: Any) -> lrn.Unit:
        own = {
            "num_layers": self.num_layers,
            "bidirectional": self.bidirectional,
            "bias": self.bias,
            "norm": self.norm,
            "residual": self.residual and self.num_layers > 1,  # a single layer has no equal widths here
        }
        return make(variant, seed=self.seed, **(own | kwargs))

    def input(self) -> Tensor:
        return randn(self.steps, self.batch, 3, seed=self.seed + 1)


def settings(
    steps: tuple[int, int] = (1, 6),
    batch: tuple[int, int] = (1, 3),
    bidirectional: bool | None = None,
    max_layers: int = 2,
) -> st.SearchStrategy[Setting]:
    """Random settings: sizes within bounds, every option of the constructor that changes the maths."""
    return st.builds(
        Setting,
        steps=st.integers(*steps),
        batch=st.integers(*batch),
        num_layers=st.integers(1, max_layers),
        bidirectional=st.booleans() if bidirectional is None else st.just(bidirectional),
        bias=st.booleans(),
        norm=st.sampled_from([None, None, "layer", "rms"]),
        residual=st.booleans(),
        seed=st.integers(0, 10_000),
    )
