"""Additive attention over a ragged memory: the definition and the engine against a loop written out."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pytest
import torch
from accelerator import accelerator
from recurrence.cases import TOLERANCE, assert_close, assert_equal, here, randn
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import lrn
from lrn.recurrence import Memory, attend, dispatch, open_memory

DTYPES = (torch.float64, torch.float32)
OP = "attend"  # what an engine must have for these tests
WAYS = ("engine", "definition")
SIZES = (1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 65, 150)
INPUTS = ("keys", "values", "score", "query")


def way(name):
    """The engine under test, or the definition."""
    return nullcontext() if name == "engine" else lrn.engine("torch")


@dataclass(frozen=True)
class Walk:
    """Some steps on one memory, each with the queries of fewer sequences."""

    lengths: tuple[int, ...] = (5, 0, 1, 7, 3, 16, 17, 2)
    heads: int = 4
    size: int = 17
    batches: tuple[int, ...] = (8, 7, 7, 3, 1)
    dtype: torch.dtype = torch.float64
    seed: int = 0

    @property
    def starts(self) -> Tensor:
        return torch.tensor([sum(self.lengths[:n]) for n in range(len(self.lengths) + 1)], dtype=torch.int64)

    @property
    def longest(self) -> int:
        return max(self.lengths, default=0)

    def inputs(self) -> dict[str, Tensor]:
        """Leaves: keys, values and score, then the query of each step, all in one."""
        width, rows = self.heads * self.size, sum(self.lengths)
        shapes = {
            "keys": (rows, width),
            "values": (rows, width),
            "score": (self.size,),
            "query": (sum(self.batches), width),
        }
        numbers = {name: randn(*shape, seed=self.seed + n) for n, (name, shape) in enumerate(shapes.items())}
        # Sums of size 1, as first weights make them: the softmax multiplies the rounding of large ones.
        numbers["score"] /= self.size**0.5
        return {name: x.to(self.dtype) for name, x in numbers.items()}

    def memory(self, values: dict[str, Tensor]) -> Memory:
        return open_memory(values["keys"], values["values"], self.starts, self.longest)

    def steps(self, memory: Memory, values: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
        return [attend(memory, query, values["score"]) for query in values["query"].split(self.batches)]

    def above(self) -> Tensor:
        """The gradient of all contexts, one below the other."""
        return randn(sum(self.batches), self.heads * self.size, seed=self.seed + 9).to(self.dtype)

    def run(self, dtype: torch.dtype | None = None, loop: bool = False) -> dict[str, Tensor]:
        """Contexts, weights and the gradients of everything."""
        values = {n: x.to(dtype or self.dtype).requires_grad_() for n, x in self.inputs().items()}
        steps = by_loop(self, values) if loop else self.steps(self.memory(values), values)
        return results(steps, values, self.above().to(dtype or self.dtype))


def results(steps, values, above):
    context = torch.cat([context for context, _ in steps])
    found = {"context": context, "weights": torch.cat([weights for _, weights in steps])}
    gradients = torch.autograd.grad(context, list(values.values()), above, materialize_grads=True)
    found |= {f"grad_{name}": g for name, g in zip(values, gradients, strict=True)}
    return {name: value.detach() for name, value in found.items()}


def by_loop(walk: Walk, values: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """One sequence, one head, one position after the other."""
    steps, starts = [], walk.starts.tolist()
    for query in values["query"].split(walk.batches):
        weights = torch.zeros(len(query), walk.heads, walk.longest, dtype=query.dtype)
        rows = []
        for r, q in enumerate(query):
            parts = []
            for k in range(walk.heads):
                part = slice(k * walk.size, (k + 1) * walk.size)
                context = 0 * q[part]
                powers = []
                for j in range(starts[r], starts[r + 1]):
                    powers.append(
                        (values["score"] * torch.tanh(q[part] + values["keys"][j, part])).sum().exp()
                    )
                for j, power in enumerate(powers):
                    share = power / sum(powers)
                    weights[r, k, j] = share.detach()
                    context = context + share * values["values"][starts[r] + j, part]
                parts.append(context)
            rows.append(torch.cat(parts))
        steps.append((torch.stack(rows), weights))
    return steps


def assert_right(walk: Walk) -> None:
    """As the loop says, in float64 on the same numbers."""
    actual = walk.run()
    assert {value.dtype for value in actual.values()} == {walk.dtype}
    assert_close(actual, walk.run(torch.float64, loop=True), TOLERANCE[walk.dtype])


# The same as the loop -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("heads", [1, 4])
def test_against_a_loop(heads, dtype, name):
    """Lengths of 0 and 1, fewer and fewer sequences, results and all gradients."""
    with way(name):
        assert_right(Walk(heads=heads, dtype=dtype))


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_every_size(size, name):
    """Heads around the width of a vector: the last, partial vector and the narrow head."""
    with way(name):
        for dtype in DTYPES:
            assert_right(Walk((5, 0, 1), 3, size, (3, 2), dtype=dtype))


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 15, 16, 17, 33])
def test_every_length(length):
    """Positions around the width of a vector."""
    for dtype in DTYPES:
        assert_right(Walk((length, 3), 1, 5, (2, 1), dtype=dtype))


@pytest.mark.parametrize("name", WAYS)
def test_nothing_to_look_at(name):
    """Empty sequences, no sequences, no queries: zeros, and zero gradients."""
    with way(name):
        for walk in (Walk((0, 0), batches=(2, 1)), Walk((), batches=(0,)), Walk((2, 1), batches=(0, 0))):
            found = walk.run()
            assert found["weights"].shape == (sum(walk.batches), walk.heads, walk.longest)
            assert not any(value.any() for value in found.values())


@pytest.mark.parametrize("name", WAYS)
def test_more_room_than_needed(name):
    """``longest`` may be more than the longest is: the rest of the weights is zero."""
    walk = Walk((2, 0), batches=(2,))
    values = walk.inputs()
    with way(name):
        expected, weights = attend(walk.memory(values), values["query"], values["score"])
        memory = open_memory(values["keys"], values["values"], walk.starts, 5)
        context, more = attend(memory, values["query"], values["score"])
        assert torch.equal(context, expected)
        assert torch.equal(more[..., :2], weights)
        assert more.shape[2] == 5
        assert not more[..., 2:].any()
        nothing = open_memory(*[values["keys"][:0]] * 2, torch.tensor([0, 0]), 4)
        context, more = attend(nothing, values["query"][:1], values["score"])
        assert not context.any()
        assert not more.any()
        assert more.shape == (1, 4, 4)


@pytest.mark.parametrize("name", WAYS)
def test_weights(name):
    """They are shares, and pass no gradient on."""
    walk = Walk(batches=(8,))
    values = {n: x.requires_grad_() for n, x in walk.inputs().items()}
    with way(name):
        ((_, weights),) = walk.steps(walk.memory(values), values)
    assert not weights.requires_grad
    real = torch.arange(walk.longest) < torch.tensor(walk.lengths)[:, None, None]
    assert not weights[~real.expand_as(weights)].any()
    there = torch.tensor(walk.lengths)[:, None].clamp(max=1).double().expand(8, walk.heads)
    torch.testing.assert_close(weights.sum(-1), there, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_far_apart(dtype, name):
    """Scores so far apart that one position takes all, and the powers of the others are no numbers."""
    walk = Walk((6, 3), 2, 5, (2,), dtype=dtype)
    values = walk.inputs()
    values["score"] = values["score"] * 1e4
    with way(name):
        context, weights = attend(walk.memory(values), values["query"], values["score"])
    assert torch.equal(weights.max(-1).values, torch.ones(2, 2, dtype=dtype))
    assert torch.equal(weights.sum(-1), torch.ones(2, 2, dtype=dtype))
    assert context.isfinite().all()


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("what", ["keys", "values", "query"])
def test_a_bad_sequence_is_alone(what, bad, name):
    """Not a number, or infinite, in one sequence: the others do not notice, neither does their gradient."""
    walk = Walk((2, 3, 0, 4), batches=(4,))
    values = walk.inputs()
    row, others = (1, [0, 2, 3]) if what == "query" else (2, [0, 2, 3])
    clean = walk.run()
    values[what][row] = bad
    values = {n: x.requires_grad_() for n, x in values.items()}
    with way(name):
        found = results(walk.steps(walk.memory(values), values), values, walk.above())
    rest = [n for n in range(9) if n not in (2, 3, 4)]
    for key, rows in (("context", others), ("weights", others), ("grad_query", others), ("grad_keys", rest)):
        torch.testing.assert_close(found[key][rows], clean[key][rows], rtol=0, atol=1e-12)
    if (what, bad) != ("keys", torch.inf) and (what, bad) != ("query", torch.inf):  # tanh(inf) = 1
        assert found["context"][1].isnan().any() or found["context"][1].isinf().any()


# Gradients ------------------------------------------------------------------------------------------------


def walked(walk):
    """Keys, values, score and query to something that depends on every step, as a function of leaves."""
    starts, longest, sequences = (
        walk.starts,
        walk.longest,
        len(walk.lengths),
    )  # numbers, before a compiler looks

    def run(keys, values, score, query):
        memory = open_memory(keys, values, starts, longest)
        carried, total = torch.zeros(sequences, keys.shape[1], dtype=keys.dtype), []
        for q in query.split(walk.batches):
            context, _ = attend(memory, q + carried[: len(q)], score)  # as a recurrence would
            carried = context
            total.append(context.sin())
        return torch.cat(total)

    return run


SMALL = Walk((2, 0, 1, 3), 2, 3, (4, 3, 1))


@pytest.mark.parametrize("name", WAYS)
def test_gradcheck(name):
    """First and second gradient of a walk against finite differences."""
    walk = Walk((2, 0, 1), 2, 2, (3, 1))
    leaves = [x.requires_grad_() for x in walk.inputs().values()]
    with way(name):
        assert torch.autograd.gradcheck(walked(walk), leaves)
        assert torch.autograd.gradgradcheck(walked(walk), leaves)


def leaves_of(walk):
    values = {n: x.requires_grad_() for n, x in walk.inputs().items()}
    return values, list(values.values())


def same(actual, expected):
    torch.testing.assert_close(tuple(actual), tuple(expected), rtol=0, atol=1e-12)


def expected_gradients(walk, leaves):
    with lrn.engine("torch"):
        return torch.autograd.grad(walked(walk)(*leaves).sum(), leaves)


def test_backward_twice():
    """A graph that is kept gives the same again: nothing is left over from the first time."""
    _, leaves = leaves_of(SMALL)
    expected = expected_gradients(SMALL, leaves)
    loss = walked(SMALL)(*leaves).sum()
    for _ in range(3):
        same(torch.autograd.grad(loss, leaves, retain_graph=True), expected)
    loss.backward()
    same((leaf.grad for leaf in leaves), expected)


def test_of_the_query_alone():
    """Gradients that nobody asks for are not gathered, and do not turn up in the next backward pass."""
    _, leaves = leaves_of(SMALL)
    expected = expected_gradients(SMALL, leaves)
    loss = walked(SMALL)(*leaves).sum()
    same(torch.autograd.grad(loss, leaves[3], retain_graph=True), expected[3:])
    same(torch.autograd.grad(loss, leaves[2:], retain_graph=True), expected[2:])
    same(torch.autograd.grad(loss, leaves[0], retain_graph=True), expected[:1])
    same(torch.autograd.grad(loss, leaves[1], retain_graph=True), expected[1:2])
    same(torch.autograd.grad(loss, leaves), expected)


def test_of_the_memory():
    """The gradient with respect to the memory's own tensors, which are those it was made of."""
    values, leaves = leaves_of(SMALL)
    keys = values["keys"] * 1
    memory = open_memory(keys, values["values"], SMALL.starts, SMALL.longest)
    loss = sum(context.sum() for context, _ in SMALL.steps(memory, values))
    (at_memory,) = torch.autograd.grad(loss, memory.keys, retain_graph=True)
    same([at_memory], torch.autograd.grad(loss, leaves[:1]))
    assert at_memory.any()


def test_some_of_the_steps():
    """Step by step, in any order, adds up to all of them at once."""
    values, leaves = leaves_of(SMALL)
    whole = SMALL.run()
    contexts = [context for context, _ in SMALL.steps(SMALL.memory(values), values)]
    parts = SMALL.above().split(SMALL.batches)
    for n in (1, 2, 0):
        contexts[n].backward(parts[n])
    same((leaf.grad for leaf in leaves), [whole[f"grad_{name}"] for name in values])


def test_two_walks():
    """On one memory, and on two that are made of the same tensors."""
    values, leaves = leaves_of(SMALL)
    once = torch.autograd.grad(walked(SMALL)(*leaves).sum(), leaves)
    twice = torch.autograd.grad(walked(SMALL)(*leaves).sum() + walked(SMALL)(*leaves).sum(), leaves)
    same(twice, [2 * g for g in once])
    memory = SMALL.memory(values)
    losses = [sum(context.sum() for context, _ in SMALL.steps(memory, values)) for _ in range(2)]
    one = torch.autograd.grad(losses[0], leaves, retain_graph=True)
    same(torch.autograd.grad(losses[0] + losses[1], leaves), [2 * g for g in one])


def test_one_tensor_for_keys_and_values():
    values, _ = leaves_of(SMALL)
    found = []
    for name in WAYS:
        with way(name):
            memory = open_memory(values["keys"], values["keys"], SMALL.starts, SMALL.longest)
            loss = sum(context.sin().sum() for context, _ in SMALL.steps(memory, values))
            found.append(torch.autograd.grad(loss, [values[n] for n in ("keys", "score", "query")]))
    same(*found)


@pytest.mark.parametrize(
    "frozen", [*((name,) for name in INPUTS), ("keys", "values"), ("score", "query")], ids=" and ".join
)
def test_frozen(frozen):
    """Some of the inputs want no gradient."""
    whole = SMALL.run()
    values = {n: x.requires_grad_(n not in frozen) for n, x in SMALL.inputs().items()}
    context = torch.cat([context for context, _ in SMALL.steps(SMALL.memory(values), values)])
    wanted = [n for n in INPUTS if n not in frozen]
    with Calls() as calls:
        found = torch.autograd.grad(context, [values[n] for n in wanted], SMALL.above())
    assert calls.names == {"attend_backward"}
    same(found, [whole[f"grad_{n}"] for n in wanted])


def test_opened_without_gradients():
    """The memory's tensors want one all the same, and get it."""
    values, leaves = leaves_of(SMALL)
    whole = SMALL.run()
    with torch.no_grad():
        memory = SMALL.memory(values)
    context = torch.cat([context for context, _ in SMALL.steps(memory, values)])
    same(torch.autograd.grad(context, leaves, SMALL.above()), [whole[f"grad_{n}"] for n in INPUTS])


def test_broken_off():
    """A backward pass that ends with an error leaves nothing to the next one."""
    values, leaves = leaves_of(SMALL)
    expected = expected_gradients(SMALL, leaves)
    first = values["query"] * 1
    broken = [True]

    def stop(grad):
        if broken[0]:
            raise KeyError("stop")

    first.register_hook(stop)
    loss = walked(SMALL)(*leaves[:3], first).sum()
    with pytest.raises(KeyError):
        loss.backward(retain_graph=True)
    broken[0] = False
    same(torch.autograd.grad(loss, leaves), expected)


def test_backward_from_threads():
    """Several passes over one graph at once do not meet."""
    _, leaves = leaves_of(SMALL)
    expected = expected_gradients(SMALL, leaves)
    loss = walked(SMALL)(*leaves).sum()
    with ThreadPoolExecutor(4) as pool:
        passes = [pool.submit(torch.autograd.grad, loss, leaves, retain_graph=True) for _ in range(40)]
    for one in passes:
        same(one.result(), expected)


def test_first_and_second_gradient_at_once():
    """A loss with a gradient in it goes back both ways: through the steps, and through what they were."""
    _, leaves = leaves_of(SMALL)
    found = []
    for name in WAYS:
        with way(name):
            loss = walked(SMALL)(*leaves).sum()
            slope = torch.autograd.grad(loss, leaves, create_graph=True)
            total = loss + sum(g.square().sum() for g in slope)
            found.append([*slope, *torch.autograd.grad(total, leaves)])
    same(*found)


@pytest.mark.parametrize("inside", [True, False], ids=["opened inside", "opened outside"])
@pytest.mark.parametrize("reentrant", [True, False], ids=str)
def test_checkpoint(reentrant, inside):
    """Steps that are computed again in the backward pass."""
    values, leaves = leaves_of(SMALL)
    whole = SMALL.run()
    memory = SMALL.memory(values)

    def step(query, keys, more, score):
        opened = open_memory(keys, more, SMALL.starts, SMALL.longest) if inside else memory
        return attend(opened, query, score)[0]

    if reentrant and not inside:  # which goes back to the leaves at every step
        for n, query in enumerate(values["query"].split(SMALL.batches)):
            context = checkpoint(step, query, *leaves[:3], use_reentrant=True)
            context.backward(SMALL.above().split(SMALL.batches)[n])
        same((leaf.grad for leaf in leaves), [whole[f"grad_{n}"] for n in INPUTS])
        return
    contexts = [
        checkpoint(step, query, *leaves[:3], use_reentrant=reentrant)
        for query in values["query"].split(SMALL.batches)
    ]
    torch.cat(contexts).backward(SMALL.above())
    same((leaf.grad for leaf in leaves), [whole[f"grad_{n}"] for n in INPUTS])


def test_many_gradients_at_once():
    """``is_grads_batched`` pulls several gradients back at once."""
    values, leaves = leaves_of(SMALL)
    context = torch.cat([context for context, _ in SMALL.steps(SMALL.memory(values), values)])
    above = randn(3, *context.shape, seed=5)
    together = torch.autograd.grad(context, leaves, above, is_grads_batched=True, retain_graph=True)
    for n, one in enumerate(above):
        same([g[n] for g in together], torch.autograd.grad(context, leaves, one, retain_graph=True))


def test_changed_in_place():
    """What a step has seen may not change before its backward pass; autograd says so."""
    values, _ = leaves_of(SMALL)
    keys = values["keys"] * 1
    memory = open_memory(keys, values["values"], SMALL.starts, SMALL.longest)
    context, _ = attend(memory, values["query"][:4], values["score"])
    keys.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        context.sum().backward()


# When the engine runs -------------------------------------------------------------------------------------


class Calls(TorchDispatchMode):
    """Which of our ops run inside."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "lrn":
            self.names.add(func._opname)
        return func(*args, **(kwargs or {}))


def calls_of(dtypes, engine=None):
    """Our ops in a walk whose inputs have these types."""
    values = {n: x.to(dtypes.get(n, torch.float32)).requires_grad_() for n, x in SMALL.inputs().items()}
    with Calls() as calls, lrn.engine(engine or here.engine):
        steps = SMALL.steps(SMALL.memory(values), values)
        torch.cat([context for context, _ in steps]).sum().backward()
    assert all(x.grad.dtype == x.dtype for x in values.values())
    return calls.names, steps[0][0].dtype


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bfloat16, torch.float16], ids=str)
def test_types(dtype):
    """In float32 and float64; the others by definition."""
    names, kind = calls_of(dict.fromkeys(INPUTS, dtype))
    assert names == ({"attend", "attend_backward"} if dtype in DTYPES else set())
    assert kind == dtype
    assert calls_of(dict.fromkeys(INPUTS, dtype), "torch") == (set(), dtype)


@pytest.mark.parametrize("what", INPUTS)
def test_mixed_types(what):
    """One input in float64 makes it float64, by definition."""
    names, kind = calls_of({what: torch.float64})
    assert kind == torch.float64
    assert names <= {"attend", "attend_backward"}
    walk = replace(SMALL, dtype=torch.float32)
    values = walk.inputs()
    expected = by_loop(walk, {n: x.double() for n, x in values.items()})
    values[what] = values[what].double()
    for (context, _), (wanted, _) in zip(walk.steps(walk.memory(values), values), expected, strict=True):
        torch.testing.assert_close(context, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_types(dtype):
    """Within a few roundings of the truth on the same numbers; the weights are shares to the last digit."""
    walk = Walk(dtype=dtype)
    actual, expected = walk.run(), walk.run(torch.float64, loop=True)
    assert_close(actual, expected, (8 * TOLERANCE[dtype][0], 2 * TOLERANCE[dtype][1]))


def test_autocast():
    """The types of query and memory decide, not that of a parameter; gradients come in each tensor's own."""
    walk = replace(SMALL, dtype=torch.float32)
    values = {n: x.to(torch.float32 if n == "score" else torch.bfloat16) for n, x in walk.inputs().items()}
    values = {n: x.requires_grad_() for n, x in values.items()}
    with torch.autocast(here.device, torch.bfloat16), Calls() as calls:
        steps = walk.steps(walk.memory(values), values)
    assert not calls.names
    assert {x.dtype for step in steps for x in step} == {torch.bfloat16}
    found = results(steps, values, walk.above().bfloat16())
    assert found["grad_score"].dtype == torch.float32
    assert_close(found, walk.run(torch.float64, loop=True), (8 * 2**-7, 16 * 2**-7))


def test_opened_elsewhere():
    """A memory opened on one engine, or under autocast, serves steps on another."""
    values, leaves = leaves_of(SMALL)
    whole = SMALL.run()
    for opened, stepped in (("engine", "definition"), ("definition", "engine")):
        with way(opened):
            memory = SMALL.memory(values)
        with way(stepped):
            context = torch.cat([context for context, _ in SMALL.steps(memory, values)])
        same(torch.autograd.grad(context, leaves, SMALL.above()), [whole[f"grad_{n}"] for n in INPUTS])


def test_without_gradients():
    """The same bits, and nothing recorded."""
    values, _ = leaves_of(SMALL)
    expected = SMALL.steps(SMALL.memory(values), values)
    for without in (torch.no_grad, torch.inference_mode):
        with without(), Calls() as calls:
            found = SMALL.steps(SMALL.memory(values), values)
        assert calls.names == {"attend"}
        for step, wanted in zip(found, expected, strict=True):
            assert not step[0].requires_grad
            assert torch.equal(step[0], wanted[0])
            assert torch.equal(step[1], wanted[1])


def test_layouts():
    """Keys and values side by side in one tensor, features apart, queries out of a wider tensor."""
    values = SMALL.inputs()
    width = SMALL.heads * SMALL.size
    whole = SMALL.run()
    both = torch.cat([values["keys"], values["values"]], 1).requires_grad_()
    wider = torch.cat([values["query"], values["query"]], 1).requires_grad_()
    turned = both.t().contiguous().t()
    score = torch.stack([values["score"]] * 2, 1)[:, 0]
    for source in (both, turned):
        keys, more = source.chunk(2, 1)
        given = {"keys": keys, "values": more, "score": score, "query": wider[:, :width]}
        context = torch.cat([context for context, _ in SMALL.steps(SMALL.memory(given), given)])
        grad_both, grad_wider = torch.autograd.grad(context, [both, wider], SMALL.above())
        same(
            [context, grad_both, grad_wider[:, :width]],
            [whole["context"], torch.cat([whole["grad_keys"], whole["grad_values"]], 1), whole["grad_query"]],
        )


# torch's rules --------------------------------------------------------------------------------------------


def test_torch_func():
    """Inside torch.func's transforms the definition runs, and gives the same."""
    leaves = list(SMALL.inputs().values())
    expected = expected_gradients(SMALL, [x.requires_grad_() for x in leaves])
    leaves = [x.detach() for x in leaves]

    def loss(*args):
        return walked(SMALL)(*args).sum()

    same(torch.func.grad(loss, (0, 1, 2, 3))(*leaves), expected)
    many = randn(3, *leaves[3].shape, seed=4)
    mapped = torch.func.vmap(lambda query: walked(SMALL)(*leaves[:3], query))(many)
    same([mapped], [torch.stack([walked(SMALL)(*leaves[:3], query) for query in many])])


@pytest.mark.parametrize("tracked", [True, False], ids=str)
def test_forward_mode(tracked):
    values = {n: x.requires_grad_(tracked) for n, x in SMALL.inputs().items()}
    found = []
    for name in WAYS:
        with forward_ad.dual_level(), way(name):
            duals = [forward_ad.make_dual(x, x.detach().sin()) for x in values.values()]
            found.append(forward_ad.unpack_dual(walked(SMALL)(*duals)).tangent)
    assert found[0].any()
    same([found[0]], [found[1]])


def test_compile():
    """One graph without a break, by definition."""
    torch._dynamo.reset()  # what an export before it has left would make sizes symbols
    _, leaves = leaves_of(SMALL)
    expected = walked(SMALL)(*leaves)
    compiled = torch.compile(walked(SMALL), fullgraph=True, backend="aot_eager")
    same([compiled(*leaves)], [expected])
    same(torch.autograd.grad(compiled(*leaves).sum(), leaves), torch.autograd.grad(expected.sum(), leaves))
    torch._dynamo.reset()


def test_export():
    class Step(torch.nn.Module):
        def forward(self, keys, values, starts, query, score):
            return attend(open_memory(keys, values, starts, 3), query, score)

    values = SMALL.inputs()
    args = (values["keys"], values["values"], SMALL.starts, values["query"][:4], values["score"])
    program = torch.export.export(Step(), args)
    same(program.module()(*args), Step()(*args))


def op_args(walk):
    values = walk.inputs()
    query = values["query"][: walk.batches[0]]
    given = (query, values["score"], values["keys"], values["values"], walk.starts)
    return given, walk.above()[: walk.batches[0]]


def test_opcheck():
    """Schema and shapes: torch's own checks."""
    given, above = op_args(SMALL)
    torch.library.opcheck(torch.ops.lrn.attend.default, (*given, SMALL.longest), test_utils=QUICK)
    _, weights = torch.ops.lrn.attend(*given, SMALL.longest)
    for buffers in ((torch.zeros_like(given[2]), torch.zeros_like(given[3])), (None, None)):
        args = (above, *given, weights, *buffers)
        torch.library.opcheck(torch.ops.lrn.attend_backward.default, args, test_utils=QUICK)


QUICK = ("test_schema", "test_faketensor")


def test_fake_tensors():
    """Traced without numbers it is the definition, with the same shapes and types."""
    real = SMALL.run()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        values = {n: mode.from_tensor(x).requires_grad_() for n, x in SMALL.inputs().items()}
        memory = Memory(values["keys"], values["values"], mode.from_tensor(SMALL.starts), SMALL.longest)
        found = results(SMALL.steps(memory, values), values, mode.from_tensor(SMALL.above()))
    assert {n: (x.shape, x.dtype) for n, x in found.items()} == {
        n: (x.shape, x.dtype) for n, x in real.items()
    }


@pytest.mark.accelerator
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_on_another_device(dtype):
    """All on the device it was given, nothing read back, gradients included."""
    token = dispatch._chosen.set(None)
    starts = SMALL.starts
    with accelerator() as device:
        values = {n: x.to(device, dtype).requires_grad_() for n, x in SMALL.inputs().items()}
        memory = open_memory(values["keys"], values["values"], starts.to(device), SMALL.longest)
        found = results(SMALL.steps(memory, values), values, SMALL.above().to(device, dtype))
    dispatch._chosen.reset(token)
    assert {(x.device, x.dtype) for x in found.values()} == {(device, dtype)}
    assert found["weights"].shape == (sum(SMALL.batches), SMALL.heads, SMALL.longest)


# Bit for bit ----------------------------------------------------------------------------------------------

LARGE = Walk(tuple(5 + 7 * n % 13 for n in range(40)), 4, 37, (40, 31, 9), dtype=torch.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_number_of_threads(dtype):
    """Forward and backward; with two threads twice, which is run to run. The score's gradient, too."""
    walk = replace(LARGE, dtype=dtype)
    torch.set_num_threads(1)
    alone = walk.run()
    for threads in (2, 2, 3, 8, 64):
        torch.set_num_threads(threads)
        assert_equal(walk.run(), alone)


def test_any_place_in_the_batch():
    """A sequence alone is the sequence among others."""
    values = LARGE.inputs()
    query = values["query"][:40]
    context, weights = attend(LARGE.memory(values), query, values["score"])
    starts = LARGE.starts.tolist()
    for r in (0, 7, 39):
        part = slice(starts[r], starts[r + 1])
        memory = open_memory(
            values["keys"][part], values["values"][part], torch.tensor([0, LARGE.lengths[r]]), LARGE.longest
        )
        alone = attend(memory, query[r : r + 1], values["score"])
        assert_equal(dict(enumerate(alone)), {0: context[r : r + 1], 1: weights[r : r + 1]})


@pytest.fixture
def poisoned_memory():
    """New buffers come filled with NaN."""
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = before


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_is_written(dtype, poisoned_memory):
    """Nothing is left of what stood in a new buffer: not behind a sequence's end, not for empty ones."""
    assert randn(1, dtype=dtype).new_empty(3).isnan().all(), "the poison does not work"
    for size in (3, 8, 21):
        for lengths in ((5, 0, 1), (0, 0), ()):
            walk = Walk(lengths, 2, size, (len(lengths), min(1, len(lengths))), dtype=dtype)
            for name, value in walk.run().items():
                assert not value.isnan().any(), (name, walk)


@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_instruction_sets(instructions):
    """The slower instruction sets, each in a process of its own, since the choice is made once."""
    code = (
        "from recurrence.test_attention import *\n"
        "for size in (1, 3, 4, 7, 16, 17, 33, 75):\n"
        "    for dtype in DTYPES: assert_right(Walk((5, 0, 1, 17), 3, size, (4, 3), dtype=dtype))"
    )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = os.environ | {
        "LRN_CPU": instructions,
        "LRN_ENGINE": "cpu",
        "PYTHONPATH": os.pathsep.join([folder, *sys.path]),
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if "this processor does not run" in done.stderr:
        pytest.skip(f"this processor has no {instructions}")
    assert done.returncode == 0, done.stderr


# What is kept ---------------------------------------------------------------------------------------------


def test_what_a_step_keeps():
    """Its query and its weights; the memory is kept once, and nothing of a position's features."""
    values = {n: x.requires_grad_() for n, x in LARGE.inputs().items()}
    memory = LARGE.memory(values)
    known = {x.untyped_storage().data_ptr() for x in (*values.values(), memory.starts)}
    saved = {}

    def keep(x):
        storage = x.untyped_storage()
        if storage.data_ptr() not in known:
            saved[storage.data_ptr()] = storage.nbytes() // 4
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        steps = LARGE.steps(memory, values)
    assert sum(saved.values()) == sum(LARGE.batches) * LARGE.heads * LARGE.longest  # queries are known here
    assert len(steps) == len(LARGE.batches)


# Bad input ------------------------------------------------------------------------------------------------

X = torch.zeros(5, 4)
GOOD = {"keys": X, "values": X, "starts": torch.tensor([0, 3, 5]), "longest": 3}

BAD_MEMORY = {
    "no tensor": (TypeError, "keys must be a tensor of floating-point numbers, got list", {"keys": [[1.0]]}),
    "whole numbers": (TypeError, "values must be .* got torch.int64", {"values": X.long()}),
    "flat keys": (ValueError, r"keys must be \[N, W\], got \[4\]", {"keys": X[0]}),
    "no features": (ValueError, r"keys must be \[N, W\], got \[5, 0\]", {"keys": X[:, :0]}),
    "other values": (ValueError, r"one shape, got \[5, 4\] and \[4, 4\]", {"values": X[:4]}),
    "a list of starts": (TypeError, "starts must be an int64 tensor, got list", {"starts": [0, 3, 5]}),
    "int32 starts": (
        TypeError,
        "starts must be an int64 tensor, got torch.int32",
        {"starts": GOOD["starts"].int()},
    ),
    "square starts": (
        ValueError,
        r"starts must be \[B \+ 1\], got \[1, 3\]",
        {"starts": GOOD["starts"][None]},
    ),
    "no starts": (ValueError, r"starts must be \[B \+ 1\], got \[0\]", {"starts": GOOD["starts"][:0]}),
    "late starts": (
        ValueError,
        "from 0 to the 5 rows of keys, got 1 to 5",
        {"starts": torch.tensor([1, 3, 5])},
    ),
    "an early end": (
        ValueError,
        "from 0 to the 5 rows of keys, got 0 to 4",
        {"starts": torch.tensor([0, 3, 4])},
    ),
    "falling starts": (ValueError, "got a sequence of -1 rows", {"starts": torch.tensor([0, 3, 2, 5])}),
    "longest too short": (ValueError, "longest must be .* 3, got 2", {"longest": 2}),
    "negative longest": (ValueError, "longest must be .* 3, got -1", {"longest": -1}),
    "longest of another kind": (TypeError, "longest must be a whole number, got float", {"longest": 3.0}),
    "longest as a tensor": (TypeError, "whole number, got Tensor", {"longest": torch.tensor(3)}),
    "another device": (ValueError, "values is on meta, keys on cpu", {"values": X.to("meta")}),
    "starts elsewhere": (ValueError, "starts is on meta, keys on cpu", {"starts": GOOD["starts"].to("meta")}),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("bad", BAD_MEMORY)
def test_bad_memory(bad, name):
    kind, words, change = BAD_MEMORY[bad]
    with way(name), pytest.raises(kind, match=words):
        open_memory(**GOOD | change)


BAD_QUERY = {
    "no tensor": (
        TypeError,
        "query must be a tensor of floating-point numbers, got NoneType",
        {"query": None},
    ),
    "whole numbers": (TypeError, "score must be .* got torch.int64", {"score": torch.tensor([1, 2])}),
    "flat query": (ValueError, r"query must be \[b, 4\] .* got \[4\]", {"query": X[0]}),
    "wide query": (ValueError, r"query must be \[b, 4\] .* got \[2, 5\]", {"query": torch.zeros(2, 5)}),
    "too many": (ValueError, r"at most the memory's 2 sequences, got \[3, 4\]", {"query": X[:3]}),
    "square score": (ValueError, r"score must be \[S\] .* got \[1, 2\]", {"score": torch.zeros(1, 2)}),
    "odd score": (ValueError, r"S dividing the 4 features, got \[3\]", {"score": torch.zeros(3)}),
    "empty score": (ValueError, r"S dividing the 4 features, got \[0\]", {"score": torch.zeros(0)}),
    "elsewhere": (ValueError, "query is on meta, the memory on cpu", {"query": X[:2].to("meta")}),
    "score elsewhere": (
        ValueError,
        "score is on meta, the memory on cpu",
        {"score": torch.zeros(2, device="meta")},
    ),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("bad", BAD_QUERY)
def test_bad_query(bad, name):
    kind, words, change = BAD_QUERY[bad]
    with way(name):
        memory = open_memory(**GOOD)
        with pytest.raises(kind, match=words):
            attend(memory, **{"query": X[:2], "score": torch.zeros(2)} | change)


ARGS = {"query": X[:2], "score": torch.zeros(2), "keys": X, "values": X, "starts": GOOD["starts"]}
BAD_ARGS = {
    "flat query": ("query must have 2 dimensions, got 1", {"query": X[0]}),
    "half types": (
        "query must be float32 or float64",
        {n: ARGS[n].half() for n in ("query", "score", "keys")},
    ),
    "no features": ("whose size divides query's 0 features", {"query": X[:2, :0], "keys": X[:, :0]}),
    "odd score": ("whose size divides query's 4 features", {"score": torch.zeros(3)}),
    "score of another type": (
        "score must be on the CPU and of query's type",
        {"score": torch.zeros(2).double()},
    ),
    "wide keys": (r"keys must be \[N, 4\]", {"keys": torch.zeros(5, 5)}),
    "keys of another type": ("keys must be on the CPU and of", {"keys": X.double()}),
    "few values": (r"values must be \[5, 4\]", {"values": X[:4]}),
    "int32 starts": ("starts must be int64", {"starts": GOOD["starts"].int()}),
    "few starts": ("more entries than query has rows, 2, got 2", {"starts": torch.tensor([0, 5])}),
    "starts beyond": ("from 0 to 5, got 6", {"starts": torch.tensor([0, 3, 6])}),
    "negative starts": ("from 0 to 5, got -1", {"starts": torch.tensor([-1, 3, 5])}),
    "falling starts": ("starts must not fall", {"starts": torch.tensor([0, 3, 2])}),
    "a long sequence": ("a sequence has 5 rows, more than longest, 3", {"starts": torch.tensor([0, 5, 5])}),
}


@pytest.mark.parametrize("bad", BAD_ARGS)
def test_bad_arguments_to_the_ops(bad):
    """The engine checks again: nobody promises that ``open_memory`` has."""
    words, change = BAD_ARGS[bad]
    args = (ARGS | change).values()
    with pytest.raises(RuntimeError, match=words):
        torch.ops.lrn.attend(*args, 3)
    with pytest.raises(RuntimeError, match=words):
        torch.ops.lrn.attend_backward(X[:2], *args, torch.zeros(2, 2, 3), None, None)


BAD_GRADIENTS = {
    "flat weights": ("weights must have 3 dimensions", {"weights": torch.zeros(2, 6)}),
    "other weights": ("weights do not fit query", {"weights": torch.zeros(2, 3, 3)}),
    "weights of another type": ("weights must be on the CPU", {"weights": torch.zeros(2, 2, 3).double()}),
    "other gradient": (r"grad_context must be \[2, 4\]", {"grad_context": X[:3]}),
    "few keys": (r"grad_keys must be \[5, 4\]", {"grad_keys": X[:4]}),
    "one row for all": ("grad_values must have adjacent features", {"grad_values": X[:1].expand(5, 4)}),
    "features apart": ("grad_keys must have adjacent features", {"grad_keys": torch.zeros(4, 5).t()}),
    "rows that overlap": ("rows of their own", {"grad_keys": torch.zeros(20).as_strided((5, 4), (3, 1))}),
}


@pytest.mark.parametrize("bad", BAD_GRADIENTS)
def test_bad_gradients(bad):
    words, change = BAD_GRADIENTS[bad]
    good = {
        "grad_context": X[:2],
        **ARGS,
        "weights": torch.zeros(2, 2, 3),
        "grad_keys": None,
        "grad_values": None,
    }
    torch.ops.lrn.attend_backward(*good.values())
    with pytest.raises(RuntimeError, match=words):
        torch.ops.lrn.attend_backward(*(good | change).values())


def test_negative_longest_to_the_op():
    with pytest.raises(RuntimeError, match="longest must not be negative, got -1"):
        torch.ops.lrn.attend(*ARGS.values(), -1)
