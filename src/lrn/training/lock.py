"""One writer a folder: a lock that names its holder and ends with it, however the holder ends."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

fcntl: Any = None
with suppress(ImportError):  # a system without such locks: there the holder's name alone decides
    import fcntl

NAME = ".lock"


class Lock:
    """Holds a folder for this process until it is released or the process ends, even by kill -9.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(Path(folder))
    ...     try:
    ...         Lock(Path(folder))
    ...     except ValueError as error:
    ...         print("refused")
    ...     lock.release()
    refused
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._file: IO[str] | None = self._path.open("a+")
        if not self._take(self._file):
            holder = _holder(self._path)
            self._file.close()
            raise ValueError(f"{folder} is being written{holder}; wait for it, or stop it")
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}))
        self._file.flush()

    def _take(self, file: IO[str]) -> bool:
        if fcntl is None:
            return not _is_alive(_read(self._path))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return not _is_alive(_read(self._path))
        return True

    def release(self) -> None:
        """Let go of the folder. The file stays: to remove it could take away another's lock."""
        if self._file is None:
            return
        with suppress(OSError):  # a full disk must not hide what went wrong before
            self._file.truncate(0)
            self._file.close()
        self._file = None


def check_free(folder: Path) -> None:
    """Raise a ValueError if somebody is writing to a folder now; quick, and nothing is held afterwards."""
    if (folder / NAME).exists():
        Lock(folder).release()


def _read(path: Path) -> dict[str, Any]:
    try:
        holder = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _holder(path: Path) -> str:
    holder = _read(path)
    if not holder:
        return ""
    return f" by process {holder.get('pid')} on {holder.get('host')}"


def _is_alive(holder: dict[str, Any]) -> bool:
    """Whether a lock that is only written down may still be held; on another machine that cannot be known."""
    if not holder:
        return False
    if holder.get("host") != socket.gethostname():
        return True
    try:
        os.kill(int(holder["pid"]), 0)
    except (KeyError, TypeError, ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return int(holder["pid"]) != os.getpid()
