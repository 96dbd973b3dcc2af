"""Batches made ahead of the step that learns from them, by a worker thread, in the order of the steps."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
Made = TypeVar("Made")

AHEAD = 3  # steps: enough to even out a long one, little enough to hold in memory


def ahead(
    items: Iterable[T], make: Callable[[T], Made], count: int = AHEAD
) -> Generator[tuple[T, Made], None, None]:
    """Each item with what ``make`` makes of it, up to ``count`` items early.

    An error in ``make`` is raised where its item would have come. Closing the iterator ends the worker.

    >>> list(ahead([1, 2, 3], lambda n: n * n))
    [(1, 1), (2, 4), (3, 9)]
    """
    line: queue.Queue[tuple[str, Any]] = queue.Queue(count)
    ended = threading.Event()

    def put(kind: str, value: Any) -> None:
        while not ended.is_set():
            with suppress(queue.Full):
                line.put((kind, value), timeout=0.1)
                return

    def work() -> None:
        try:
            for item in items:
                if ended.is_set():
                    return
                put("made", (item, make(item)))
            put("end", None)
        except BaseException as error:  # whatever it is belongs to whoever waits for the item
            put("error", error)

    worker = threading.Thread(target=work, name="lrn-ahead", daemon=True)
    worker.start()
    try:
        while True:
            kind, value = line.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        ended.set()
        worker.join()
