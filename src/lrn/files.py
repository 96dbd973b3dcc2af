"""Files that are whole or not there: written beside their place, then moved into it. Text is UTF-8."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let ``write`` fill a temporary file, make sure that it is on the disk, and rename it to ``path``.

    Whatever goes wrong, a full disk for example, leaves what was at ``path`` as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # what went wrong is said below
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise OSError(error.errno, f"cannot write {path}: {reason}") from error
        raise


def unfinished(path: Path) -> bool:
    """Whether a file is one that was being written when its writer died.

    >>> unfinished(Path("runs/.config.json.123.part")), unfinished(Path("runs/config.json"))
    (True, False)
    """
    return path.name.startswith(".") and path.suffix == ".part"


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=1) + "\n")


def check_place(path: Path) -> None:
    """An error if a file cannot be written to ``path``, before anything slow is done for it."""
    folder = path.absolute().parent
    reason = hindrance(folder) if folder.exists() else os.strerror(errno.ENOENT)
    if reason:
        raise ValueError(f"cannot write {path}: {reason}; choose another place")


def check_folder(path: Path) -> None:
    """An error if :func:`make_folder` cannot make a folder, or nothing can be put into it. None is made."""
    reason = hindrance(path)
    if reason:
        raise _cannot_make(path, reason)


def hindrance(path: Path) -> str:
    """Why nothing can be made in a folder, or in the nearest one above it that is there; "" if it can."""
    try:
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not there.is_dir():
            return os.strerror(errno.ENOTDIR)
        return "" if os.access(there, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:  # a name that is too long, for example
        return error.strerror or str(error)


def make_folder(path: Path) -> None:
    """For what a command writes to ``--out``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_make(path, error.strerror or str(error)) from None


def _cannot_make(path: Path, reason: str) -> ValueError:
    return ValueError(f"cannot make the folder {path} ({reason}); choose another: --out")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def text_lines(file: Iterable[bytes], name: object) -> Iterator[tuple[int, str]]:
    """Number and text of each line; what is not UTF-8 is an error that says where.

    >>> list(text_lines([b"one\\n", b"two"], "my.txt"))
    [(1, 'one'), (2, 'two')]
    """
    for number, line in enumerate(file, 1):
        yield number, decoded(line, number, name).rstrip("\r\n")


def decoded(line: bytes, number: int, name: object) -> str:
    """A line as text, its end with it; the first may begin with a byte order mark."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(f"{name}, line {number}", error) from None


def not_utf8(where: object, error: UnicodeDecodeError) -> ValueError:
    """The error to raise for text that a user has in another encoding."""
    return ValueError(
        f"{where}: not UTF-8 text: {error.reason} (byte 0x{error.object[error.start]:02x} at {error.start}); "
        "convert it, from Latin-1 for example: iconv -f latin1 -t utf-8"
    )
