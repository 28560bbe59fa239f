"""Work spread over the processor's cores: functions that release the interpreter's lock, on parts of arrays fixed beforehand."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

_pool: ThreadPoolExecutor | None = None
_inside = threading.local()


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


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(count() - 1, 1), thread_name_prefix="riesz")
    return _pool


def _forget() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_forget)
