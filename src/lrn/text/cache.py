"""What was worked out from files once: kept on the disk, and opened as it lies there."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

DAY = 24 * 60 * 60

T = TypeVar("T")


def cached(
    kind: str,
    version: int,
    folder: Path,
    files: Sequence[str],
    *,
    build: Callable[[Path], None],
    load: Callable[[Path], T],
) -> T:
    """Open what an earlier call kept or, if there is none or a file has changed since, build it anew.

    It is kept in the cache (``$LRN_CACHE``, else ``~/.cache/lrn``) as a folder that is whole or not there. Of
    the same ``folder`` only what was built last is kept.

    Args:
        kind: a folder of the cache, for everything of that kind.
        version: to be raised when the same files would become something else.
        folder: where the files are.
        files: names of those it is built from; some may not be there.
        build: fills a new folder.
        load: opens such a folder; an ``OSError`` or a ``ValueError`` says that it is not there or not whole.
    """
    before = _state(version, folder, files)

    def build_unchanged(place: Path) -> None:
        build(place)
        if _state(version, folder, files) != before:
            raise ValueError(f"the files in {folder} changed while they were read; try again")

    return kept(kind, os.fsencode(folder.resolve()), repr(before).encode(), build=build_unchanged, load=load)


def kept(
    kind: str, source: bytes, state: bytes, *, build: Callable[[Path], None], load: Callable[[Path], T]
) -> T:
    """Open what an earlier call kept of the same ``source`` in the same ``state`` or, if none did, build it.

    This is what :func:`cached` does, for what is not told from files' sizes and times: ``source`` says what
    it is of, and of the same only what was built last is kept; another ``state`` is something else.
    """
    name = "-".join(sha256(part).hexdigest()[:16] for part in (source, state))
    place = cache_folder() / kind / name
    with suppress(OSError, ValueError):
        return load(place)
    with writing():
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=place.parent))
    try:
        build(temporary)
        with writing():
            _move(temporary, place, load)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _remove_older(place)
    return load(place)


def cache_folder() -> Path:
    """Return the folder of all that is kept: ``$LRN_CACHE``, else ``lrn`` where this user's caches are."""
    if os.environ.get("LRN_CACHE"):
        return Path(os.environ["LRN_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lrn"


@contextmanager
def writing() -> Iterator[None]:
    """Open a block in which what the operating system refuses is an error about the cache folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"cannot write to the cache folder {cache_folder()}: {reason}; LRN_CACHE sets another"
        ) from error


@contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """Create a file of the cache; when the block is left without an error, it is on the disk."""
    with writing():
        file = path.open("wb")
    try:
        yield file
        with writing():
            file.flush()
            os.fsync(file.fileno())
    finally:
        with writing():  # on a full disk this fails once more
            file.close()


def mapped(place: Path, kinds: Mapping[str, type[np.generic]]) -> dict[str, NDArray[Any]]:
    """Map the files of a folder, none of them empty, as flat arrays of these kinds."""
    # views without memmap's own class, whose slices are slow
    return {name: np.asarray(np.memmap(place / name, kind, mode="r")) for name, kind in kinds.items()}


def _state(version: int, folder: Path, files: Sequence[str]) -> list[Any]:
    """Return what changes when the files do."""
    stats = [path.stat() if (path := folder / name).is_file() else None for name in files]
    return [version, *((stat.st_size, stat.st_mtime_ns) if stat else None for stat in stats)]


def _move(temporary: Path, place: Path, load: Callable[[Path], object]) -> None:
    """Put what was built in its place, unless another process meanwhile did."""
    for last_try in (False, True):
        try:
            load(place)
            return
        except (OSError, ValueError):
            shutil.rmtree(place, ignore_errors=True)
        try:
            os.rename(temporary, place)
            return
        except OSError:
            if last_try:
                raise


def _remove_older(place: Path) -> None:
    """Remove what was kept of the same folder before, and what a killed process left."""
    of_folder = place.name.split("-")[0]
    for other in place.parent.glob(f"{of_folder}-*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    for other in place.parent.glob(f".{of_folder}-*"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > DAY:
                shutil.rmtree(other)
