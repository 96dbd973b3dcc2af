"""A folder with tagged sentences and a run on them, made once."""

import pytest
from tasks.ner.cases import train_run, write_sentences


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_sentences(tmp_path_factory.mktemp("sentences"))


@pytest.fixture(scope="session")
def run(folder, tmp_path_factory):
    """Not to be changed: copy it."""
    out = tmp_path_factory.mktemp("ner") / "run"
    assert train_run(folder, out, "--epochs", 2, "--vectors", folder / "vectors.txt") == 0
    return out
