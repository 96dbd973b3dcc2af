"""What the engine's tests share: a problem drawn at random, its run on one engine, two runs compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor

import lrn
from lrn.recurrence import CELLS, Rows, dispatch, scan

NAMES = tuple(CELLS)
DIRECTIONS = ("forward", "reverse", "both")
ROWS = ("full", "lengths", "packed")
LAYOUTS = ("plain", "transposed", "sliced", "expanded", "apart")
SLOW = dispatch.INTERPRETED
"""Whether the engine that is tested runs in Python, a step in milliseconds: then sizes are small, and
cases few.
"""


def fewer(all_of_them, some):
    """What a test runs over: less of it on a slow engine."""
    return some if SLOW else all_of_them


SOME = fewer(NAMES, ("lrn_tanh", "sru"))  # cells where one of each kind will do
STEPS, BATCH = fewer((5, 3), (3, 2))
WIDTHS = (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 128, 129, 300)
UNITS = tuple(dict.fromkeys(cell.partition("_")[0] for cell in NAMES))


@dataclass
class Here:
    """What is tested: an engine, and the type of device whose tensors it is given."""

    engine: str = "cpu"
    device: str = "cpu"


here = Here()


@contextmanager
def on(engine: str) -> Iterator[None]:
    """Inside, an engine is the one that is tested, and new tensors are on a device that it serves."""
    before = here.engine, here.device
    here.engine, here.device = (
        engine,
        ["cpu", *dispatch.TABLE[engine].devices, *dispatch.TABLE[engine].guest][-1],
    )
    new_tensors = torch.device(here.device) if here.device != "cpu" else nullcontext()
    with lrn.engine(engine), new_tensors:
        yield
    here.engine, here.device = before


def by() -> tuple[()] | tuple[str]:
    """What ops called by hand get last, so that the engine that is tested runs them."""
    return dispatch.by(torch.device(here.device))


def overload(op: str) -> torch._ops.OpOverload:
    """The overload of an op that runs on the engine that is tested."""
    return getattr(getattr(torch.ops.lrn, op), "by" if by() else "default")


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal noise that depends on the seed alone."""
    source = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=torch.float64, device="cpu").to(here.device, dtype)


def lay_out(values: Tensor, layout: str) -> Tensor:
    """The same values (but for "expanded") with other strides: how x comes out of slices and transposes."""
    if layout == "transposed":
        return values.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "sliced":
        wider = torch.full((*values.shape[:-1], 2 * values.shape[-1] + 3), torch.nan, dtype=values.dtype)
        return wider[..., 2 : values.shape[-1] + 2].copy_(values)
    if layout == "expanded" and values.shape[1]:
        return values[:, :1].clone().expand_as(values)
    if layout == "apart":  # neighbouring features are not neighbours in memory
        return values.transpose(-1, -2).contiguous().transpose(-1, -2)
    return values.clone()


@dataclass(frozen=True)
class Case:
    """One problem; falsifying examples print as this line."""

    cell: str
    steps: int = STEPS
    batch: int = BATCH
    hidden: int = 9
    direction: str = "forward"
    rows: str = "full"
    batch_first: bool = False
    reset: bool = False
    layout: str = "plain"
    above: str = "both"  # where gradients come from: "output", "final" or "both"
    dtype: torch.dtype = torch.float64
    seed: int = 0

    @property
    def lengths(self) -> list[int]:
        """Real steps of each row: zeros where padded, falling and none of them zero where packed."""
        if self.rows == "full":
            return [self.steps] * self.batch
        source = torch.Generator().manual_seed(self.seed)
        drawn = torch.randint(0, self.steps + 1, (self.batch,), generator=source, device="cpu")
        if self.rows == "lengths":
            return drawn.tolist()
        drawn[:1] = self.steps
        return drawn.clamp(min=1).sort(descending=True).values.tolist()

    @property
    def batch_sizes(self) -> Tensor:
        sizes = [sum(n > t for n in self.lengths) for t in range(self.steps)]
        return torch.tensor(sizes, device="cpu")  # where torch keeps them, whatever the data is on

    def grid(self, values: Tensor) -> Tensor:
        """``[T, B, ...]`` -> stored as this case stores tokens, before the layout."""
        if self.rows == "packed":
            return values[self.real()]
        return values.transpose(0, 1).contiguous() if self.batch_first else values

    def real(self) -> Tensor:
        return torch.arange(self.steps)[:, None] < torch.tensor(self.lengths, dtype=torch.long)

    def tokens(self, *shape: int, seed: int) -> Tensor:
        """Noise per token; NaN in the padding, which nobody may look at (expanded, it would be all over)."""
        values = randn(self.steps, self.batch, *shape, seed=seed)
        if self.layout != "expanded":
            values[~self.real()] = torch.nan
        return self.grid(values).to(self.dtype)

    @property
    def directions(self) -> int:
        return 2 if self.direction == "both" else 1

    def how(self) -> Rows:
        """Where rows lie: the argument of ``scan``."""
        marks = None
        if self.reset:
            marks = self.grid(randn(self.steps, self.batch, seed=self.seed + 7) > 0.4)
        return Rows(
            self.batch,
            batch_first=self.batch_first,
            lengths=torch.tensor(self.lengths, dtype=torch.long) if self.rows == "lengths" else None,
            batch_sizes=self.batch_sizes if self.rows == "packed" else None,
            reset=marks,
        )

    def inputs(self) -> dict[str, Tensor]:
        """Leaves, in this case's type and layout."""
        cell, wide = CELLS[self.cell], (self.directions, self.hidden)
        values = {
            "x": lay_out(self.tokens(wide[0], cell.gates, wide[1], seed=self.seed + 1), self.layout),
            "state": lay_out(
                randn(cell.parts, wide[0], self.batch, wide[1], seed=self.seed + 2).to(self.dtype),
                "plain" if self.layout == "expanded" else self.layout,
            ),
        }
        if cell.vectors:
            # With vectors much above 1 SRU is chaotic, and no two ways of rounding end close together.
            values["weight"] = randn(wide[0], cell.vectors, wide[1], seed=self.seed + 3).to(self.dtype) / 2
        return values

    def gradients(self) -> dict[str, Tensor]:
        """What comes from above."""
        cell = CELLS[self.cell]
        shape = (cell.parts, self.directions, self.batch, self.hidden)
        output = self.tokens(self.directions * self.hidden, seed=self.seed + 4)
        given = {
            "output": lay_out(
                output, "plain" if self.layout == "apart" and output.dim() < 3 else self.layout
            ),
            "final": randn(*shape, seed=self.seed + 5).to(self.dtype),
        }
        return {name: given[name] for name in given if self.above in (name, "both")}

    def positional(self) -> tuple:
        """The arguments of ``torch.ops.lrn.scan``."""
        values, how = self.inputs(), self.how()
        weight = values.get("weight")
        if weight is not None:
            weight = weight.expand(self.batch, *weight.shape)
        return (
            *(values["x"], values["state"], weight, how.lengths, how.batch_sizes, how.reset),
            *(self.cell, self.direction, self.batch_first, *by()),
        )


def run(case: Case, engine: str | None = None, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Output, final state and gradients on one engine, computed in ``dtype`` on the case's own numbers."""
    engine, dtype = engine or here.engine, dtype or case.dtype
    values = {name: value.to(dtype).requires_grad_() for name, value in case.inputs().items()}
    with lrn.engine(engine):
        output, final = scan(
            case.cell, values["x"], values["state"], values.get("weight"), case.how(), case.direction
        )
    results = {"output": output, "final": final}
    above = {name: g.to(dtype) for name, g in case.gradients().items() if results[name].requires_grad}
    gradients: Sequence[Tensor] = [torch.zeros_like(value) for value in values.values()]
    if above:
        gradients = torch.autograd.grad(
            [results[name] for name in above],
            list(values.values()),
            list(above.values()),
            materialize_grads=True,
        )
    results |= {f"grad_{name}": g for name, g in zip(values, gradients, strict=True)}
    return {name: value.detach() for name, value in results.items()}


def call(args: tuple, above: dict[str, Tensor]) -> dict[str, Tensor]:
    """All that the two ops give, straight from them: memory, and each row's own gradient of the weight."""
    x, state, weight, *rest = args
    output, memory, final = torch.ops.lrn.scan(*args)
    kept = memory if CELLS[rest[3]].parts == 2 else output
    gradients = torch.ops.lrn.scan_backward(
        above.get("output"), above.get("final"), x, state, weight, kept, *rest
    )
    names = ("output", "memory", "final", "grad_x", "grad_state", "grad_weight")
    return dict(zip(names, (output, memory, final, *gradients), strict=True))


def call_case(case: Case) -> dict[str, Tensor]:
    return call(case.positional(), case.gradients())


def assert_close(actual: dict[str, Tensor], expected: dict[str, Tensor], tolerance: Tolerance) -> None:
    """Every entry within ``tolerance``, relative to the largest magnitude of its pass; NaN nowhere."""
    assert actual.keys() == expected.keys()
    for backward, allowed in enumerate(tolerance):
        these = {n: value.double() for n, value in expected.items() if n.startswith("grad_") == backward}
        largest = max((value.abs().max().item() for value in these.values() if value.numel()), default=0.0)
        for name, value in these.items():
            assert actual[name].shape == value.shape, name
            assert not value.isnan().any(), f"{name}: the reference is not a number"
            error = (actual[name].double() - value).abs()
            assert not (~(error <= allowed * largest)).any(), (
                f"{name} is off by {error.nan_to_num(torch.inf).max():.3g}, largest magnitude {largest:.3g}"
            )


def assert_equal(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Bit for bit, the sign of zero included."""
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(bits(actual[name]), bits(value)), name


def bits(x: Tensor) -> Tensor:
    return x.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


Tolerance = tuple[float, float]
"""What is allowed in results and in gradients."""

# float64 and float32 as the plan asks. In half types the output is the definition's, rounded; gradients are
# within a few roundings, since the backward pass reads the rounded output for the previous state.
TOLERANCE: dict[torch.dtype, Tolerance] = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-6),
    torch.bfloat16: (2**-7, 8 * 2**-7),
    torch.float16: (2**-10, 8 * 2**-10),
}


def assert_as_defined(case: Case) -> None:
    """The engine's results are the definition's, evaluated in higher precision on the same numbers."""
    precise = torch.float64 if case.dtype in (torch.float32, torch.float64) else torch.float32
    expected = {name: v.to(case.dtype) for name, v in run(case, "torch", precise).items()}
    if case.dtype == torch.float32:
        expected = run(case, "torch", precise)
    actual = run(case)
    assert {v.dtype for v in actual.values()} == {case.dtype}
    assert_close(actual, expected, TOLERANCE[case.dtype])


@st.composite
def problems(draw: st.DrawFn, cell: str, dtype: torch.dtype = torch.float64) -> Case:
    """Cases of one cell: sizes, layouts and options at random."""
    rows = draw(st.sampled_from(ROWS))
    least = 1 if rows == "packed" else 0
    return Case(
        cell,
        steps=draw(st.sampled_from([n for n in fewer((0, 1, 2, 3, 7, 17), (0, 1, 3)) if n >= least])),
        batch=draw(st.sampled_from([n for n in fewer((0, 1, 2, 5, 9, 17), (0, 1, 3)) if n >= least])),
        hidden=draw(st.sampled_from(WIDTHS)),
        direction=draw(st.sampled_from(DIRECTIONS)),
        rows=rows,
        batch_first=rows != "packed" and draw(st.booleans()),
        reset=draw(st.booleans()),
        layout=draw(st.sampled_from(LAYOUTS)),
        above=draw(st.sampled_from(("both", "output", "final"))),
        dtype=dtype,
        seed=draw(st.integers(0, 10_000)),
    )


def kinds(cell: str, **given) -> list[Case]:
    """A handful of cases that together meet every option: for tests too slow to draw many."""
    case = Case(cell, **given)
    if SLOW:
        case = replace(case, steps=min(case.steps, STEPS), batch=min(case.batch, BATCH))
    return [
        case,
        replace(case, direction="both", rows="lengths", reset=True),
        replace(case, direction="reverse", batch_first=True, rows="lengths"),
        replace(case, direction="both", rows="packed", reset=True),
    ]
