"""The bidirectional layer with masks: against the units themselves, its masks, and gradients."""

import pytest
import torch

import lrn
from lrn.names import UNITS
from lrn.nn import BothWays
from lrn.text.batches import RowPacking

LENGTHS = [2, 5, 1, 5, 3]


def layer(unit="lrn", dropout=0.0):
    torch.manual_seed(1)
    return BothWays(lrn.make_unit(unit, 3, 4), lrn.make_unit(unit, 3, 4), dropout).double()


@pytest.mark.parametrize("unit", UNITS)
def test_each_sequence_alone(unit):
    both, packing = layer(unit), RowPacking.of(LENGTHS)
    x = torch.randn(5, 5, 3, dtype=torch.float64)
    found = packing.pad(both(packing.pack(x).data, packing))
    for row, length in enumerate(LENGTHS):
        alone = x[row, :length].unsqueeze(1)
        ahead, _ = both.forwards(alone)
        back, _ = both.backwards(alone.flip(0))
        torch.testing.assert_close(found[row, :length, :4], ahead[:, 0], rtol=0, atol=1e-14)
        torch.testing.assert_close(found[row, :length, 4:], back.flip(0)[:, 0], rtol=0, atol=1e-14)


def test_masks_are_of_a_sequence_and_a_direction():
    both, packing = layer(dropout=0.5).train(), RowPacking.of(LENGTHS)
    x = torch.randn(5, 5, 3, dtype=torch.float64)
    ahead, back = (torch.randint(2, (5, 3)).double() * 2 for _ in range(2))
    found = packing.pad(both(packing.pack(x).data, packing, (ahead, back)))
    plain = layer()
    for direction, mask in ((slice(0, 4), ahead), (slice(4, 8), back)):
        expected = packing.pad(plain(packing.pack(x * mask.unsqueeze(1)).data, packing))
        torch.testing.assert_close(found[..., direction], expected[..., direction], rtol=0, atol=1e-14)


def test_masks_are_drawn_in_training_alone():
    both, packing = layer(dropout=0.5), RowPacking.of(LENGTHS)
    x = torch.randn(16, 3, dtype=torch.float64)
    assert both.eval().masks(5, x) == (None, None)
    first, second = both.train().masks(5, x)
    assert first.shape == second.shape == (5, 3)
    assert {*first.flatten().tolist(), *second.flatten().tolist()} == {0.0, 2.0}
    assert not torch.equal(both(x, packing), both(x, packing))


def test_gradients():
    both, packing = layer(dropout=0.5).train(), RowPacking.of([2, 3])
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    masks = both.masks(2, x)
    assert torch.autograd.gradcheck(lambda x: both(x, packing, masks), x)
