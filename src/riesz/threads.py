"""Work spread over the processor's cores: functions that release the interpreter's lock, on parts of arrays fixed beforehand.

Matrix products in such work run on one core each (`alone`): threads of BLAS inside threads of ours wait for each other.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from queue import SimpleQueue
from typing import Any

_waiting: SimpleQueue[Any] = SimpleQueue()
_workers: list[int] = []
_inside = threading.local()
_lock = threading.Lock()
_entered = 0
_before = 1
_lingering: Any = None
"""How threads stay awake for a moment: the module of that name, once compiled loops are in use."""
_apart_from: int | None = None
"""The core that workers keep off: where the last caller was."""
SMALL = 8
"""A system with so many workers or more finds idle cores for them itself."""


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
    if len(_workers) < len(parts) - 1:
        _hire(max(min(len(parts), count()), 2) - 1)
    _keep_apart()
    done: SimpleQueue[BaseException | None] = SimpleQueue()  # futures and their locks take longer than many parts
    lingering = _lingering
    over = None if lingering is None else lingering.number()
    for part in parts[1:]:
        _waiting.put((work, part, done, lingering, over))
    if lingering is not None:
        lingering.ring()
    _inside.busy = True
    try:
        work(*parts[0])
        if lingering is not None:
            lingering.finished(over, len(parts) - 1)
    finally:
        _inside.busy = False
        problems = [done.get() for _ in parts[1:]]  # nobody writes when this is over
    for problem in problems:
        if problem is not None:
            raise problem


def _hire(wanted: int) -> None:
    global _apart_from
    with _lock:
        while len(_workers) < wanted:
            thread = threading.Thread(target=_serve, args=(_waiting,), name=f"riesz_{len(_workers)}", daemon=True)
            thread.start()
            _workers.append(thread.native_id or -1)
            _apart_from = None


def _keep_apart() -> None:
    """Workers run on other cores than the caller: where there are few, Linux may wake a thread on its waker's while another is idle, and leave it."""
    global _apart_from
    core = _core()
    if core is None:
        return
    here = core() if len(_workers) < SMALL else -1
    if here == _apart_from:
        return
    _apart_from = here
    cores = os.sched_getaffinity(0)
    others = cores - {here} if len(_workers) < len(cores) else cores
    with suppress(OSError):  # cores that were taken from this process meanwhile
        for worker in _workers:
            os.sched_setaffinity(worker, others)


@cache
def _core() -> Callable[[], int] | None:
    """What says which core this thread is on, where threads can be told cores."""
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None


def _serve(waiting: SimpleQueue[Any]) -> None:
    _inside.busy = True
    while True:
        work, part, done, lingering, over = waiting.get()
        try:
            work(*part)
            problem = None
        except BaseException as error:
            problem = error
        del work, part  # arrays are not held while there is nothing to do
        done.put(problem)
        del done, problem
        if lingering is not None:
            lingering.rest(over, lingering.bell, int(lingering.bell[0]) if waiting.empty() else -1)


def linger(how: Any) -> None:
    """From now on threads stay awake for a moment after work."""
    global _lingering
    _lingering = how


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
    global _waiting, _lock
    _waiting, _lock = SimpleQueue[Any](), threading.Lock()
    _workers.clear()
    _inside.busy = False


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_forget)
