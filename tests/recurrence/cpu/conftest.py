"""The tests here concern the C++ engine alone."""

import pytest
from recurrence import cases

from lrn.recurrence import dispatch


@pytest.fixture(autouse=True, scope="session")
def engine():
    if dispatch.INTERPRETED:
        pytest.skip("this process is for the engine 'triton'")
    if "cpu" in dispatch.MISSING:
        pytest.skip(f"engine 'cpu' is missing: {dispatch.MISSING['cpu']}")
    with cases.on("cpu"):
        yield "cpu"
