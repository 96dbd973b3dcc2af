"""All tests of recurrences on this engine without a GPU: Triton's interpreter runs its kernels on the host.

Whether it does is decided when triton is imported, so the tests have a process of their own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lrn.recurrence import dispatch

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(dispatch.INTERPRETED, reason="this is the interpreter's process")
def test_everything_in_the_interpreter():
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--tb=short", "-W", "ignore::RuntimeWarning"),
        *("-p", "no:cacheprovider", "-p", "no:xdist", str(TESTS)),
    ]
    done = subprocess.run(
        command,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        cwd=TESTS.parents[1],
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) > 400, "or the tests are not found"
