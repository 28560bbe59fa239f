"""RIESZ_SPIN=1: a thread that has just worked stays awake for a moment, for waking it takes longer than many parts of
work; and workers keep off the caller's core.

Only for a process that has its cores to itself. Waiting threads use their cores up to a tenth of a millisecond long,
and workers are bound to cores, which takes a choice away from the system. docs/notes/threads.md has what it gives.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from . import tuning
from .nogil import compiled

if numba.config.DISABLE_JIT:  # pyright: ignore
    raise ImportError("Numba may not compile")

_awake = True
"""Whether there are more cores than workers: others are not kept from working."""
_calls: Any = None
"""Where workers wait."""
_settled: Any = None
"""What workers were last told: the caller's core, which they leave, the cores it had, and who they were."""


@intrinsic
def look(_: Any, number: Any) -> Any:
    """number[0] as other threads have left it."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(context.make_array(number)(context, builder, args[0]).data, "acquire", 8)

    return types.int64(number), write


@compiled
def wait(bell: Any, last: int, looks: int, pause: int) -> int:
    """Wait, so many looks, until the bell is not at `last` any more; then a pause. Gives a number that depends on all
    that was seen: each look waits for the one before, so that looks take time whatever a compiler does with loops."""
    seen = 0
    for _ in range(looks):
        now = look(bell)
        seen = seen * 0x5851F42D4C957F2D + now
        if now != last:
            for _ in range(pause):
                seen = seen * 0x5851F42D4C957F2D + look(bell)
            break
    return seen


class SpinQueue(SimpleQueue[Any]):
    """A queue where one waits awake for a moment, without the interpreter's lock, before one sleeps."""

    def __init__(self) -> None:
        self.bell = np.zeros(1, np.int64)

    def put(self, item: Any) -> None:
        """Add a thing, and ring."""
        super().put(item)
        self.ring()

    def ring(self) -> None:
        """Whoever waits goes and looks."""
        self.bell[0] += 1  # of two who ring at once one may not be heard: whoever waits then sleeps, and is woken

    def get(self) -> Any:
        """The next thing."""
        last = int(self.bell[0])  # before looking for things: what comes in between is heard
        if _awake and self.empty():
            wait(self.bell, last, tuning.SPIN_LOOKS, tuning.SPIN_PAUSE_LOOKS)
        return super().get()


def settle(calls: SpinQueue, workers: list[int], cores: Collection[int]) -> None:
    """Workers stay awake if there are cores for them, and run on other cores than the caller: where there are few,
    Linux may wake a thread on its waker's core while another is idle, and leave it there."""
    global _awake, _calls, _settled
    _awake, _calls = len(workers) < len(cores), calls
    core = _core()
    if core is None:
        return
    here = core() if _awake and len(workers) < tuning.PINNED_WORKERS_BELOW else -1
    if _settled != (here, cores, workers):
        _settled = here, cores, list(workers)
        others = [c for c in cores if c != here]
        with suppress(OSError):  # cores that were taken from this process meanwhile
            for worker in workers:
                os.sched_setaffinity(worker, others)


@cache
def _core() -> Callable[[], int] | None:
    """What says which core this thread is on, where threads can be told cores."""
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None


def _sleep() -> None:
    global _awake
    _awake = False
    if _calls is not None:
        _calls.ring()


wait(np.zeros(1, np.int64), 0, 1, 0)  # compiled here, before threads depend on it
atexit.register(_sleep)  # nobody is in compiled code when that is unloaded
