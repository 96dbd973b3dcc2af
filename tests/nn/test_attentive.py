"""The attentive recurrence against its definition, a sequence and a step at a time, in float64."""

import pytest
import torch
from helpers import randn

from lrn import make_unit
from lrn.names import UNITS
from lrn.nn import AttentiveRecurrence
from lrn.recurrence import engine, engines
from lrn.units.unit import hidden, map_state

WIDTH, SIZE, MEMORY = 3, 4, 8
LENGTHS = [4, 2, 2, 1, 0]  # of the sequences, longest first; the last is empty
LOOKED_AT = [3, 1, 6, 2, 4]
TOTAL = sum(LENGTHS)
EXACT = {"rtol": 0, "atol": 1e-12}


def walk_of(unit="lrn", heads=2, norm=None, seed=1):
    torch.manual_seed(seed)
    cells = [make_unit(unit, width, SIZE, norm=norm) for width in (WIDTH, MEMORY)]
    walk = AttentiveRecurrence(*cells, MEMORY, heads, norm).double()
    with torch.no_grad():
        for parameter in walk.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64))
    return walk


def sizes(lengths=LENGTHS):
    return [sum(length > step for length in lengths) for step in range(max(lengths))]


def packed(rows):
    """Sequences, longest first, to their first steps, then their second ones, …"""
    return torch.stack(
        [rows[n][t] for t in range(max(map(len, rows))) for n in range(len(rows)) if t < len(rows[n])]
    )


def problem(walk, looked_at=LOOKED_AT):
    rows = list(randn(TOTAL, WIDTH).split(LENGTHS))
    memory = randn(sum(looked_at), MEMORY, seed=2)
    state = randn(1, len(LENGTHS), SIZE, seed=3)
    if walk.lower.parts == 2:
        state = (state, randn(1, len(LENGTHS), SIZE, seed=4))
    return rows, list(memory.split(looked_at)), state


def run(walk, rows, memory, state):
    starts = torch.tensor([0, *(len(row) for row in memory)]).cumsum(0)
    opened = walk.open(torch.cat(memory), starts, max(map(len, memory)))
    return walk(packed(rows), sizes([len(row) for row in rows]), opened, state)


def plainly(walk, words, memory, state):
    """Outputs ``[T, H]``, final state and weights of one sequence, written out head by head."""
    heads = MEMORY // (len(walk.score) - 1)
    keys = [walk.keys(m) for m in memory]
    outputs, looked = [], []
    for word in words:
        _, state = walk.lower.step(word[None], state)
        query = walk.query(hidden(state)[0, 0])
        context, weights = [], []
        for head in range(heads):
            mine = slice(head * MEMORY // heads, (head + 1) * MEMORY // heads)
            scores = [
                (walk.score[:-1] * torch.tanh(query[mine] + key[mine])).sum() + walk.score[-1] for key in keys
            ]
            share = torch.stack([score.exp() for score in scores])
            share = share / share.sum()
            weights.append(share)
            context.append(sum(a * m[mine] for a, m in zip(share, memory, strict=True)))
        _, state = walk.upper.step(torch.cat(context)[None], state)
        outputs.append(hidden(state)[0, 0])
        looked.append(torch.stack(weights))
    return outputs, state, looked


@pytest.fixture(params=engines())
def any_engine(request):
    with engine(request.param):
        yield


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("norm", [None, "rms", "layer"])
@pytest.mark.parametrize("unit", UNITS)
def test_step_by_step(unit, norm):
    walk = walk_of(unit, norm=norm)
    rows, memory, state = problem(walk)
    walked = run(walk, rows, memory, state)
    found = [
        plainly(walk, rows[n], memory[n], map_state(lambda s, n=n: s[:, n : n + 1], state)) for n in range(5)
    ]
    torch.testing.assert_close(walked.output, packed([torch.stack(o) for o, _, _ in found if o]), **EXACT)
    for n, (_, final, looked) in enumerate(found):
        mine = map_state(lambda s, n=n: s[:, n : n + 1], walked.state)
        torch.testing.assert_close(mine, final, **EXACT)
        for step, weights in enumerate(looked):
            there = walked.weights[step][n]
            torch.testing.assert_close(there[:, : LOOKED_AT[n]], weights, **EXACT)
            assert not there[:, LOOKED_AT[n] :].any()


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_heads(heads):
    walk = walk_of(heads=heads)
    rows, memory, state = problem(walk)
    walked = run(walk, rows, memory, state)
    outputs, _, _ = plainly(walk, rows[0], memory[0], state[:, :1])
    torch.testing.assert_close(walked.output[0], outputs[0], **EXACT)
    assert {tuple(w.shape[1:]) for w in walked.weights} == {(heads, max(LOOKED_AT))}


@pytest.mark.parametrize("unit", ["lrn", "lstm"])
def test_a_batch_is_its_rows_alone(unit):
    walk = walk_of(unit)
    rows, memory, state = problem(walk)
    whole = run(walk, rows, memory, state)
    alone = [
        run(walk, [rows[n]], [memory[n]], map_state(lambda s, n=n: s[:, n : n + 1], state)) for n in range(4)
    ]
    torch.testing.assert_close(whole.output, packed([one.output for one in alone]), **EXACT)


def test_an_empty_sequence_keeps_its_state():
    walk = walk_of()
    rows, memory, state = problem(walk)
    walked = run(walk, rows, memory, state)
    torch.testing.assert_close(walked.state[:, -1], state[:, -1], **EXACT)


def test_no_words_at_all():
    walk = walk_of()
    _, memory, state = problem(walk)
    starts = torch.tensor([0, *LOOKED_AT]).cumsum(0)
    walked = walk(randn(0, WIDTH), [], walk.open(torch.cat(memory), starts, max(LOOKED_AT)), state)
    assert walked.output.shape == (0, SIZE)
    assert walked.weights == []
    assert walked.state is state


def test_nothing_to_look_at():
    """The context is zeros, and nothing is NaN."""
    walk = walk_of()
    rows, memory, state = problem(walk, [3, 0, 6, 2, 4])
    walked = run(walk, rows, memory, state)
    assert walked.output.isfinite().all()
    assert not walked.weights[0][1].any()


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("unit", UNITS)
def test_gradients(unit):
    walk = walk_of(unit)
    rows, memory, state = problem(walk)
    memory = torch.cat(memory).requires_grad_()
    state = map_state(lambda s: s.clone().requires_grad_(), state)
    x = packed(rows[:4]).requires_grad_()
    starts = torch.tensor([0, *LOOKED_AT]).cumsum(0)
    parameters = [p for p in walk.parameters() if p is not walk.score]

    def outputs(x, memory, *rest):
        walked = walk(x, sizes(), walk.open(memory, starts, max(LOOKED_AT)), state)
        return walked.output, *(walked.state if isinstance(walked.state, tuple) else (walked.state,))

    given = (x, memory, hidden(state), *parameters)
    torch.autograd.gradcheck(outputs, given, atol=1e-6, fast_mode=True)


def test_the_gradient_of_the_score():
    """All of it but the bias, which the softmax cancels."""
    walk = walk_of()
    rows, memory, state = problem(walk)
    run(walk, rows, memory, state).output.sum().backward()
    assert walk.score.grad[:-1].all()
    assert walk.score.grad[-1] == 0


def test_chunk_by_chunk():
    """A walk may be cut in two, the state handed over."""
    walk = walk_of()
    rows, memory, state = problem(walk)
    whole = run(walk, rows, memory, state)
    starts = torch.tensor([0, *LOOKED_AT]).cumsum(0)
    opened = walk.open(torch.cat(memory), starts, max(LOOKED_AT))
    x, cut = packed(rows[:4]), sizes()
    first = walk(x[: sum(cut[:2])], cut[:2], opened, state)
    second = walk(x[sum(cut[:2]) :], cut[2:], opened, first.state)
    torch.testing.assert_close(torch.cat([first.output, second.output]), whole.output, **EXACT)
    torch.testing.assert_close(second.state, whole.state, **EXACT)


@pytest.mark.parametrize(
    ("lower", "upper", "width", "heads", "said"),
    [
        ((3, 4), (8, 4), 8, 3, "8 wide cannot be cut into 3 equal heads"),
        ((3, 4), (7, 4), 8, 2, "upper cell must read 8 and have a state of 4, got 7 and 4"),
        ((3, 4), (8, 5), 8, 2, "got 8 and 5"),
        ((3, 4, 2), (8, 4), 8, 2, "the lower cell must have one layer"),
    ],
)
def test_parts_that_do_not_fit(lower, upper, width, heads, said):
    with pytest.raises(ValueError, match=said):
        AttentiveRecurrence(make_unit("lrn", *lower), make_unit("lrn", *upper), width, heads)


def test_a_residual_connection_is_refused():
    """The cells are walked by their halves, which have none."""
    with pytest.raises(ValueError, match="the upper cell cannot have a residual connection, got LRN"):
        AttentiveRecurrence(make_unit("lrn", 3, 4), make_unit("lrn", 4, 4, residual=True), 4)
