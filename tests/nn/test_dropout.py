"""Single numbers; one mask for all of time; all occurrences of a word at once; words taken for another."""

import pytest
import torch
from accelerator import DEVICE, elsewhere
from helpers import randn, says

from lrn.nn import Dropout, LockedDropout, RowDropout, SequenceDropout, WeightDrop, WordDropout
from lrn.nn.dropout import locked
from lrn.text.batches import RowPacking

STEPS, BATCH, WIDTH = 7, 5, 200
ROWS = 300
EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def near(share, p, count):
    """Within five standard deviations of ``count`` draws."""
    return abs(share - p) < 5 * (p * (1 - p) / count) ** 0.5


# Dropout ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.999])
@pytest.mark.parametrize("shape", [(STEPS, BATCH, WIDTH), (7001,), (0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dropout(p, shape, dtype):
    """It drops its share, scales what is left, hands on the same gradient, and draws anew at every call."""
    x = randn(*shape).to(dtype).abs_().add_(1).requires_grad_()
    dropout = Dropout(p)
    y = dropout(x * 1)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    kept = y != 0
    if x.numel():
        assert near(1 - float(kept.double().mean()), p, x.numel())
        assert not torch.equal(kept, dropout(x) != 0)
    scale = 1 / (1 - p)
    torch.testing.assert_close(y[kept], x[kept] * scale, rtol=2e-2 if p > 0.9 else 1e-2, atol=0)
    (grad,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    torch.testing.assert_close(grad, kept * (y / x), rtol=1e-2 if dtype == torch.bfloat16 else 1e-6, atol=0)


def test_the_scale_of_dropout_is_that_of_what_it_keeps():
    """0.3 is not to be had with 16 bits; the mean is right all the same."""
    y = Dropout(0.3)(torch.ones(1000, dtype=torch.float64))
    assert y.max() == 65536 / round(0.7 * 65536)


@pytest.mark.parametrize("p", [1e-6, 1 - 1e-6])
def test_dropout_of_nearly_nothing_or_nearly_everything(p):
    """Less than what 16 bits can tell from nothing, or from everything."""
    kept = Dropout(p)(torch.ones(1000)) != 0
    assert kept.double().mean() > 0.9 if p < 0.5 else kept.double().mean() < 0.1


def test_dropout_while_it_is_traced():
    traced = torch.jit.trace(Dropout(0.5), torch.ones(300), check_trace=False)
    assert traced(torch.ones(70)).unique().tolist() == [0.0, 2.0]


def test_dropout_where_nothing_is_dropped():
    x = randn(5, 3)
    assert Dropout(0.0)(x) is x
    assert Dropout(0.5).eval()(x) is x


def test_dropout_comes_from_the_seed_and_takes_any_strides():
    x = torch.ones(50, 40)
    found = []
    for given in (x, x, x.t().contiguous().t()):
        torch.manual_seed(3)
        found.append(Dropout(0.5)(given))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_neighbours_are_dropped_independently():
    """The draws of one random number, too."""
    kept = (Dropout(0.5)(torch.ones(400_000)) != 0).double()
    for apart in range(1, 9):
        both = float((kept[:-apart] * kept[apart:]).mean())
        assert near(both, 0.25, len(kept) / 2)


def test_dropout_under_torch_s_transforms():
    torch.manual_seed(5)
    found = torch.func.vmap(Dropout(0.5), randomness="different")(torch.ones(4, 300))
    assert found.unique().tolist() == [0.0, 2.0]
    with torch.autocast("cpu", torch.bfloat16):
        assert Dropout(0.5)(torch.ones(300)).unique().tolist() == [0.0, 2.0]


def test_dropout_keeps_a_byte_a_number():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        Dropout(0.3)(torch.randn(1000, requires_grad=True) * 1)
    assert sum(x.nbytes for x in kept if x.numel() > 1) == 1000


def test_dropout_refuses_what_is_no_probability():
    with pytest.raises(ValueError, match=says("from 0 to below 1", "1.5")):
        Dropout(1.5)


# Locked dropout -----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("shape", [(STEPS, BATCH, WIDTH), (STEPS, BATCH, 10, 20), (STEPS, BATCH * WIDTH)])
def test_locked_is_one_scaled_mask_over_time(shape, p):
    x = randn(*shape)
    y = LockedDropout(p)(x)
    mask = y / x
    torch.testing.assert_close(mask, mask[:1].expand(shape), **EXACT)
    kept = mask[0] != 0
    torch.testing.assert_close(mask[0], kept.double() / (1 - p), **EXACT)
    assert near(1 - kept.double().mean().item(), p, kept.numel())


def test_locked_rows_of_a_batch_have_masks_of_their_own():
    mask = LockedDropout(0.5)(torch.ones(STEPS, BATCH, WIDTH))[0]
    assert mask.unique(dim=0).shape[0] == BATCH


def test_locked_calls_have_masks_of_their_own():
    dropout, x = LockedDropout(0.5), torch.ones(STEPS, BATCH, WIDTH)
    assert not torch.equal(dropout(x), dropout(x))


def test_locked_gradient_is_the_mask():
    x = randn(STEPS, BATCH, WIDTH).requires_grad_()
    y = LockedDropout(0.3)(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, (y / x).detach(), **EXACT)


@pytest.mark.parametrize(("p", "training"), [(0.5, False), (0.0, True), (0, True)])
def test_locked_is_nothing_in_evaluation_or_at_zero(p, training):
    x = randn(STEPS, BATCH, WIDTH)
    assert torch.equal(LockedDropout(p).train(training)(x), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_locked_keeps_the_dtype(dtype):
    assert LockedDropout(0.5)(torch.ones(2, 2, 2, dtype=dtype)).dtype == dtype


# Row dropout --------------------------------------------------------------------------------------


def lookup(p=0.5, training=True):
    """Words ``[T, B]``, every one of them several times; the table; the vectors found."""
    words = torch.arange(ROWS).repeat(4)[torch.randperm(4 * ROWS)].view(-1, BATCH)
    table = randn(ROWS, 6).requires_grad_()
    return words, table, RowDropout(p).train(training)(words, table)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_row_same_word_same_fate_and_survivors_scaled(p):
    words, table, vectors = lookup(p)
    fate = (vectors / table[words]).flatten(0, 1)
    of_word = fate[words.flatten().argsort(stable=True)].view(ROWS, -1)  # occurrences by word
    torch.testing.assert_close(of_word, of_word[:, :1].expand_as(of_word), **EXACT)
    kept = of_word[:, 0] != 0
    torch.testing.assert_close(of_word[:, 0], kept.double() / (1 - p), **EXACT)
    assert near(1 - kept.double().mean().item(), p, ROWS)


def test_row_gradient_reaches_only_the_rows_kept():
    words, table, vectors = lookup(0.5)
    (gradient,) = torch.autograd.grad(vectors.sum(), table)
    dropped = words[(vectors == 0).all(-1)].unique()
    assert 0 < len(dropped) < ROWS
    expected = torch.full_like(table, 4 / (1 - 0.5))  # every word is there four times
    expected[dropped] = 0
    torch.testing.assert_close(gradient, expected, **EXACT)


def test_row_calls_have_masks_of_their_own():
    words, table, vectors = lookup()
    assert not torch.equal(RowDropout(0.5)(words, table), vectors)


@pytest.mark.parametrize(("p", "training"), [(0.5, False), (0.0, True)])
def test_row_is_a_plain_lookup_in_evaluation_or_at_zero(p, training):
    words, table, vectors = lookup(p, training)
    assert torch.equal(vectors, table[words])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3, 4)])
def test_row_takes_words_of_any_shape(shape):
    vectors = RowDropout(0.5)(torch.zeros(shape, dtype=torch.long), torch.ones(3, 6))
    assert vectors.shape == (*shape, 6)


# Both ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [-0.1, 1, 1.0, 1.5, float("nan"), float("inf"), True, False])
@pytest.mark.parametrize(
    ("kind", "name"), [(LockedDropout, "dropout"), (RowDropout, "dropout"), (WeightDrop, "weight drop")]
)
def test_not_a_probability(kind, name, p):
    with pytest.raises(ValueError, match=says(name, "from 0 to below 1", f"got {p!r}")):
        kind(p)


@pytest.mark.parametrize("kind", [LockedDropout, RowDropout, WeightDrop])
def test_shows_its_probability(kind):
    assert repr(kind(0.25)) == f"{kind.__name__}(p=0.25)"


def test_words_taken_for_another():
    words = torch.randint(1, 9, (200, 50), generator=torch.Generator().manual_seed(1))
    words[:, 40:] = 0
    drop = WordDropout(0.3, becomes=99)
    torch.manual_seed(1)
    found = drop(words)
    gone = found == 99
    assert not gone[:, 40:].any()
    assert torch.equal(found[~gone], words[~gone])
    assert abs(gone[:, :40].double().mean() - 0.3) < 5 * (0.3 * 0.7 / 8000) ** 0.5
    assert not torch.equal(drop(words), found)
    assert drop.eval()(words) is words
    assert WordDropout(0.0, becomes=99)(words) is words


def test_dropped_words_are_drawn_as_torch_draws():
    """One number a token, in the order of the tokens: results of a seed depend on it."""
    words = torch.arange(1, 13).view(3, 4)
    torch.manual_seed(5)
    found = WordDropout(0.5, becomes=0)(words)
    torch.manual_seed(5)
    assert torch.equal(found == 0, torch.rand(3, 4) < 0.5)


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_wrong_word_dropout(p):
    with pytest.raises(ValueError, match="dropout"):
        WordDropout(p, becomes=0)


@pytest.mark.accelerator
def test_on_another_device():
    with elsewhere():
        with DEVICE:
            words, table = torch.ones(4, 3, dtype=torch.long), torch.randn(9, 5)
        dropped = WordDropout(0.5, becomes=2)(words)
        vectors = LockedDropout(0.5)(Dropout(0.5)(RowDropout(0.5)(dropped, table)))
    assert dropped.device == vectors.device == DEVICE


# One mask a packed sequence -----------------------------------------------------------------------


LENGTHS = [3, 1, 7, 2]


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_sequence_is_one_scaled_mask_a_sequence(p):
    packing = RowPacking.of(LENGTHS)
    x = randn(len(packing.rows), 1000)
    mask = SequenceDropout(p)(x, packing) / x
    firsts = [mask[packing.rows == row] for row in range(len(LENGTHS))]
    for rows in firsts:
        torch.testing.assert_close(rows, rows[:1].expand_as(rows), **EXACT)
        kept = rows[0] != 0
        torch.testing.assert_close(rows[0], kept.double() / (1 - p), **EXACT)
        assert near(1 - kept.double().mean().item(), p, kept.numel())
    assert not torch.equal(firsts[0][0], firsts[1][0])


def test_sequence_does_nothing_when_told_so():
    packing = RowPacking.of(LENGTHS)
    x = randn(len(packing.rows), 4)
    assert SequenceDropout(0.0)(x, packing) is x
    assert SequenceDropout(0.5).eval()(x, packing) is x
    assert locked(x, None, packing.rows) is x


@pytest.mark.parametrize("turned", [False, True])
def test_locked_multiplies_and_turns(turned):
    packing = RowPacking.of(LENGTHS)
    order = packing.flip if turned else None
    x, mask = randn(len(packing.rows), 4).requires_grad_(), randn(len(LENGTHS), 4, seed=2)
    expected = (x[packing.flip] if turned else x) * mask[packing.rows]
    torch.testing.assert_close(locked(x, mask, packing.rows, order), expected, **EXACT)
    assert torch.autograd.gradcheck(lambda x: locked(x, mask, packing.rows, order), x)


def test_locked_keeps_nothing_large():
    packing = RowPacking.of(LENGTHS)
    x, kept = randn(len(packing.rows), 4).requires_grad_(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()), lambda t: t):
        locked(x * 1, randn(len(LENGTHS), 4), packing.rows, packing.flip)
    assert max(kept) < x.numel()
