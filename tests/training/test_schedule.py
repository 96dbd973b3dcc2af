"""Learning rates by name."""

import pytest

from lrn.training.config import TrainConfig
from lrn.training.schedule import chen, factor


def test_by_epochs():
    assert factor(TrainConfig(), 3.5, 700) == 1
    assert factor(TrainConfig(schedule="linear", epochs=10), 2.5, 5) == 0.75
    assert factor(TrainConfig(schedule="exponential", decay=0.5), 2.9, 5) == 0.25


def test_chen():
    """The paper's values: up to 4 within 1,600 steps, from step 150,000 down to 1/2 at 300,000."""
    config = TrainConfig(schedule="chen")
    found = [factor(config, 0.0, step) for step in (0, 800, 1600, 150_000, 225_000, 300_000, 450_000)]
    assert found == pytest.approx([1, 2.5, 4, 4, 2**0.5, 0.5, 0.0625])


def test_chen_is_written_as_the_authors_do():
    n, p, s, e = 3, 70, 900, 2_000
    for step in range(0, 1_000, 37):
        expected = min(1 + step * (n - 1) / (n * p), n, n * (2 * n) ** ((s - n * step) / (e - s)))
        assert chen(step, n, p, s, e) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"decay_from": 5, "decay_to": 5}, "decay_from must be at least 0 and below decay_to, 5, got 5"),
        ({"warmup": 0}, "warmup must be at least 1, got 0"),
        ({"replicas": 0}, "replicas must be at least 1, got 0"),
    ],
)
def test_schedules_that_cannot_be(given, said):
    with pytest.raises(ValueError, match=said):
        TrainConfig(schedule="chen", **given)
