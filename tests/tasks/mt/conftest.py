"""A folder of parallel text and a run on it, made once."""

import pytest
from tasks.mt.cases import train_run, write_pairs


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="session")
def run(folder, tmp_path_factory):
    """Not to be changed: copy it."""
    out = tmp_path_factory.mktemp("mt") / "run"
    assert train_run(folder, out, "--epochs", 3, "--lr", "0.01", "--keep_epochs", 2) == 0
    return out
