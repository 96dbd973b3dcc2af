"""The line that says where a training is."""

from types import SimpleNamespace

import pytest

from lrn.training.learner import Progress
from lrn.training.show import Screen


@pytest.mark.parametrize(
    ("epoch", "index", "shown"),
    [(0, 1, "epoch 1/3  25%"), (1, 2, "epoch 2/3  50%"), (2, 0, "epoch 2/3 100%"), (3, 0, "epoch 3/3 100%")],
)
def test_where_it_is(epoch, index, shown, capsys):
    """Steps of the present epoch; after the last one the epoch that is over, not the next one's beginning."""
    done = Progress(epoch=epoch, index=index, seconds=60.0 * (4 * epoch + index), tokens=100)
    config = SimpleNamespace(epochs=3, max_steps=0)
    learner = SimpleNamespace(progress=Progress(), config=config, steps=lambda epoch: [None] * 4)
    screen = Screen(learner, shown=True)
    learner.progress = done
    screen.show(lambda: 0.5)
    said = capsys.readouterr().err
    assert said.startswith(shown)
    assert said.rstrip().endswith(f"{12 - 4 * epoch - index}:00 left")
