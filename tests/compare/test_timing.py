"""Training steps are timed as a training takes them."""

from lrn.compare.timing import taking_turns
from lrn.tasks import load
from lrn.tasks.ner.config import NERConfig


def test_a_training_of_one_step_is_timed_too():
    config = NERConfig(sentences=5, epochs=1, hidden=4, dense=4, word_width=4, threads=1)
    times = taking_turns({"lrn": load("ner").prepare(config)}, seconds=0.05)
    assert times["lrn"].median > 0
