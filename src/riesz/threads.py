"""Work spread over the processor's cores: functions that release the interpreter's lock, on parts of arrays fixed beforehand.

Matrix products in such work run on one core each (`alone`): threads of BLAS inside threads of ours wait for each other.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
from collections.abc import Callable, Collection, Generator, Sequence
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
"""How threads stay awake for a moment: the module of that name, once `linger` was called."""
_apart: Any = None
"""Where workers were told to be: off the core that the caller was on, of the cores it had, as many workers as there were."""
SMALL = 8
"""A system with so many workers or more finds idle cores for them itself."""


def count() -> int:
    """How many threads are used: RIESZ_THREADS, or the cores this process may run on; one, where work is spread already.

    >>> count() >= 1
    True
    """
    if getattr(_inside, "busy", False):
        return 1
    given = os.environ.get("RIESZ_THREADS", "")
    return int(given) if given.isdigit() and int(given) else len(_cores())


def worth(parts: int, most: int | None = None) -> int:
    """How many threads, of `most`, for work worth dividing in so many parts: they begin one after the other, so many parts are soonest done by few.

    >>> worth(0), worth(1), worth(100) <= 11
    (1, 1, True)
    """
    return max(min(count() if most is None else most, parts, 1 + math.isqrt(max(parts, 0))), 1)


def _cores() -> Collection[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def spread(work: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call `work(*part)` for each part, the first in this thread, the others in threads kept for it. Work that is spread already is not spread again.

    >>> done = []
    >>> spread(done.append, [(1,), (2,)])
    >>> sorted(done)
    [1, 2]
    """
    in_turn = len(parts) < 2 or getattr(_inside, "busy", False) or sys.is_finalizing()  # at the very end no other thread runs any more
    if not in_turn and len(_workers) < len(parts) - 1:
        _hire(max(min(len(parts), count()), 2) - 1)
    if in_turn or not _workers:
        for part in parts:
            work(*part)
        return
    lingering = _lingering if _keep_apart() else None
    over = None if lingering is None else lingering.number()
    done: SimpleQueue[BaseException | None] = SimpleQueue()  # futures and their locks take longer than many parts
    for part in parts[1:]:
        _waiting.put((work, part, done, lingering, over))
    if lingering is not None:
        lingering.ring()
    _inside.busy = True
    try:
        work(*parts[0])
        if lingering is not None:
            lingering.finish(over, len(parts) - 1)
    finally:
        _inside.busy = False
        problem = _answers(done, len(parts) - 1)
    if problem is not None:
        try:
            raise problem
        finally:
            del problem  # its traceback knows this frame


def _answers(done: SimpleQueue[BaseException | None], parts: int) -> BaseException | None:
    """The first problem of some parts, once they are all over, or what interrupted the wait: nobody writes after that."""
    problem, left = None, parts
    while left:
        try:
            found = done.get()
            problem = found if problem is None else problem
            left -= 1
        except BaseException as error:
            problem = error
    return problem


def _hire(wanted: int) -> None:
    with _lock, suppress(RuntimeError):  # no more threads can be had
        while len(_workers) < wanted:
            thread = threading.Thread(target=_serve, args=(_waiting,), name=f"riesz_{len(_workers)}", daemon=True)
            thread.start()
            _workers.append(thread.native_id or -1)


def _keep_apart() -> bool:
    """Workers run on other cores than the caller: where there are few, Linux may wake a thread on its waker's while another is idle, and leave it.

    Whether there are enough cores for that.
    """
    global _apart
    cores, workers, core = _cores(), len(_workers), _core()
    enough = workers < len(cores)
    if core is not None:
        here = core() if enough and workers < SMALL else -1
        if _apart != (here, cores, workers):
            _apart = here, cores, workers
            others = [c for c in cores if c != here]
            with suppress(OSError):  # cores that were taken from this process meanwhile
                for worker in _workers:
                    os.sched_setaffinity(worker, others)
    return enough


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
            last = int(lingering.bell[0])  # before looking for work: what comes in between is heard
            lingering.rest(over, lingering.bell, last if waiting.empty() else -1)


def linger() -> None:
    """From now on threads stay awake for a moment after work: for those who have loaded Numba anyway."""
    global _lingering
    from . import lingering

    _lingering = lingering


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
    global _waiting, _lock, _apart
    _waiting, _lock, _apart = SimpleQueue[Any](), threading.Lock(), None
    _workers.clear()
    _inside.busy = False


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_forget)
