"""A folder with texts and a run on them, made once."""

import shutil

import pytest
from tasks.lm.cases import train_run, write_corpus


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with texts, and a run that was trained on them."""
    folder = tmp_path_factory.mktemp("lm")
    train_run(write_corpus(folder / "data"), folder / "run", "--epochs", 2, "--lr", 2)
    return folder


@pytest.fixture
def data(made):
    return made / "data"


@pytest.fixture
def run(made, tmp_path):
    """A copy of one's own."""
    return shutil.copytree(made / "run", tmp_path / "mine")


@pytest.fixture
def other_data(tmp_path):
    return write_corpus(tmp_path / "other", words=("<unk>", "a", "b", "c", "e"))
