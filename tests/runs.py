"""What the tests of training share: a small text, and ``lrn`` in processes of its own that can be disturbed.

Importing torch and Lightning takes seconds, so the processes are forked from one that has done it.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lrn.training import checkpoint


def flags(**values: object) -> list[str]:
    """As on the command line.

    >>> flags(unit="sru", epochs=3)
    ['--unit', 'sru', '--epochs', '3']
    """
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


TINY = flags(
    **{"embedding": 8, "hidden": 12, "last": 8, "layers": 2, "batch_size": 4, "bptt": 10, "delta": 4},
    **{"lr": 0.02, "epochs": 3, "valid_columns": 2, "save_steps": 4, "threads": 1},
)
"""Three epochs of 15 or 16 steps."""

NO_DROPOUT = flags(drop_input=0, drop_hidden=0, drop_output=0)

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["lrn.cli", "lrn.tasks.lm.task", "lrn.commands", "lightning.fabric"])


def write_text(folder: Path, *, words: int = 30, seed: int = 0) -> Path:
    """A corpus of 600, 120 and 120 words. Each word has few that follow it: something can be learnt."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for part, lines in (("train", 60), ("valid", 12), ("test", 12)):
        text = []
        for _ in range(lines):
            word = draw.randrange(words)
            line = [word]
            for _ in range(8):
                word = (3 * word + draw.randrange(2)) % words
                line.append(word)
            text.append(" ".join(f"w{word}" for word in line))
        (folder / f"{part}.txt").write_text("\n".join(text) + "\n")
    return folder


@dataclass(frozen=True)
class Fault:
    """Something that happens to a process: at the n-th file that it writes, or in its n-th training step.

    ``kill``: SIGKILL with the file half written; ``full``: no space left on the device;
    ``die``, ``int``, ``term``: SIGKILL, SIGINT, SIGTERM in the step; ``twice``: SIGINT twice.
    """

    kind: str
    number: int


SIGNALS = {
    "die": [signal.SIGKILL],
    "int": [signal.SIGINT],
    "term": [signal.SIGTERM],
    "twice": [signal.SIGINT, signal.SIGINT],
}


@dataclass
class Done:
    """How a process ended."""

    code: int
    out: str
    err: str


def lrn(
    *words: object,
    fault: Fault | None = None,
    limit: int | None = None,
    cwd: Path | None = None,
    hidden: str = "",
    given: bytes = b"",
) -> Done:
    """``lrn words…`` in a process of its own.

    ``limit`` bounds the size of the files that it can write, ``hidden`` names a package that it shall not
    find, ``given`` is its standard input.
    """
    room = Path(os.environ["LRN_TEST_ROOM"])
    room.mkdir(exist_ok=True)
    files = [room / f"{time.monotonic_ns()}.{name}" for name in ("out", "err")]
    given_file = room / f"{time.monotonic_ns()}.given"
    given_file.write_bytes(given)
    child = (list(map(str, words)), [given_file, *files], fault, limit, cwd, hidden)
    process = PROCESSES.Process(target=_child, args=child)
    process.start()
    process.join(60)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"lrn {words} hangs:\n{files[1].read_text()}")
    return Done(process.exitcode, *(file.read_text() for file in files))


def refusal(said: str) -> str:
    """The line that says why a command has failed. A training may have said before that it begins to read."""
    *before, last = said.splitlines()
    assert not before or (len(before) == 1 and before[0].endswith(" …")), said
    return last


def trained(*words: object, **options: Any) -> Done:
    """The same, and it must succeed."""
    done = lrn("train", *words, **options)
    assert done.code == 0, done.err
    return done


def _child(
    words: list[str],
    files: list[Path],
    fault: Fault | None,
    limit: int | None,
    cwd: Path | None,
    hidden: str,
) -> None:
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY if number else os.O_RDONLY), number)
    sys.stdin = os.fdopen(0)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    if cwd:
        os.chdir(cwd)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if fault:
        _arrange(fault)
    if hidden:
        _hide(hidden)
    from lrn.cli import main

    sys.argv = ["lrn", *words]
    sys.exit(main(words))


def _hide(package: str) -> None:
    """As if it were not installed: whoever may have imported it already does so again."""
    ours = ("units", "recurrence", "nn", "analysis", "swap")  # they need torch alone, which registers once
    for name in list(sys.modules):
        head, _, rest = name.partition(".")
        if head == package or (head == "lrn" and rest and rest.split(".")[0] not in ours):
            del sys.modules[name]
            if head == "lrn":
                sys.modules["lrn"].__dict__.pop(rest, None)
    sys.modules[package] = None  # type: ignore[assignment]


def _arrange(fault: Fault) -> None:
    from lrn import files
    from lrn.training.loop import Loop

    count = iter(range(1, 10**9))
    fsync, take = os.fsync, Loop.take

    def disturbed_fsync(number: int) -> None:
        fsync(number)
        if next(count) != fault.number:
            return
        if fault.kind == "kill":
            os.ftruncate(number, os.fstat(number).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def disturbed_take(self: Loop, *args: Any) -> torch.Tensor:
        loss = take(self, *args)
        if next(count) == fault.number:
            for number in SIGNALS[fault.kind]:
                os.kill(os.getpid(), number)
        return loss

    if fault.kind in ("kill", "full"):
        files.os.fsync = disturbed_fsync  # type: ignore[attr-defined]
    else:
        Loop.take = disturbed_take  # type: ignore[method-assign]


# Comparing runs ---------------------------------------------------------------------------------

TIMES = ("seconds", "epoch_seconds", "seconds_of_training", "seconds_per_epoch", "tokens_per_second")


def state(run: Path, name: str = "last") -> dict[str, Any]:
    """A saved state, but for times."""
    return without_times(checkpoint.load(run / f"{name}.ckpt", "lm"))


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return value


def same(ours: Any, theirs: Any, where: str = "state") -> None:
    """Bit for bit, all the way down."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, torch.Tensor):
        assert ours.dtype == theirs.dtype, where
        assert torch.equal(ours, theirs), where
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            same(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), where
        for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            same(our, their, f"{where}[{number}]")
    else:
        assert ours == theirs, where


def logged(run: Path) -> list[dict[str, str]]:
    """log.csv, but for times."""
    import csv

    with (run / "log.csv").open(newline="") as file:
        return [
            {name: value for name, value in row.items() if name not in TIMES} for row in csv.DictReader(file)
        ]


def leftovers(folder: Path) -> Iterator[Path]:
    """Temporary files that should be gone."""
    return folder.rglob("*.part")
