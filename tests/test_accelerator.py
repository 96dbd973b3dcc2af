"""All tests on the made-up device, in a process that has it from the start."""

import os
import re
import subprocess
import sys
from pathlib import Path

from accelerator import VARIABLE

TESTS = Path(__file__).parent


def test_everything_on_another_device():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        TESTS,
    ]
    done = subprocess.run(
        [*map(str, command)],
        env=os.environ | {VARIABLE: "1"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) > 400, "or the tests are not found"
