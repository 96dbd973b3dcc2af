"""An export leaves torch's compiler with sizes that it takes for symbols: not so for the tests after it."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def forget_what_was_compiled():
    yield
    torch._dynamo.reset()
