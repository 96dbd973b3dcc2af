"""A table of word vectors of which the first rows are learnt: one plain embedding in all but what is kept."""

import pytest
import torch
import torch.nn.functional as F
from accelerator import DEVICE, elsewhere
from helpers import randn

from lrn.nn import FrozenWords

LEARNT, GIVEN, WIDTH = 3, 5, 4
ROWS = {
    "mixed": [0, 7, 3, 2, 2, 5, 0, 4],
    "all learnt": [2, 0, 0, 1],
    "none learnt": [3, 7, 7, 4],
    "no rows": [],
}


@pytest.fixture
def words():
    torch.manual_seed(1)
    return FrozenWords(LEARNT, randn(GIVEN, WIDTH))


def plain(words):
    """The same as one table."""
    return torch.cat([words.learnt, words.frozen])


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_against_one_table(words, rows):
    rows = torch.tensor(rows, dtype=torch.long)
    found, expected = words(rows), F.embedding(rows, plain(words))
    assert torch.equal(found, expected)
    weights = randn(*found.shape, seed=3)
    (ours,) = torch.autograd.grad((found * weights).sum(), words.learnt)
    (theirs,) = torch.autograd.grad((expected * weights).sum(), words.learnt)
    assert torch.equal(ours, theirs)
    assert torch.equal(ours.any(1), torch.tensor([row in rows for row in range(LEARNT)]))


def test_words_of_any_shape(words):
    numbers = torch.tensor(ROWS["mixed"])
    assert torch.equal(words(numbers.view(2, 1, 4)), words(numbers).view(2, 1, 4, WIDTH))


def test_only_the_first_rows_are_learnt(words):
    before = plain(words).detach().clone()
    given = words.frozen
    optimizer = torch.optim.Adam(words.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        words(torch.tensor(ROWS["mixed"])).square().sum().backward()
        optimizer.step()
    after = plain(words).detach()
    assert (after[[0, 2]] != before[[0, 2]]).all()
    assert torch.equal(after[1], before[1])  # it did not occur
    assert torch.equal(after[LEARNT:], before[LEARNT:])
    assert words.frozen is given
    assert not given.requires_grad


def test_looking_up_leaves_the_table_alone(words):
    before = words.frozen.clone()
    words(torch.tensor(ROWS["mixed"])).detach().fill_(9)
    assert torch.equal(words.frozen, before)


def test_what_is_saved(words):
    assert list(words.state_dict()) == ["learnt"]
    assert [tuple(parameter.shape) for parameter in words.parameters()] == [(LEARNT, WIDTH)]
    assert [name for name, _ in words.named_buffers()] == ["frozen"]
    other = FrozenWords(LEARNT, words.frozen)
    other.load_state_dict(words.state_dict())
    assert torch.equal(plain(other), plain(words))


def test_the_given_vectors_are_not_copied():
    """They may be most of the memory there is, or a file that is only mapped."""
    given = randn(GIVEN, WIDTH)
    assert FrozenWords(LEARNT, given).frozen.data_ptr() == given.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_first_weights(dtype):
    words = FrozenWords(200, randn(1, 50, dtype=dtype))
    assert words.learnt.dtype == dtype
    assert words.learnt.abs().max() <= 0.08
    assert words.learnt.std().item() == pytest.approx(0.08 / 3**0.5, rel=0.05)


@pytest.mark.parametrize("row", [-1, LEARNT + GIVEN])
def test_a_row_that_there_is_not(words, row):
    with pytest.raises((IndexError, RuntimeError)):
        words(torch.tensor([0, row]))


def test_gradient(words):
    rows = torch.tensor(ROWS["mixed"])

    def looked_up(learnt):
        return torch.func.functional_call(words, {"learnt": learnt}, (rows,))

    assert torch.autograd.gradcheck(looked_up, (words.learnt.detach().requires_grad_(),))


@pytest.mark.accelerator
def test_on_another_device():
    """Which words are learnt is never asked."""
    with elsewhere():
        with DEVICE:
            words, numbers = FrozenWords(LEARNT, torch.randn(GIVEN, WIDTH)), torch.zeros(6, dtype=torch.long)
        found = words(numbers)
        found.sum().backward()
    assert found.device == words.learnt.grad.device == DEVICE
