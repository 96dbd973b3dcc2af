"""The engine's tests need the engine; without it they are skipped, and say so."""

import pytest
import torch

import lrn
from lrn.recurrence import dispatch


@pytest.fixture(autouse=True, scope="session")
def engine():
    if "cpu" not in lrn.engines():
        pytest.skip(f"the C++ engine is missing: {dispatch.MISSING}")


@pytest.fixture(autouse=True)
def threads():
    """Whatever a test does to the number of threads ends with it; at least two, so that work is shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
