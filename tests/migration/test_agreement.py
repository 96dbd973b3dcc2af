"""The explained share of the variance, batch by batch, is that of all numbers at once."""

import pytest
import torch
from helpers import randn

from lrn.migration.agreement import Tally, Variance


def test_batches_of_any_size_add_up():
    """Also where the mean is large beside the spread, and moves from batch to batch."""
    teacher = 1e6 + 0.1 * randn(40, 3) + torch.arange(40)[:, None]
    student = teacher + 0.5 * randn(40, 3, seed=2)
    share = Variance()
    for mine, theirs in zip(student.split([1, 7, 30, 2]), teacher.split([1, 7, 30, 2]), strict=True):
        share.add(mine, theirs)
    share.add(student[:0], teacher[:0])
    left = (student - teacher).square().sum() / (teacher - teacher.mean(0)).square().sum()
    assert share.share() == pytest.approx(1 - left.item(), rel=1e-9)


def test_the_ends_of_the_scale():
    teacher = randn(20, 3)
    for student, expected in ((teacher, 1.0), (teacher.mean(0).expand_as(teacher), 0.0)):
        share = Variance()
        share.add(student, teacher)
        assert share.share() == pytest.approx(expected)
    constant = Variance()
    constant.add(torch.ones(3, 2), torch.zeros(3, 2))
    assert constant.share() == float("-inf")


def test_largest_entries():
    tally = Tally()
    tally.add([torch.tensor([[1.0, 2.0], [3.0, 0.0]])], [torch.tensor([[0.0, 9.0], [1.0, 5.0]])])
    tally.add([torch.tensor([[1.0, 2.0]])], [torch.tensor([[0.0, 9.0]])])
    assert tally.agreement().same == pytest.approx(2 / 3)
    alone = Tally()
    alone.add([torch.ones(4, 1)], [torch.zeros(4, 1)])
    assert alone.agreement().same is None
