"""Processes that cut texts into tokens side by side. They end with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def pool(workers: int) -> Iterator[Executor | None]:
    """Start processes that are gone when the block is left, whatever happens; none if this one is enough."""
    if workers <= 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    far_end, line = context.Pipe(duplex=False)
    processes = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(far_end,))
    try:
        yield processes
    except BrokenProcessPool:
        raise ValueError(
            "a process that cut texts into tokens died: was there too little memory? "
            "(A script that reads data must do so under `if __name__ == '__main__':`)"
        ) from None
    finally:
        line.close()
        processes.shutdown(cancel_futures=True)
        far_end.close()


def in_order(
    processes: Executor | None,
    work: Callable[[list[str]], R],
    pieces: Iterable[tuple[T, list[str]]],
    ahead: int,
) -> Iterator[tuple[T, R]]:
    """Let ``work`` run on the texts of every piece; yields what stands beside them and the result, in order.

    It runs in the processes of :func:`pool`, or here if that gave none; ``ahead`` pieces are under way
    at a time.
    """
    if processes is None:
        for beside, texts in pieces:
            yield beside, work(texts)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    for beside, texts in pieces:
        waiting.append((beside, _submit(processes, work, texts)))
        if len(waiting) > ahead:
            beside, future = waiting.popleft()
            yield beside, future.result()
    while waiting:
        beside, future = waiting.popleft()
        yield beside, future.result()


def while_wanted(texts: Iterable[str]) -> Iterator[str]:
    """Pass the texts on; in a worker, only until nobody waits for its work any more."""
    return (text for text in texts if not _hung_up.is_set())


_hung_up = threading.Event()  # in a worker: the process that started it has hung up


def _start(line: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one sees to it
    threading.Thread(target=_follow_parent, args=(line,), daemon=True).start()


def _follow_parent(line: Connection) -> None:
    """Stop when the first process hangs up, and end with it also when it was killed and could tell nobody.

    A worker is not ended in the midst of its work: a result that is half sent would be waited for for ever.
    """
    line.poll(None)
    _hung_up.set()
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
    os._exit(1)


def _submit(processes: Executor, work: Callable[[list[str]], R], texts: list[str]) -> Future[R]:
    try:
        return processes.submit(work, texts)
    except OSError as error:  # a pool that is breaking down may still try to start another process
        raise BrokenProcessPool(str(error)) from error
