"""Pointing at spans: the network against its formula, the search against all there are."""

import pytest
import torch

from lrn.nn import Pointer, best_spans
from lrn.text.batches import RowPacking

LENGTHS = [4, 1, 6]


@pytest.fixture
def pointer():
    torch.manual_seed(1)
    return Pointer(5, 4, 3).double()


def given():
    draw = torch.Generator().manual_seed(2)
    state = torch.randn(3, 4, generator=draw, dtype=torch.float64)
    memory = torch.randn(3, 6, 5, generator=draw, dtype=torch.float64)
    packing = RowPacking.of(LENGTHS)
    return state, memory, packing


def test_it_is_what_the_formula_says(pointer):
    state, memory, packing = given()
    first, last = pointer(state, packing.pack(memory).data, packing)
    weight = torch.cat([pointer.state.weight, pointer.memory.weight], 1)

    def scores(h, m):
        return torch.tanh(torch.cat([h.expand(len(m), -1), m], 1) @ weight.t()) @ pointer.score.weight[0]

    for row, length in enumerate(LENGTHS):
        m = memory[row, :length]
        begin = scores(state[row], m)
        found = (begin.softmax(0) @ m).unsqueeze(0)
        after = pointer.cell.step(pointer.cell.project(found), state[row : row + 1])[0]
        torch.testing.assert_close(first[row, :length], begin, rtol=0, atol=1e-14)
        torch.testing.assert_close(last[row, :length], scores(after, m), rtol=0, atol=1e-14)
        assert (first[row, length:] == -torch.inf).all()
        assert (last[row, length:] == -torch.inf).all()


def test_gradients(pointer):
    state, memory, packing = given()
    packed = packing.pack(memory).data.requires_grad_()

    def run(state, packed):
        first, last = pointer(state, packed, packing)
        return first[packing.mask], last[packing.mask]

    assert torch.autograd.gradcheck(run, (state.requires_grad_(), packed))


def test_both_states_have_one_mask():
    torch.manual_seed(1)
    pointer = Pointer(5, 40, 3, dropout=0.5).double().train()
    seen = []
    pointer.state.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    _, memory, packing = given()
    pointer(torch.ones(3, 40, dtype=torch.float64), packing.pack(memory).data, packing)
    dropped = [read == 0 for read in seen]
    assert 0.2 < dropped[0].double().mean() < 0.8
    assert torch.equal(*dropped)


# The search ---------------------------------------------------------------------------------------


def brute(first, last, longest):
    """All spans, the best first."""
    steps = len(first)
    spans = [(i, j) for i in range(steps) for j in range(i, min(i + longest, steps))]
    return sorted(spans, key=lambda span: -(first[span[0]] + last[span[1]]).item())


@pytest.mark.parametrize("longest", [1, 2, 16])
@pytest.mark.parametrize("steps", [1, 2, 15, 16, 17, 40])
def test_the_best_of_all_spans(steps, longest):
    draw = torch.Generator().manual_seed(steps)
    first, last = torch.randn(2, 5, steps, generator=draw, dtype=torch.float64)
    count = min(7, longest * steps)
    starts, ends, sums = best_spans(first, last, longest, count)
    for row in range(5):
        expected = brute(first[row], last[row], longest)[: starts.shape[1]]
        real = sums[row] > -torch.inf
        found = [*zip(starts[row][real].tolist(), ends[row][real].tolist(), strict=True)]
        assert found == expected[: len(found)]
        assert len(found) == min(count, len(expected))
        for (i, j), value in zip(found, sums[row].tolist(), strict=False):
            assert value == (first[row, i] + last[row, j]).item()


def scores(steps, place):
    """All alike but one place."""
    found = torch.zeros(1, steps)
    found[0, place] = 5
    return found


@pytest.mark.parametrize(("start", "end"), [(0, 0), (29, 29), (0, 15), (14, 29), (3, 9)])
def test_at_the_first_and_at_the_last_word(start, end):
    starts, ends, _ = best_spans(scores(30, start), scores(30, end), 16)
    assert (starts.item(), ends.item()) == (start, end)


@pytest.mark.parametrize(("start", "end"), [(0, 16), (5, 4)])
def test_a_span_is_not_too_long_nor_backwards(start, end):
    starts, ends, sums = best_spans(scores(30, start), scores(30, end), 16)
    assert 0 <= ends.item() - starts.item() <= 15
    assert sums.item() == 5


def test_padding_is_no_place():
    """A batch's answers are those of each row alone."""
    draw = torch.Generator().manual_seed(1)
    first, last = torch.randn(2, 4, 9, generator=draw)
    lengths = [9, 1, 4, 2]
    mask = torch.arange(9) >= torch.tensor(lengths)[:, None]
    together = best_spans(first.masked_fill(mask, -torch.inf), last.masked_fill(mask, -torch.inf), 3, 2)
    for row, length in enumerate(lengths):
        alone = best_spans(first[row : row + 1, :length], last[row : row + 1, :length], 3, 2)
        for one, all_ in zip(alone, together, strict=True):
            assert torch.equal(one[0], all_[row, : one.shape[1]])
