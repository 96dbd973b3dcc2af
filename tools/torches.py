"""One wheel on several versions of torch: a fresh environment for each, and what the engine computes there.

    make wheel
    python tools/torches.py dist/lrn_torch-0.2.0-py3-none-linux_x86_64.whl 2.10.0 2.15.0

Installs each torch with all that it requires (gigabytes, where it is a CUDA build) and the wheel. There it
runs ``lrn doctor``, ``benchmarks/agreement.py``, and the tests of the library for programs without Python;
prints a table, and ends with 1 if anything is wrong. The environments are made below ``--folder``, one after
the other, and deleted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIBRARIES = ("lrn/recurrence/cpu/liblrn_cpu.so", "lrn/recurrence/cpu/liblrn.so")
HEADER = {
    "torch": "torch",
    "python": "Python",
    "checked": "self-check",
    "worst": "largest difference / allowed",
    "problems": "random problems",
    "mismatches": "mismatches",
    "passed": "tests without Python",
    "failed": "failed",
}


@dataclass(frozen=True)
class Row:
    """What was seen with one torch."""

    torch: str
    python: str
    checked: int  # problems of lrn doctor
    worst: float  # the largest difference among them, as a share of what is allowed
    problems: int  # of benchmarks/agreement.py
    mismatches: int
    passed: int  # of tests/recurrence/cpu/test_alone.py
    failed: int

    @property
    def good(self) -> bool:
        """Whether both libraries ran, and agreed with the definition everywhere."""
        ran = self.checked > 0 and self.problems > 0 and self.passed > 0
        return ran and self.worst <= 1 and not self.mismatches and not self.failed


def run(*words: object) -> str:
    """What a command prints, away from the sources and without our variables: the wheel is what shall run."""
    hidden = ("PYTHONPATH", "LRN_ENGINE", "LRN_CPU")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [*map(str, words)]
    with tempfile.TemporaryDirectory() as elsewhere:
        ended = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True)
    return ended.stdout + ended.stderr  # if it ends with 1, something disagrees, which is a result


def examine(python: Path, seconds: float, cases: int) -> Row:
    """All checks in the environment of an interpreter."""
    doctor = run(python, "-m", "lrn", "doctor", "--seconds", seconds)
    checked = search(
        r"the cpu engine \S+ \S+ the definition on (\d+) problems.*largest difference (\S+) of", doctor
    )
    agreement = run(python, ROOT / "benchmarks" / "agreement.py", "--engine", "cpu", "--cases", cases)
    counted = search(r"(\d+) cases, (\d+) mismatches", agreement)
    alone = ROOT / "tests" / "recurrence" / "cpu" / "test_alone.py"
    options = ("-q", "--tb=short", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT)
    tests = run(python, "-m", "pytest", *options, alone)
    search(r"\d+ (passed|failed)", tests)  # else they did not run
    numbers = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", tests)}
    return Row(
        torch=search(r"^  torch +(\S+)", doctor)[1],
        python=search(r"Python (\S+),", doctor)[1],
        checked=int(checked[1]),
        worst=float(checked[2]),
        problems=int(counted[1]),
        mismatches=int(counted[2]),
        passed=numbers.get("passed", 0),
        failed=numbers.get("failed", 0) + numbers.get("error", 0),
    )


def search(pattern: str, text: str) -> re.Match[str]:
    found = re.search(pattern, text, re.M)
    if found is None:
        raise RuntimeError(f"nothing like {pattern!r} in:\n{text}")
    return found


def install(folder: Path, version: str, wheel: Path) -> Path:
    """A fresh environment with one torch and the wheel; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--no-cache-dir"]
    subprocess.run([*pip, f"torch=={version}", wheel, "hypothesis", "numpy", "pytest"], check=True)
    return python


def table(rows: list[Row]) -> str:
    """As Markdown.

    >>> print(table([Row("2.10.0", "3.11.7", 64, 0.25, 500, 0, 6, 0)]).splitlines()[-1])
    | 2.10.0 | 3.11.7 | 64 | 0.25 | 500 | 0 | 6 | 0 |
    """
    lines = [HEADER.values(), ("---",) * len(HEADER), *map(astuple, rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def arguments(words: list[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="of torch, like 2.10.0")
    parser.add_argument("--seconds", type=float, default=10, help="of lrn doctor (default: 10)")
    parser.add_argument("--cases", type=int, default=1000, help="of benchmarks/agreement.py (default: 1000)")
    parser.add_argument("--folder", type=Path, help="where the environments are made (default: the system's)")
    given = parser.parse_args(words)
    if given.wheel.suffix != ".whl" or not given.wheel.is_file():
        parser.error(f"expected a wheel, as make wheel writes it to dist; got {given.wheel}")
    for version in given.versions:
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            parser.error(f"expected versions of torch like 2.10.0, got {version!r}")
    given.wheel = given.wheel.resolve()
    return given


def main(words: list[str] | None = None) -> int:
    given = arguments(words)
    with zipfile.ZipFile(given.wheel) as archive:
        digests = [hashlib.sha256(archive.read(name)).hexdigest()[:12] for name in LIBRARIES]
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for version in given.versions:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            rows.append(examine(install(Path(folder), version, given.wheel), given.seconds, given.cases))
            print(rows[-1], flush=True)
    libraries = (f"{Path(name).name} {digest}" for name, digest in zip(LIBRARIES, digests, strict=True))
    print(f"\n{given.wheel.name} ({', '.join(libraries)}):\n\n{table(rows)}")
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
