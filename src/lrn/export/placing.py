"""Several files that belong together: all of them are put into their places, or none."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """A folder to fill, whose files are then moved beside ``path``; if anything fails, they go with it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with placed(Path(place, "model.onnx")) as folder:
    ...         _ = (folder / "model.json").write_text("{}")
    ...     os.listdir(place)
    ['model.json']
    """
    folder = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _ending_cleanly():
            folder.mkdir()
            yield folder
            _move(folder, path.parent)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}; choose another place") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _ending_cleanly() -> Iterator[None]:
    """A block in which SIGTERM ends the program as an error does: what has been begun goes with it."""
    if threading.current_thread() is not threading.main_thread():  # which alone is told of signals
        yield
        return

    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _move(folder: Path, place: Path) -> None:
    """Move all files to another folder of the same disk; if one cannot be, what is new there goes again."""
    new: list[Path] = []
    try:
        for file in sorted(folder.iterdir()):
            with file.open("rb") as whole:
                os.fsync(whole.fileno())
            goal = place / file.name
            if not goal.exists():
                new.append(goal)
            os.replace(file, goal)
    except BaseException:
        for goal in new:
            goal.unlink(missing_ok=True)
        raise
