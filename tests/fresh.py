"""Environments as a newcomer has them, for the tests of building and installing."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
OURS = re.compile(r"(LRN_.*|MAKE.*|MFLAGS|PYTHON(PATH|HOME|NOUSERSITE)|TRITON_INTERPRET|VIRTUAL_ENV)")
"""Variables of the process that runs the tests which nobody else has."""

NO_COMPILER = {"CXX": "/no/such/compiler", "CC": "/no/such/compiler"}
LIMIT = 1800
"""Seconds for what takes half a minute where nothing else runs: only what hangs shall fail by the clock."""


def run(*words: object, cwd: Path = ROOT, **more: str) -> subprocess.CompletedProcess[str]:
    """A command without a terminal, with the environment of whoever runs the tests and ``more`` variables."""
    inherited = {name: value for name, value in os.environ.items() if not OURS.fullmatch(name)}
    return subprocess.run(
        [*map(str, words)],
        cwd=cwd,
        env=inherited | {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def done(*words: object, cwd: Path = ROOT, **more: str) -> str:
    """What a command prints, both streams; it must succeed."""
    ended = run(*words, cwd=cwd, **more)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, f"{' '.join(map(str, words))} ends with {ended.returncode}:\n{said[-5000:]}"
    return said


class Environment:
    """A virtual environment with nothing in it, not even pip unless it shall."""

    def __init__(self, folder: Path, *, pip: bool = False) -> None:
        done(sys.executable, "-m", "venv", *([] if pip else ["--without-pip"]), folder)
        self.folder, self.bin, self.python = folder, folder / "bin", folder / "bin" / "python"
        paths = sysconfig.get_paths("venv", {"base": str(folder), "platbase": str(folder)})
        self.packages = Path(paths["platlib"])

    def pip(self, *words: object, cwd: Path = ROOT, **more: str) -> str:
        """``pip words…`` for it, by the pip of the environment that runs the tests."""
        return done(sys.executable, "-m", "pip", "--python", self.python, *words, cwd=cwd, **more)

    def borrow(self, *names: str) -> None:
        """Show it packages of the environment that runs the tests, and what they need: it spares minutes."""
        shown = self.folder / "borrowed"
        shown.mkdir(exist_ok=True)
        (self.packages / "borrowed.pth").write_text(f"{shown}\n")
        for name in with_requirements(names):
            package = importlib.metadata.distribution(name)
            for first in {Path(file).parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
                if not (shown / first).is_symlink():  # folders like nvidia belong to several
                    (shown / first).symlink_to(Path(package.locate_file(first)))


def with_requirements(names: tuple[str, ...]) -> list[str]:
    """Distributions and all that they need, extras apart."""
    found: list[str] = []
    left = [*names]
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            if name in names:
                raise
            continue  # for another system or Python
        found.append(name)
        left += [re.match(r"[\w.-]+", need)[0] for need in needs if "extra ==" not in need]  # type: ignore[index]
    return found


def write_wheel(folder: Path, name: str, version: str) -> None:
    """A wheel with nothing in it but its name."""
    folder.mkdir(exist_ok=True)
    about = f"{name}-{version}.dist-info"
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
