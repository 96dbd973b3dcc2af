"""The example in C++ is built, and runs a compiled model without Python to the numbers that Python has."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lrn

EXAMPLE = Path(__file__).parent.parent / "examples" / "cpp"
PATIENCE = 1500  # seconds: a compiler on a busy machine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("cmake") or not shutil.which("c++"), reason="needs cmake and a C++ compiler"
    ),
    pytest.mark.skipif("cpu" not in lrn.engines(), reason="needs the C++ engine"),
]


def run(*command, **more):
    environment = os.environ | more
    return subprocess.run(
        [*map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )


def done(*command, **more):
    result = run(*command, **more)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result


def test_a_package_runs_without_python(tmp_path):
    done(sys.executable, EXAMPLE / "package.py", tmp_path, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"))
    done(
        "cmake",
        "-S",
        EXAMPLE,
        "-B",
        tmp_path / "build",
        f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}",
    )
    done("cmake", "--build", tmp_path / "build")
    program = tmp_path / "build" / "run"
    files = [tmp_path / name for name in ("model.pt2", "inputs.pt", "outputs.pt")]
    done(program, lrn.library_path(), *files)

    outputs, expected = torch.load(files[-1]), torch.load(tmp_path / "expected.pt")
    for output, wanted in zip(outputs, expected, strict=True):
        torch.testing.assert_close(output, wanted, rtol=1e-5, atol=1e-5)

    for words, said in (
        ([lrn.library_path()], "usage"),
        ([tmp_path / "none.so", *files], "none.so"),
        ([lrn.library_path(), files[0], tmp_path / "none.pt", files[2]], "cannot read"),
    ):
        wrong = run(program, *words)
        assert wrong.returncode == 1
        assert said in wrong.stderr
