"""A folder with labelled pairs and a run on them, made once."""

import pytest
from tasks.nli.cases import train_run, write_pairs


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def run(folder, tmp_path_factory):
    """Not to be changed: copy it."""
    out = tmp_path_factory.mktemp("nli") / "run"
    assert train_run(folder, out, "--epochs", 2, "--vectors", folder / "vectors.txt") == 0
    return out
