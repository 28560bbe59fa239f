"""Work spread over the processor's cores: functions that release the interpreter's lock, on parts of arrays fixed
beforehand.

Threads sleep until there is work, anywhere the system puts them. RIESZ_SPIN=1 changes that (spin_wait.py).
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

from . import tuning

_inside = threading.local()
_lock = threading.Lock()
_workers: list[int] = []
"""The threads of the pool, by the numbers that the system gave them."""
_calls: Any = None
"""Where workers wait for calls."""


def count() -> int:
    """How many threads are used: RIESZ_THREADS, or the cores this process may run on; one, where work is spread
    already.

    >>> count() >= 1
    True
    """
    if getattr(_inside, "busy", False):
        return 1
    given = os.environ.get("RIESZ_THREADS", "")
    return int(given) if given.isdigit() and int(given) else len(cores())


def worth(parts: int, most: int | None = None) -> int:
    """How many threads, of `most`, for work worth dividing in so many parts: they begin one after the other, so many
    parts are soonest done by few.

    >>> worth(0), worth(1), worth(100) <= 11
    (1, 1, True)
    """
    return max(min(count() if most is None else most, parts, 1 + math.isqrt(max(parts, 0))), 1)


def cores() -> Collection[int]:
    """The cores that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def spread(work: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call `work(*part)` for each part, in this thread and in others: each takes the next part when it is free.

    The first error is raised when all other parts are over. Work that is spread already is not spread again.

    >>> done = []
    >>> spread(done.append, [(1,), (2,)])
    >>> sorted(done)
    [1, 2]
    """
    # At the very end of a program no other thread runs any more.
    in_turn = len(parts) < 2 or getattr(_inside, "busy", False) or sys.is_finalizing()
    if not in_turn and len(_workers) < len(parts) - 1:
        _hire(max(min(len(parts), count()), 2) - 1)
    if in_turn or not _workers:
        for part in parts:
            work(*part)
        return
    call, spin = _Call(work, parts), _spinning()
    if spin is not None:
        spin.settle(_calls, _workers, cores())
    try:
        _inside.busy = True
        for _ in range(min(len(parts) - 1, len(_workers))):
            _calls.put(call)
        if _calls.qsize() > tuning.WAITING_CALLS:
            _drop_what_is_over()
        call.take()
    finally:
        _inside.busy = False
        call.finish()


class _Call:
    """Parts of work that several threads take, and who is at it.

    A worker enters before it takes a part and leaves after its last one. So once no part is left to take, work is over
    when all who have entered have left. A worker that comes too late finds nothing to do, and nobody waits for it.
    """

    def __init__(self, work: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> None:
        self.work: Any = work
        self.parts = deque(parts)
        self.problems: list[BaseException] = []
        self.entered, self.left = list[None](), list[None]()
        self.leaving: Any = _queue()

    def take(self) -> None:
        """Do parts until none is left."""
        while True:
            try:
                part = self.parts.popleft()
            except IndexError:
                return
            try:
                self.work(*part)
            except BaseException as error:
                self.problems.append(error)

    def help(self) -> None:
        """What a worker does."""
        self.entered.append(None)
        self.take()
        self.left.append(None)
        self.leaving.put(None)

    def finish(self) -> None:
        """Wait until nobody works any more, also when that is interrupted; raise the first problem."""
        waiting = True
        while waiting:
            try:
                self.parts.clear()  # an interrupt between two parts leaves some
                while len(self.left) < len(self.entered):
                    self.leaving.get()
                waiting = False
            except BaseException as error:
                self.problems.append(error)
        self.work = None  # workers that come too late hold no arrays
        if self.problems:
            try:
                raise self.problems[0]
            finally:
                self.problems.clear()  # their tracebacks know this frame


def _drop_what_is_over() -> None:
    """Workers that are busy for long find only calls that still have parts: callers may have done many themselves."""
    with suppress(Empty):
        for _ in range(_calls.qsize()):
            call = _calls.get_nowait()
            if call.parts:
                _calls.put(call)


def _hire(wanted: int) -> None:
    global _calls
    with _lock, suppress(RuntimeError):  # no more threads can be had
        _calls = _calls or _queue()
        while len(_workers) < wanted:
            thread = threading.Thread(target=_serve, args=(_calls,), name=f"riesz_{len(_workers)}", daemon=True)
            thread.start()
            _workers.append(thread.native_id or -1)


def _serve(calls: Any) -> None:
    _inside.busy = True
    while True:
        call = calls.get()
        call.help()
        del call  # its arrays are not held while there is nothing to do


def _queue() -> Any:
    """Where threads wait for each other. Futures and their locks take longer than many parts."""
    spin = _spinning()
    return SimpleQueue[Any]() if spin is None else spin.SpinQueue()


@cache
def _spinning() -> Any:
    """The module of threads that stay awake, if RIESZ_SPIN=1 asks for it."""
    if os.environ.get("RIESZ_SPIN") != "1":
        return None
    try:
        from . import spin_wait
    except ImportError as error:
        warnings.warn(f"RIESZ_SPIN=1 has no effect: {error}; pip install 'riesz[numba]'", RuntimeWarning, stacklevel=3)
        return None
    return spin_wait


def _forget() -> None:
    global _calls, _lock
    _calls, _lock = None, threading.Lock()
    _workers.clear()
    _inside.busy = False


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_forget)
