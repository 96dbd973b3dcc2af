"""A text and a finished run, made once."""

from pathlib import Path

import pytest
from runs import TINY, trained, write_text


@pytest.fixture(scope="session", autouse=True)
def room(tmp_path_factory):
    """Where the processes' output goes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRN_TEST_ROOM", str(tmp_path_factory.mktemp("room")))
        yield


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> Path:
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="session")
def finished(text, tmp_path_factory) -> Path:
    """A run that was never disturbed. Not to be changed: copy it."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    trained("lm", "--data", text, "--out", run, *TINY)
    return run
