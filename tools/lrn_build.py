"""The build backend: scikit-build-core's, which also learns where torch's headers are.

The C++ engine is compiled with torch's headers and linked to its library. pip builds in an environment of
its own that has only what the build asks for, so that a plain ``pip install .`` would not see the torch
that is installed. Therefore torch is looked for around that environment, too. Only where there is none that
will do is it asked for: it is a large download, and its stable ABI makes any version as good as another.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from scikit_build_core import build
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, list[str] | str]

OLDEST = (2, 10)  # the torch whose stable ABI the engine is written for
HEADER = "include/torch/csrc/stable/library.h"
WHERE = """
from importlib.util import find_spec
torch = find_spec("torch")
print(torch.submodule_search_locations[0] if torch else "")
"""
ISOLATION = ("PYTHONPATH", "PYTHONNOUSERSITE")
"""The variables by which pip hides what is installed from a build that runs with the same Python."""


def find_torch() -> str | None:
    """Return the folder of a torch to build against, or None if no installed one will do.

    That of the build's environment comes first, then that of the Python which pip installs for. It is not
    imported.
    """
    outside = {name: value for name, value in os.environ.items() if name not in ISOLATION}
    for environment in (dict(os.environ), outside):
        found = subprocess.run(
            [sys.executable, "-P", "-c", WHERE],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        folder = (found.stdout.splitlines() or [""])[-1]
        if folder and will_do(Path(folder)):
            return folder
    return None


def will_do(torch: Path) -> bool:
    """Whether the torch in a folder is new enough, and came with what compiler and linker need."""
    if not (torch / HEADER).is_file() or not any((torch / "lib").glob("*torch_cpu*")):
        return False
    version = re.search(r"__version__ = '(\d+)\.(\d+)", (torch / "version.py").read_text(encoding="utf-8"))
    return version is not None and (int(version[1]), int(version[2])) >= OLDEST


def get_requires_for_build_wheel(config_settings: Settings | None = None) -> list[str]:
    """Return what a wheel needs to be built."""
    return build.get_requires_for_build_wheel(config_settings) + _torch_if_missing()


def get_requires_for_build_editable(config_settings: Settings | None = None) -> list[str]:
    """Return what an editable installation needs to be built."""
    return build.get_requires_for_build_editable(config_settings) + _torch_if_missing()


def build_wheel(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel, and return the name of its file."""
    return build.build_wheel(wheel_directory, _with_torch(config_settings), metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable installation, and return the name of its file."""
    return build.build_editable(wheel_directory, _with_torch(config_settings), metadata_directory)


def _torch_if_missing() -> list[str]:
    return [] if find_torch() else [f"torch>={OLDEST[0]}.{OLDEST[1]}"]


def _with_torch(settings: Settings | None) -> Settings:
    """Tell CMake where torch is, unless the user has."""
    return {"cmake.define.TORCH_DIR": find_torch() or "", **(settings or {})}
