"""Work spread over the processor's cores: functions that release the interpreter's lock, on parts of arrays fixed beforehand.

Matrix products in such work run on one core each (`alone`): threads of BLAS inside threads of ours wait for each other.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

_pool: ThreadPoolExecutor | None = None
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
    """Call `work(*part)` for each part, the first in this thread, the others in the pool. Work that is spread already is not spread again.

    >>> done = []
    >>> spread(done.append, [(1,), (2,)])
    >>> sorted(done)
    [1, 2]
    """
    if len(parts) == 1 or getattr(_inside, "busy", False):
        for part in parts:
            work(*part)
        return
    waiting = [_workers().submit(_busy, work, part) for part in parts[1:]]
    try:
        _busy(work, parts[0])
    finally:
        wait(waiting)  # nobody writes when this is over
    for one in waiting:
        one.result()


def _busy(work: Callable[..., Any], part: tuple[Any, ...]) -> None:
    _inside.busy = True
    try:
        work(*part)
    finally:
        _inside.busy = False


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


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(count() - 1, 1), thread_name_prefix="riesz")
    return _pool


def _forget() -> None:
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_forget)
