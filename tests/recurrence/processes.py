"""Python in a process of its own, for what is decided once, at import or at the first call."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parents[1]


def python(code: str, *, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` with the tests' modules at hand, and none of lrn's variables but those given."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("LRN_ENGINE", "LRN_CPU")}
    path = os.pathsep.join(filter(None, [str(TESTS), inherited.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-W", "always::RuntimeWarning", "-c", textwrap.dedent(code)],
        env=inherited | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
