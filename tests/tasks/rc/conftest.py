"""A folder of articles in SQuAD's form and a run on them, made once."""

import pytest
from tasks.rc.cases import train_run, write_squad


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_squad(tmp_path_factory.mktemp("squad"))


@pytest.fixture(scope="session")
def run(folder, tmp_path_factory):
    """Not to be changed: copy it."""
    out = tmp_path_factory.mktemp("rc") / "run"
    assert train_run(folder, out, "--epochs", 2, "--vectors", folder / "vectors.txt") == 0
    return out
