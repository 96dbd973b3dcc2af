"""What the tests of exports share."""

import pytest
import torch
from tasks.lm.cases import write_corpus
from tasks.small import SETTINGS
from tasks.trainings import lrn


@pytest.fixture(autouse=True, scope="module")
def forget_what_was_compiled():
    """An export leaves torch's compiler with sizes that it takes for symbols: not so for later tests."""
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a small run, by task and unit."""
    folder = tmp_path_factory.mktemp("runs")
    text = write_corpus(folder / "text")

    def run(task, unit):
        out = folder / f"{task}-{unit}"
        if not out.exists():
            data = ["--data", text] if task == "lm" else []
            words = [*SETTINGS[task], *data, "--unit", unit, "--epochs", 1, "--test", "false"]
            assert lrn("train", task, *words, "--out", out) == 0
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield run
