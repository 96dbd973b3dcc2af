"""Saved states: one file, checked before use, from which nothing is ever executed.

A line of JSON says what the file is and carries the length and the SHA-256 of the rest, a ``torch.save`` of
plain tensors, numbers and strings. So a truncated, changed or foreign file is told from a good one before any
of it is read, and the rest is loaded with ``weights_only``.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import IO, Any

import torch

from lrn.files import write_whole

KIND = "lrn checkpoint"
VERSION = 1
_LONGEST_HEADER = 10_000


def save(path: Path, task: str, state: dict[str, Any]) -> None:
    """Write ``state`` to ``path``, whole or not at all."""
    room = io.BytesIO()
    torch.save(state, room)
    content = room.getbuffer()
    header = {
        "kind": KIND,
        "version": VERSION,
        "task": task,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }

    def write(file: IO[bytes]) -> None:
        file.write(json.dumps(header).encode() + b"\n")
        file.write(content)

    write_whole(path, write)


def load(path: Path, task: str) -> dict[str, Any]:
    """What :func:`save` wrote for ``task``; anything else is a ``ValueError`` that says what is wrong."""
    try:
        with path.open("rb") as file:
            header = _header(path, file.readline(_LONGEST_HEADER))
            content = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no saved state {path}") from None
    if header.get("version") != VERSION:
        raise ValueError(f"{path} is of version {header.get('version')}; this lrn reads version {VERSION}")
    if header.get("task") != task:
        raise ValueError(f"{path} belongs to task {header.get('task')!r}, not to {task!r}")
    if len(content) != header.get("bytes"):
        raise ValueError(
            f"{path} is damaged: {len(content):,} bytes where there should be {header.get('bytes'):,}"
        )
    if hashlib.sha256(content).hexdigest() != header.get("sha256"):
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a crafted file makes the reader raise
        first = str(error).strip().splitlines()[:1]
        raise ValueError(f"{path} holds more than plain data and is not loaded: {''.join(first)}") from None
    if not isinstance(state, dict):
        raise ValueError(f"{path} does not hold a saved state but a {type(state).__name__}")
    return state


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):  # the latter from thousands of brackets
        header = None
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise ValueError(f"{path} is not an {KIND}")
    if not isinstance(header.get("bytes"), int):
        raise ValueError(f"{path} is damaged: its first line does not give its length")
    return header
