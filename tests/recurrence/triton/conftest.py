"""The tests here concern the Triton engine alone.

Those that run a kernel do so in the interpreter's process.
"""

import pytest
from recurrence import cases

from lrn.recurrence import dispatch

pytest.importorskip("triton", reason="the package triton is not installed")


@pytest.fixture(autouse=True, scope="session")
def engine():
    if not dispatch.INTERPRETED:
        yield "triton"
        return
    with cases.on("triton"):
        yield "triton"
