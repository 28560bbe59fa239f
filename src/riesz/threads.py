"""Work spread over the processor's cores: functions that release the interpreter's lock, on parts of arrays fixed beforehand.

Matrix products in such work run on one core each (`alone`): threads of BLAS inside threads of ours wait for each other.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any

_waiting: SimpleQueue[Any] = SimpleQueue()
_workers = 0
_inside = threading.local()
_lock = threading.Lock()
_entered = 0
_before = 1


def count() -> int:
    """How many threads are used: RIESZ_THREADS, or the cores this process may run on.

    >>> count() >= 1
    True
    """
    given = os.environ.get("RIESZ_THREADS", "")
    if given.isdigit() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call `work(*part)` for each part, the first in this thread, the others in threads kept for it. Work that is spread already is not spread again.

    >>> done = []
    >>> spread(done.append, [(1,), (2,)])
    >>> sorted(done)
    [1, 2]
    """
    if len(parts) == 1 or getattr(_inside, "busy", False) or sys.is_finalizing():  # at the very end no other thread runs any more
        for part in parts:
            work(*part)
        return
    wanted = max(min(len(parts), count()), 2) - 1
    if _workers < wanted:
        _hire(wanted)
    done: SimpleQueue[BaseException | None] = SimpleQueue()  # futures and their locks take longer than many parts
    for part in parts[1:]:
        _waiting.put((work, part, done))
    _inside.busy = True
    try:
        work(*parts[0])
    finally:
        _inside.busy = False
        problems = [done.get() for _ in parts[1:]]  # nobody writes when this is over
    for problem in problems:
        if problem is not None:
            raise problem


def _hire(wanted: int) -> None:
    global _workers
    with _lock:
        while _workers < wanted:
            threading.Thread(target=_serve, args=(_waiting,), name=f"riesz_{_workers}", daemon=True).start()
            _workers += 1


def _serve(waiting: SimpleQueue[Any]) -> None:
    _inside.busy = True
    while True:
        work, part, done = waiting.get()
        try:
            work(*part)
            problem = None
        except BaseException as error:
            problem = error
        del work, part  # arrays are not held while there is nothing to do
        done.put(problem)
        del done, problem


@contextmanager
def alone() -> Generator[None]:
    """NumPy's matrix products inside use one core, in this and all other threads; where its BLAS cannot be told so, nothing changes.

    >>> with alone():
    ...     pass
    """
    global _entered, _before
    calls = _blas()
    if calls is not None:
        with _lock:
            _entered += 1
            if _entered == 1:
                _before = calls[0]()
                calls[1](1)
    try:
        yield
    finally:
        if calls is not None:
            with _lock:
                _entered -= 1
                if not _entered:
                    calls[1](_before)


@cache
def _blas() -> tuple[Any, Any] | None:
    """OpenBLAS's own functions for reading and setting its number of threads, from the library that NumPy has loaded."""
    from numpy._core import _multiarray_umath  # pyright: ignore

    try:
        library = ctypes.CDLL(_multiarray_umath.__file__)  # pyright: ignore
    except OSError:
        return None
    for start, end in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
        found = [getattr(library, f"{start}openblas_{what}_num_threads{end}", None) for what in ("get", "set")]
        if None not in found:
            return found[0], found[1]
    return None


def _forget() -> None:
    global _waiting, _workers, _lock
    _waiting, _workers, _lock = SimpleQueue[Any](), 0, threading.Lock()
    _inside.busy = False


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_forget)
